"""Slices through the recommended profile: what players gain by moving one parameter alone."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from mfhpo.knowledge.arrays import FloatArray
from mfhpo_optuna.visualization.colours import QUIET, faded, level_colour
from mfhpo_optuna.visualization.games.heat_maps import (
    axis_type,
    axis_values,
    places,
    shown_value,
    star,
)
from mfhpo_optuna.visualization.games.story import NashStory
from mfhpo_optuna.visualization.style import LEFT, head, lay_out, literal, new_figure, rounded

_HEIGHT, _GAP = 180, 80  # of a panel and between two, in pixels


def draw_slices(story: NashStory) -> Any:
    """One panel for each parameter, two in a row, under its owner's name."""
    game, known = story.game, story.policy.actions.parameters
    owned = [
        (player, name)
        for player, names in enumerate(game.players.owned.values())
        for name in names
        if name in known
    ]
    n_rows = (len(owned) + 1) // 2
    panels = _HEIGHT * n_rows + _GAP * (n_rows - 1)
    figure = new_figure(
        rows=n_rows, cols=2, vertical_spacing=_GAP / panels, horizontal_spacing=0.16
    )
    for place, (player, parameter) in enumerate(owned):
        panel = {"row": place // 2 + 1, "col": place % 2 + 1}
        _draw(figure, story, player, parameter, panel)
        figure.update_xaxes(title_text=literal(parameter), **_ticks(story, parameter), **panel)
        head(figure, f"gain of {game.players.names[player]}", panel=place + 1)
    if len(owned) % 2:
        figure.update_xaxes(visible=False, row=n_rows, col=2)
        figure.update_yaxes(visible=False, row=n_rows, col=2)
    lay_out(figure, story.title(), panels=panels)
    return figure


def _ticks(story: NashStory, parameter: str) -> dict[str, Any]:
    """An axis' type, and as few ticks as a phone has room for."""
    kind = axis_type(story, parameter)
    ends = axis_values(story, parameter)
    if kind == "log" and ends[-1] >= 10.0 * ends[0]:
        return {"type": kind, "dtick": 1}
    return {"type": kind, "nticks": 5}


def gains_by_moving(story: NashStory, player: int, parameter: str) -> tuple[FloatArray, FloatArray]:
    """What a player would gain by moving one parameter away from the recommended profile.

    Means and half-widths of the intervals at each of the parameter's places.
    """
    policy, profile = story.policy, story.answer.answer.profile
    moved = [{**profile, parameter: place} for place in places(story, parameter)]
    features = policy.actions.features_of([profile, *moved])
    model = policy.models[player]
    means = model.mean(features, model.top)
    covariances = model.covariances(features, model.top)
    # The variance of a difference: what is uncertain of both alike does not count.
    variances = np.diag(covariances)[1:] + covariances[0, 0] - 2.0 * covariances[0, 1:]
    deviations = float(ndtri((1.0 + policy.probability) / 2.0))
    return means[1:] - means[0], deviations * np.sqrt(np.maximum(variances, 0.0))


def _draw(
    figure: Any, story: NashStory, player: int, parameter: str, panel: dict[str, int]
) -> None:
    means, half_widths = gains_by_moving(story, player, parameter)
    values = axis_values(story, parameter)
    lower, upper = means - half_widths, means + half_widths
    colour = level_colour(1, 2)
    is_choice = axis_type(story, parameter) == "category"
    common = {"showlegend": panel == LEFT, **panel}
    if not is_choice:
        figure.add_scatter(
            x=[*values, *reversed(values)],
            y=rounded([*upper, *lower[::-1]]),
            fill="toself",
            fillcolor=faded(colour, 0.2),
            line={"width": 0},
            hoverinfo="skip",
            legendgroup="interval",
            name=f"interval, probability {story.policy.probability:g}",
            **common,
        )
    bars = {"error_y": {"array": rounded(half_widths.tolist())}} if is_choice else {}
    figure.add_scatter(
        x=values,
        y=rounded(means.tolist()),
        mode="markers" if is_choice else "lines",
        line={"color": colour, "width": 2},
        marker={"color": colour},
        legendgroup="gain",
        name="gain by moving this parameter alone",
        **bars,
        **common,
    )
    value = story.answer.params[parameter]
    figure.add_scatter(
        x=[shown_value(story, parameter, value)],
        y=[0.0],
        mode="markers",
        marker=star(13),
        legendgroup="answer",
        name="recommended",
        **common,
    )
    figure.update_yaxes(zeroline=True, zerolinecolor=QUIET, zerolinewidth=1, **panel)
