"""The picture of how near to an equilibrium the recommendation was, over what was paid."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.visualization.games.story import NashStory, Stage, sampler_of
from mfhpo_optuna.visualization.style import INK, WINNER, faded, import_plotly, params_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_dissatisfaction"]

_PLAYER_COLOURS = ("rgb(0, 114, 178)", "rgb(0, 158, 115)", "rgb(204, 121, 167)", "rgb(86, 86, 86)")


def plot_dissatisfaction(study: optuna.Study, *, sampler: NashSampler | None = None) -> go.Figure:
    """Plot what players would gain by deviating from the recommended profile, over the cost.

    Gains are in standard deviations of each player's objective, in which players can be compared.
    The thick line is the largest mean of all players, in a band from the largest lower end to the
    largest upper end of their intervals; thin lines are each player's mean. At each cost, it is
    the recommendation that would have been given there, by the model that was fitted there: some
    twenty of them are computed anew.

    See `plot_equilibrium` for the parameters, the figure and the errors.
    """
    go, _ = import_plotly()
    story = NashStory(study, sampler_of(study, sampler, "plot_dissatisfaction"))
    figure = go.Figure()
    costs = [stage.cost for stage in story.stages]
    _draw_band(go, figure, story, costs)
    for name, colour in zip(story.game.players.names, itertools.cycle(_PLAYER_COLOURS)):
        means = [stage.answer.dissatisfaction[name].relative for stage in story.stages]
        figure.add_trace(
            go.Scatter(
                x=costs,
                y=[_rounded(mean) for mean in means],
                mode="lines",
                line={"color": colour, "width": 1, "dash": "dot"},
                name=escape(name),
            )
        )
    figure.add_trace(
        go.Scatter(
            x=costs,
            y=[_rounded(stage.answer.epsilon) for stage in story.stages],
            text=[_describe(stage) for stage in story.stages],
            hovertemplate="%{text}<extra></extra>",
            mode="lines+markers",
            line={"color": WINNER, "width": 2.5},
            name="largest of all players",
        )
    )
    _lay_out(figure, story)
    return figure


def _draw_band(go: Any, figure: Any, story: NashStory, costs: list[float]) -> None:
    lower = [
        max(gain.relative_interval[0] for gain in stage.answer.dissatisfaction.values())
        for stage in story.stages
    ]
    upper = [stage.answer.at_most for stage in story.stages]
    figure.add_trace(
        go.Scatter(
            x=[*costs, *reversed(costs)],
            y=[_rounded(bound) for bound in [*upper, *reversed(lower)]],
            fill="toself",
            fillcolor=faded(WINNER, 0.18),
            line={"width": 0},
            hoverinfo="skip",
            name=f"interval, probability {story.answer.answer.probability:g}",
        )
    )


def _lay_out(figure: Any, story: NashStory) -> None:
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
    figure.update_layout(
        template="plotly_white",
        title={"text": f"{head}<br><sup>{paid}</sup>", "x": 0.01, "xanchor": "left"},
        legend={"orientation": "h", "x": 0.0, "y": -0.13, "yanchor": "top"},
        font={"color": INK},
        margin={"t": 100, "r": 30},
        height=520,
    )
    figure.update_xaxes(title="cost paid", rangemode="tozero")
    figure.update_yaxes(
        title="gain by deviating, in standard deviations of the objective", rangemode="tozero"
    )


def _describe(stage: Stage) -> str:
    gains = "<br>".join(
        f"{escape(name)} would gain {gain.mean:.4g} in [{gain.interval[0]:.4g}, "
        f"{gain.interval[1]:.4g}]"
        for name, gain in stage.answer.dissatisfaction.items()
    )
    return f"cost {stage.cost:.6g}<br>{gains}<br>{params_text(stage.params)}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
