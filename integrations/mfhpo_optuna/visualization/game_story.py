"""What happened in a search for an equilibrium, told once more from a study's trials."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optuna

from mfhpo.games import Dissatisfaction, Equilibrium, GamePolicy
from mfhpo.racing.recommendation import params_in_words
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.games.study import NashStudy
from mfhpo_optuna.visualization.reading import chosen_sampler
from mfhpo_optuna.visualization.words import between, title, trials_text


@dataclass(frozen=True)
class Stage:
    """What was recommended after so much had been paid."""

    cost: float
    answer: Equilibrium
    params: dict[str, Any]


def gain_text(player: str, gain: Dissatisfaction) -> str:
    """Return what a player would gain by deviating, in a sentence."""
    if not math.isfinite(gain.mean):
        return f"nothing was observed of {player}"
    return f"{player} would gain {gain.mean:.3g} {between(gain.interval)} by deviating"


class NashStory:
    """A game after a study's last evaluation, and the recommendations on the way to it.

    Each of the `n_stages` before the last one takes as long as the answer does. Raises ValueError
    if no trial has given values yet.
    """

    def __init__(
        self, study: optuna.Study, sampler: NashSampler | None, plot: str, n_stages: int = 0
    ) -> None:
        chosen: NashSampler = chosen_sampler(study, sampler, NashSampler, plot, "a NashSampler")
        answer = chosen.equilibrium(study)
        if not answer.params:
            raise ValueError(
                f"study {study.study_name!r} has nothing to show yet: {answer.reason}."
            )
        self.stages: list[Stage] = []
        self._played, self._last = 0, answer.trials
        self._shown = set(np.linspace(1, answer.trials, n_stages).round().astype(int).tolist())
        self.game = chosen.replay(study, lambda game: partial(self._hear, game))
        if self._played != self._last:
            self._note_stage(self.game)  # trials have ended in the meantime

    @property
    def policy(self) -> GamePolicy:
        """The policy after the last evaluation."""
        assert self.game.policy is not None
        return self.game.policy

    @property
    def answer(self) -> Stage:
        """The recommendation in the end."""
        return self.stages[-1]

    def title(self) -> tuple[str, ...]:
        """Return where the equilibrium is, what deviating would gain, and what it cost."""
        answer = self.answer.answer
        at_most = ""
        if math.isfinite(answer.at_most):
            at_most = (
                f"At most {answer.at_most:.2g} standard deviations of an objective, probability"
                f"\u00a0{answer.probability:g}"
            )
        return title(
            "Equilibrium" if answer.finished else "Equilibrium so far",
            params_in_words(self.answer.params),
            *(gain_text(*of) for of in answer.dissatisfaction.items()),
            at_most,
            f"Cost {answer.cost:,.6g} of {answer.budget:,.6g} in {trials_text(self._played)}, "
            f"{answer.n_evaluations:,} of them at the target",
        )

    def _hear(self, game: NashStudy, *_: Any) -> None:
        self._played += 1
        if self._played == self._last or self._played in self._shown:
            self._note_stage(game)

    def _note_stage(self, game: NashStudy) -> None:
        answer = game.recommend()
        if answer.profile:
            self.stages.append(Stage(answer.cost, answer, game.space.params(answer.profile)))
