"""The picture of how near to an equilibrium the recommendation was, over what was paid."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

import optuna

from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.visualization.games.story import NashStory, Stage
from mfhpo_optuna.visualization.style import (
    INK,
    WINNER,
    faded,
    lay_out,
    new_figure,
    params_text,
    rounded,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

_PLAYER_COLOURS = ("rgb(0, 114, 178)", "rgb(0, 158, 115)", "rgb(204, 121, 167)", "rgb(86, 86, 86)")


def plot_dissatisfaction(study: optuna.Study, *, sampler: NashSampler | None = None) -> go.Figure:
    """Plot what players would gain by deviating from the recommended profile, over the cost.

    Gains are in standard deviations of each player's objective, in which players can be compared.
    The thick line is the largest mean of all players, in a band from the largest lower end to the
    largest upper end of their intervals; thin lines are each player's mean. At each cost, it is
    the recommendation that would have been given there, by the model that was fitted there: some
    twenty of them are computed anew.

    The arguments, the figure and the errors are as for `plot_race`, of `NashSampler`.
    """
    story = NashStory(study, sampler, "plot_dissatisfaction")
    costs = [stage.cost for stage in story.stages]
    gains = [stage.answer.dissatisfaction for stage in story.stages]
    lower = [max(gain.relative_interval[0] for gain in of.values()) for of in gains]
    upper = [stage.answer.at_most for stage in story.stages]
    figure = new_figure()
    figure.add_scatter(
        x=[*costs, *reversed(costs)],
        y=rounded([*upper, *reversed(lower)]),
        fill="toself",
        fillcolor=faded(WINNER, 0.18),
        line={"width": 0},
        hoverinfo="skip",
        name=f"interval, probability {story.answer.answer.probability:g}",
    )
    for name, colour in zip(story.game.players.names, itertools.cycle(_PLAYER_COLOURS)):
        figure.add_scatter(
            x=costs,
            y=rounded([of[name].relative for of in gains]),
            mode="lines",
            line={"color": colour, "width": 1, "dash": "dot"},
            name=escape(name),
        )
    figure.add_scatter(
        x=costs,
        y=rounded([stage.answer.epsilon for stage in story.stages]),
        text=[_describe(stage) for stage in story.stages],
        mode="lines+markers",
        line={"color": WINNER, "width": 2.5},
        name="largest of all players",
    )
    lay_out(figure, _title(story), height=520)
    figure.update_layout(font={"color": INK})
    figure.update_xaxes(title="cost paid", rangemode="tozero")
    figure.update_yaxes(
        title="gain by deviating, in standard deviations of the objective", rangemode="tozero"
    )
    return figure


def _title(story: NashStory) -> str:
    answer = story.answer.answer
    head = (
        f"Nobody gains more than {answer.epsilon:.3g} standard deviations by deviating alone (at "
        f"most {answer.at_most:.3g})"
    )
    state = "" if answer.finished else ", not finished"
    paid = (
        f"after {len(story.played)} trials, {answer.n_evaluations} of them at the target; cost "
        f"{answer.cost:.6g} of {answer.budget:.6g}{state}"
    )
    return f"{head}<br><sup>{paid}</sup>"


def _describe(stage: Stage) -> str:
    gains = "<br>".join(
        f"{escape(name)} would gain {gain.mean:.4g} in [{gain.interval[0]:.4g}, "
        f"{gain.interval[1]:.4g}]"
        for name, gain in stage.answer.dissatisfaction.items()
    )
    return f"cost {stage.cost:.6g}<br>{gains}<br>{params_text(stage.params)}"
