"""The picture of how near to an equilibrium the recommendation was, over what was paid."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import optuna

from mfhpo.experiment import Answer
from mfhpo.games import Dissatisfaction
from mfhpo.racing.text import params_in_words
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.games.study import NashStudy
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.visualization import style, words
from mfhpo_optuna.visualization.reading import told
from mfhpo_optuna.visualization.replay import told_again

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STAGES = 20  # recommendations that are computed anew


def plot_dissatisfaction(study: optuna.Study, *, sampler: StudySampler | None = None) -> go.Figure:
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
    known, answer = game_of(study, sampler, "plot_dissatisfaction")
    stages = _stages(known)
    costs = [stage.cost for stage in stages]
    gains = [stage.dissatisfaction or {} for stage in stages]
    lower = [max(gain.relative_interval[0] for gain in of.values()) for of in gains]
    upper = [stage.at_most for stage in stages]
    figure = style.new_figure()
    style.ribbon(figure, costs, lower, upper, style.WINNER, name="interval")
    for name, colour in zip(gains[-1], itertools.cycle(style.SEVERAL)):
        line = {"color": colour, "width": 1.3, "dash": "dot"}
        means = style.rounded([of[name].relative for of in gains])
        style.draw(figure, costs, means, mode="lines", line=line, name=style.literal(name))
    largest = style.rounded([stage.epsilon for stage in stages])
    texts = [style.hover(_lines(stage)) for stage in stages]
    look = {"mode": "lines+markers", "line": {"color": style.WINNER, "width": 3}}
    style.draw(figure, costs, largest, text=texts, name="largest of all players", **look)
    style.head(figure, "What deviating alone would gain")
    style.lay_out(figure, game_title(answer), panels=300)
    figure.update_xaxes(title_text="cost paid", rangemode="tozero")
    # Nobody is sure of anything at first: intervals of that time would hide what came of it.
    figure.update_yaxes(
        title_text="standard deviations of the objective", range=[0.0, _top(stages)], zeroline=False
    )
    return figure


def _top(stages: list[Answer]) -> float:
    means = [stage.epsilon for stage in stages]
    later = [stage.at_most for stage in stages[len(stages) // 2 :]]
    return 1.05 * max(filter(math.isfinite, [*means, *later]), default=0.0) or 1.0


def _lines(stage: Answer) -> list[str]:
    gains = [gain_text(*of) for of in (stage.dissatisfaction or {}).items()]
    return [f"cost {stage.cost:,.6g}", *gains, *words.params_lines(stage.params)]


def gain_text(player: str, gain: Dissatisfaction) -> str:
    """Return what a player would gain by deviating, in a sentence."""
    if not math.isfinite(gain.mean):
        return f"nothing was observed of {player}"
    return f"{player} would gain {gain.mean:.3g} {words.between(gain.interval)} by deviating"


def game_of(
    study: optuna.Study, sampler: StudySampler | None, plot: str
) -> tuple[NashStudy, Answer]:
    """Return a study's game and its answer; ValueError if no trial has given values yet."""
    known, answer = told(study, sampler, GameKind, plot, "a NashSampler")
    assert isinstance(known, NashStudy)
    if not answer.params:
        raise ValueError(f"study {study.study_name!r} has nothing to show yet: {answer.reason}.")
    return known, answer


def game_title(answer: Answer) -> tuple[str, ...]:
    """Return where the equilibrium is, what deviating would gain, and what it cost."""
    at_most = ""
    if math.isfinite(answer.at_most):
        at_most = (
            f"At most {answer.at_most:.2g} standard deviations of an objective, probability"
            f"\u00a0{answer.probability:g}"
        )
    return words.title(
        "Equilibrium" if answer.finished else "Equilibrium so far",
        params_in_words(answer.params),
        *(gain_text(*of) for of in (answer.dissatisfaction or {}).items()),
        at_most,
        f"Cost {answer.cost:,.6g} of {answer.budget:,.6g} in "
        f"{words.counted(answer.trials, 'trial')}, {answer.evaluations:,} of them at the target",
    )


def _stages(known: NashStudy) -> list[Answer]:
    """Return what was recommended on the way; each takes as long as the answer does."""
    stages, last = [], len(known.experiment.history())
    shown = set(np.linspace(1, last, _STAGES).round().astype(int).tolist())
    n_told = 0
    for runner, learned in told_again(known):
        n_told += len(learned)
        if n_told not in shown:
            continue
        answer = runner.answer()
        if answer.params:
            stages.append(replace(answer, params=known.params_of(answer)))
    return stages
