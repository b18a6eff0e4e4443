"""Slices through the recommended profile: what players gain by moving one parameter alone."""

from html import escape
from typing import Any

import numpy as np
from scipy.stats import norm

from mfhpo.knowledge.arrays import FloatArray
from mfhpo_optuna.visualization.games.heat_maps import axis_type, axis_values, places, star
from mfhpo_optuna.visualization.games.story import NashStory
from mfhpo_optuna.visualization.style import (
    INK,
    LEFT,
    faded,
    lay_out,
    level_colour,
    new_figure,
    rounded,
)


def draw_slices(story: NashStory, title: str) -> Any:
    """One row for each player, one panel for each of its parameters."""
    game, known = story.game, story.policy.actions.parameters
    rows = [[name for name in own if name in known] for own in game.players.owned.values()]
    n_columns = max(len(row) for row in rows)
    figure = new_figure(
        rows=len(rows),
        cols=n_columns,
        vertical_spacing=0.35 / len(rows),
        specs=[[{} if column < len(row) else None for column in range(n_columns)] for row in rows],
    )
    for player, row in enumerate(rows):
        owner = escape(game.players.names[player])
        for column, parameter in enumerate(row):
            panel = {"row": player + 1, "col": column + 1}
            _draw(figure, story, player, parameter, panel)
            figure.update_xaxes(
                title=f"{escape(parameter)} ({owner})", type=axis_type(story, parameter), **panel
            )
        figure.update_yaxes(title=f"gain of {owner}", row=player + 1, col=1)
    height = 160 + 280 * len(rows)
    lay_out(figure, title, height=height, legend_y=-0.35 / len(rows))
    return figure


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
    deviations = float(norm.ppf((1.0 + policy.probability) / 2.0))
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
        x=[str(value) if is_choice else value],
        y=[0.0],
        mode="markers",
        marker=star(13),
        legendgroup="answer",
        name="recommended",
        **common,
    )
    figure.update_yaxes(zeroline=True, zerolinecolor=INK, zerolinewidth=1, **panel)
