"""What happened in a search for an equilibrium, told once more from a study's trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from mfhpo.games import Dissatisfaction, Equilibrium, GamePolicy, Query
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.games.study import Listener, NashStudy
from mfhpo_optuna.visualization.stories.choice import chosen_sampler
from mfhpo_optuna.visualization.stories.words import (
    between,
    params_text,
    title,
    trials_text,
    value_text,
)

_STAGES = 20  # recommendations that are computed anew


@dataclass(frozen=True)
class Played:
    """What one trial evaluated."""

    trial: int
    query: Query
    params: dict[str, Any]
    values: Sequence[float | None]  # as the objective returned them; None for a failure


@dataclass(frozen=True)
class Stage:
    """What was recommended after so much had been paid."""

    cost: float
    answer: Equilibrium
    params: dict[str, Any]


def gain_text(player: str, gain: Dissatisfaction) -> str:
    """What a player would gain by deviating, in a sentence."""
    if not math.isfinite(gain.mean):
        return f"nothing was observed of {player}"
    return f"{player} would gain {gain.mean:.3g} {between(gain.interval)} by deviating"


class NashStory:
    """A study's evaluations in the order in which they ended, and what they led to.

    Recommendations on the way to the last one (`stages`) each take as long as the answer does;
    `shows_way` says whether they are wanted. ``game`` is that after the last evaluation. Raises
    ValueError if no trial has given values yet.
    """

    def __init__(
        self,
        study: optuna.Study,
        sampler: NashSampler | None,
        plot: str,
        *,
        shows_way: bool,
    ) -> None:
        chosen: NashSampler = chosen_sampler(study, sampler, NashSampler, plot, "a NashSampler")
        answer = chosen.equilibrium(study)
        if not answer.params:
            raise ValueError(
                f"study {study.study_name!r} has nothing to show yet: {answer.reason}."
            )
        self.played: list[Played] = []
        self.stages: list[Stage] = []
        self._last = answer.trials
        n_stages = _STAGES if shows_way else 0
        self._shown = set(np.linspace(1, answer.trials, n_stages).round().astype(int).tolist())
        self.game = chosen.replay(study, self._listen)
        if len(self.played) != self._last:
            self._note_stage(self.game)  # trials have ended in the meantime

    @property
    def policy(self) -> GamePolicy:
        """What chose the queries, after the last evaluation."""
        assert self.game.policy is not None
        return self.game.policy

    @property
    def answer(self) -> Stage:
        """What is recommended in the end."""
        return self.stages[-1]

    def title(self) -> tuple[str, ...]:
        """Where the equilibrium is, what deviating would gain, and what it cost."""
        answer = self.answer.answer
        at_most = ""
        if math.isfinite(answer.at_most):
            at_most = (
                f"At most {answer.at_most:.2g} standard deviations of an objective, probability"
                f"\u00a0{answer.probability:g}"
            )
        return title(
            "Equilibrium" if answer.finished else "Equilibrium so far",
            params_text(self.answer.params),
            *(gain_text(*of) for of in answer.dissatisfaction.items()),
            at_most,
            f"Cost {answer.cost:,.6g} of {answer.budget:,.6g} in {trials_text(len(self.played))}, "
            f"{answer.n_evaluations:,} of them at the target",
        )

    def level_names(self) -> list[str]:
        """What an evaluation is called in the legend, by its index from `level_index`."""
        fidelity = self.game.fidelity
        if not fidelity.fidelities:
            return ["evaluated"]
        if fidelity.joint:
            return [f"{fidelity.names[0]} = {value_text(level)}" for level in self.game.levels[0]]
        return ["evaluated below the target", "evaluated at the target, for all players"]

    def level_index(self, query: Query) -> int:
        """Which of `level_names` an evaluation is."""
        if self.game.fidelity.joint:
            return query.levels[0]
        return int(self.policy.is_evaluation(query))

    def _listen(self, game: NashStudy) -> Listener:
        def hear(trial: FrozenTrial, query: Query, values: Sequence[float | None]) -> None:
            assert game.policy is not None
            params = game.space.params(query.profile)
            self.played.append(Played(trial.number, query, params, values))
            n = len(self.played)
            if n == self._last or n in self._shown:
                self._note_stage(game)

        return hear

    def _note_stage(self, game: NashStudy) -> None:
        answer = game.recommend()
        if answer.profile:
            self.stages.append(Stage(answer.cost, answer, game.space.params(answer.profile)))
