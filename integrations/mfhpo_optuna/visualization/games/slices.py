"""Slices through the recommended profile: what players gain by moving one parameter alone."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from mfhpo_optuna.visualization.games.heat_maps import axis_type, axis_values, places
from mfhpo_optuna.visualization.games.story import NashStory
from mfhpo_optuna.visualization.style import INK, WINNER, faded, level_colour

__all__ = ["Slice", "draw_slices", "slice_of"]

FloatArray: TypeAlias = npt.NDArray[np.float64]


class Slice(NamedTuple):
    """What a player would gain by moving one of its parameters, at each of its places."""

    means: FloatArray
    half_widths: FloatArray


def draw_slices(go: Any, make_subplots: Any, story: NashStory) -> Any:
    """One row for each player, one panel for each of its parameters.

    Parameters
    ----------
    go, make_subplots
        Plotly's.
    story
        What is drawn.
    """
    rows = [_owned(story, player) for player in range(len(story.game.players))]
    n_columns = max(len(row) for row in rows)
    figure = make_subplots(
        rows=len(rows),
        cols=n_columns,
        vertical_spacing=0.35 / len(rows),
        specs=[[{} if column < len(row) else None for column in range(n_columns)] for row in rows],
    )
    for player, row in enumerate(rows):
        for column, parameter in enumerate(row):
            place = {"row": player + 1, "col": column + 1}
            _draw(go, figure, story, player, parameter, place, first=player == column == 0)
            owner = escape(story.game.players.names[player])
            figure.update_xaxes(
                title=f"{escape(parameter)} ({owner})", type=axis_type(story, parameter), **place
            )
        owner = escape(story.game.players.names[player])
        figure.update_yaxes(title=f"gain of {owner}", row=player + 1, col=1)
    figure.update_layout(
        legend={"orientation": "h", "x": 0.0, "y": -0.35 / len(rows), "yanchor": "top"},
        margin={"t": 100, "r": 30},
        height=160 + 280 * len(rows),
    )
    return figure


def slice_of(story: NashStory, player: int, parameter: str) -> Slice:
    """What a player would gain by moving one parameter away from the recommended profile.

    Parameters
    ----------
    story
        With the recommended profile.
    player
        Its index.
    parameter
        The parameter's name.
    """
    policy, profile = story.policy, story.answer.answer.profile
    moved = [{**profile, parameter: place} for place in places(story, parameter)]
    features = policy.actions.features_of([profile, *moved])
    model = policy.models[player]
    means = model.mean(features, model.top)
    covariances = model.covariances(features, model.top)
    # The variance of a difference: what is uncertain of both alike does not count.
    variances = np.diag(covariances)[1:] + covariances[0, 0] - 2.0 * covariances[0, 1:]
    deviations = float(norm.ppf((1.0 + policy.probability) / 2.0))
    return Slice(means[1:] - means[0], deviations * np.sqrt(np.maximum(variances, 0.0)))


def _owned(story: NashStory, player: int) -> list[str]:
    own = story.game.players.owned[story.game.players.names[player]]
    return [name for name in own if name in story.policy.actions.parameters]


def _draw(
    go: Any,
    figure: Any,
    story: NashStory,
    player: int,
    parameter: str,
    place: dict[str, int],
    first: bool,
) -> None:
    gain = slice_of(story, player, parameter)
    values = axis_values(story, parameter)
    lower, upper = gain.means - gain.half_widths, gain.means + gain.half_widths
    colour = level_colour(1, 2)
    interval = f"interval, probability {story.policy.probability:g}"
    is_choice = axis_type(story, parameter) == "category"
    if not is_choice:
        figure.add_trace(
            go.Scatter(
                x=[*values, *reversed(values)],
                y=_rounded([*upper, *lower[::-1]]),
                fill="toself",
                fillcolor=faded(colour, 0.2),
                line={"width": 0},
                hoverinfo="skip",
                legendgroup="interval",
                showlegend=first,
                name=interval,
            ),
            **place,
        )
    bars = {"error_y": {"array": _rounded(gain.half_widths)}} if is_choice else {}
    figure.add_trace(
        go.Scatter(
            x=values,
            y=_rounded(gain.means),
            mode="markers" if is_choice else "lines",
            line={"color": colour, "width": 2},
            marker={"color": colour},
            legendgroup="gain",
            showlegend=first,
            name="gain by moving this parameter alone",
            **bars,
        ),
        **place,
    )
    value = story.answer.params[parameter]
    figure.add_trace(
        go.Scatter(
            x=[str(value) if is_choice else value],
            y=[0.0],
            mode="markers",
            marker={
                "symbol": "star",
                "size": 13,
                "color": WINNER,
                "line": {"color": "white", "width": 1},
            },
            legendgroup="answer",
            showlegend=first,
            name="recommended",
        ),
        **place,
    )
    figure.update_yaxes(zeroline=True, zerolinecolor=INK, zerolinewidth=1, **place)


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
