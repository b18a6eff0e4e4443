"""The picture of how near to an equilibrium the recommendation was, over what was paid."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import optuna

from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.visualization.colours import SEVERAL, WINNER
from mfhpo_optuna.visualization.game_story import NashStory, Stage, gain_text
from mfhpo_optuna.visualization.style import (
    draw,
    head,
    hover,
    lay_out,
    literal,
    new_figure,
    require_plotly,
    ribbon,
    rounded,
)
from mfhpo_optuna.visualization.words import params_lines

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
    require_plotly("plot_dissatisfaction")
    story = NashStory(study, sampler, "plot_dissatisfaction", _STAGES)
    costs = [stage.cost for stage in story.stages]
    gains = [stage.answer.dissatisfaction for stage in story.stages]
    lower = [max(gain.relative_interval[0] for gain in of.values()) for of in gains]
    upper = [stage.answer.at_most for stage in story.stages]
    figure = new_figure()
    ribbon(figure, costs, lower, upper, WINNER, name="interval")
    for name, colour in zip(story.game.players.names, itertools.cycle(SEVERAL)):
        line = {"color": colour, "width": 1.3, "dash": "dot"}
        means = rounded([of[name].relative for of in gains])
        draw(figure, costs, means, mode="lines", line=line, name=literal(name))
    largest = rounded([stage.answer.epsilon for stage in story.stages])
    texts = [hover(_lines(stage)) for stage in story.stages]
    look = {"mode": "lines+markers", "line": {"color": WINNER, "width": 3}}
    draw(figure, costs, largest, text=texts, name="largest of all players", **look)
    head(figure, "What deviating alone would gain")
    lay_out(figure, story.title(), panels=300)
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
    return [f"cost {stage.cost:,.6g}", *gains, *params_lines(stage.params)]
