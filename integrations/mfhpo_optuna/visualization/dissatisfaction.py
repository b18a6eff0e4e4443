"""The picture of how near to an equilibrium the recommendation was, over what was paid."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna

from mfhpo.games import Dissatisfaction, Equilibrium
from mfhpo.racing.recommendation import params_in_words
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.games.study import NashStudy
from mfhpo_optuna.visualization import style, words
from mfhpo_optuna.visualization.reading import chosen_sampler

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STAGES = 20  # recommendations that are computed anew


def plot_dissatisfaction(study: optuna.Study, *, sampler: NashSampler | None = None) -> go.Figure:
    """Plot what players would gain by deviating from the recommended profile, over the cost.

    Gains are in standard deviations of each player's objective, in which players can be compared.
    The thick line is the largest mean of all players, in a band from the largest lower end to the
    largest upper end of their intervals; thin lines are each player's mean. At each cost, it is
    the recommendation that would have been given there, by the model that was fitted there: some
    twenty of them are computed anew.

    The figure and the errors are as for `plot_race`, of `NashSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.
    """
    style.require_plotly("plot_dissatisfaction")
    story = NashStory(study, sampler, "plot_dissatisfaction", _STAGES)
    costs = [stage.answer.cost for stage in story.stages]
    gains = [stage.answer.dissatisfaction for stage in story.stages]
    lower = [max(gain.relative_interval[0] for gain in of.values()) for of in gains]
    upper = [stage.answer.at_most for stage in story.stages]
    figure = style.new_figure()
    style.ribbon(figure, costs, lower, upper, style.WINNER, name="interval")
    for name, colour in zip(story.game.players.names, itertools.cycle(style.SEVERAL)):
        line = {"color": colour, "width": 1.3, "dash": "dot"}
        means = style.rounded([of[name].relative for of in gains])
        style.draw(figure, costs, means, mode="lines", line=line, name=style.literal(name))
    largest = style.rounded([stage.answer.epsilon for stage in story.stages])
    texts = [style.hover(_lines(stage)) for stage in story.stages]
    look = {"mode": "lines+markers", "line": {"color": style.WINNER, "width": 3}}
    style.draw(figure, costs, largest, text=texts, name="largest of all players", **look)
    style.head(figure, "What deviating alone would gain")
    style.lay_out(figure, story.title(), panels=300)
    figure.update_xaxes(title_text="cost paid", rangemode="tozero")
    # Nobody is sure of anything at first: intervals of that time would hide what came of it.
    figure.update_yaxes(
        title_text="standard deviations of the objective", range=[0.0, _top(story)], zeroline=False
    )
    return figure


def _top(story: NashStory) -> float:
    means = [stage.answer.epsilon for stage in story.stages]
    later = [stage.answer.at_most for stage in story.stages[len(story.stages) // 2 :]]
    return 1.05 * max(filter(math.isfinite, [*means, *later]), default=0.0) or 1.0


def _lines(stage: Stage) -> list[str]:
    gains = [gain_text(*of) for of in stage.answer.dissatisfaction.items()]
    return [f"cost {stage.answer.cost:,.6g}", *gains, *words.params_lines(stage.params)]


@dataclass(frozen=True)
class Stage:
    """What was recommended at some time."""

    answer: Equilibrium
    params: dict[str, Any]


def gain_text(player: str, gain: Dissatisfaction) -> str:
    """Return what a player would gain by deviating, in a sentence."""
    if not math.isfinite(gain.mean):
        return f"nothing was observed of {player}"
    return f"{player} would gain {gain.mean:.3g} {words.between(gain.interval)} by deviating"


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
        assert self.game.policy is not None
        self.policy, self.answer = self.game.policy, self.stages[-1]

    def title(self) -> tuple[str, ...]:
        """Return where the equilibrium is, what deviating would gain, and what it cost."""
        answer = self.answer.answer
        at_most = ""
        if math.isfinite(answer.at_most):
            at_most = (
                f"At most {answer.at_most:.2g} standard deviations of an objective, probability"
                f"\u00a0{answer.probability:g}"
            )
        return words.title(
            "Equilibrium" if answer.finished else "Equilibrium so far",
            params_in_words(self.answer.params),
            *(gain_text(*of) for of in answer.dissatisfaction.items()),
            at_most,
            f"Cost {answer.cost:,.6g} of {answer.budget:,.6g} in "
            f"{words.trials_text(self._played)}, {answer.n_evaluations:,} of them at the target",
        )

    def _hear(self, game: NashStudy, *_: Any) -> None:
        self._played += 1
        if self._played == self._last or self._played in self._shown:
            self._note_stage(game)

    def _note_stage(self, game: NashStudy) -> None:
        answer = game.recommend()
        if answer.profile:
            self.stages.append(Stage(answer, game.space.params(answer.profile)))
