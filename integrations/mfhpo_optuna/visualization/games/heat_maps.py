"""Maps of a game of two players with one parameter each."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import CategoricalDistribution

from mfhpo.search import OneOf
from mfhpo_optuna.visualization.games.story import NashStory, Played
from mfhpo_optuna.visualization.style import WINNER, lay_out, level_colour, new_figure, params_text

_FINE = 41  # values of a number's range
_GREYS = [[0.0, "#fbfbf9"], [1.0, "#6b6b6b"]]


def draw_heat_maps(story: NashStory, title: str) -> Any:
    """Both players' objectives and the largest gain by deviating, over both parameters.

    The game has two players with one parameter each.
    """
    players, signs = story.game.players.names, story.game.signs
    better = ["higher" if sign > 0.0 else "lower" for sign in signs]
    titles = [f"{escape(n)} ({b} is better)" for n, b in zip(players, better, strict=True)]
    titles.append("largest gain by deviating, in standard deviations")
    figure = new_figure(
        rows=1, cols=3, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.09
    )
    x, y = story.policy.actions.parameters
    axes = {"x": axis_values(story, x), "y": axis_values(story, y)}
    lighter = [*(sign > 0.0 for sign in signs), False]
    for place, (values, name) in enumerate(zip(_maps(story, x, y), titles, strict=True)):
        panel = {"row": 1, "col": place + 1}
        right_end = figure.layout[f"xaxis{place + 1 if place else ''}"].domain[1]
        figure.add_heatmap(
            **axes,
            z=[[float(f"{z:.5g}") for z in row] for row in values.T],
            colorscale=_GREYS,
            reversescale=lighter[place],
            colorbar={"x": right_end + 0.005, "thickness": 9},
            hovertemplate="%{x}, %{y}: %{z}<extra></extra>",
            name=name,
            **panel,
        )
        _draw_played(figure, story, panel)
        _draw_way(figure, story, panel)
    lay_out(figure, title, height=520, legend_y=-0.16, top=120, right=60)
    figure.update_xaxes(type=axis_type(story, x), title=f"{escape(x)} ({escape(players[0])})")
    figure.update_yaxes(type=axis_type(story, y))
    figure.update_yaxes(title=f"{escape(y)} ({escape(players[1])})", col=1)
    return figure


def _maps(story: NashStory, x: str, y: str) -> list[npt.NDArray[np.float64]]:
    """Each player's objective, and the largest gain: a row for each of the first's actions."""
    policy = story.policy
    rows, columns = places(story, x), places(story, y)
    features = policy.actions.features_of(
        [{x: row, y: column} for row in rows for column in columns]
    )
    shape = len(rows), len(columns)
    utilities = [model.mean(features, model.top).reshape(shape) for model in policy.models]
    stated = story.answer.answer.dissatisfaction.values()
    gains = [
        (of.max(axis=player, keepdims=True) - of) / gain.unit
        for player, (of, gain) in enumerate(zip(utilities, stated, strict=True))
    ]
    own = [sign * of for sign, of in zip(story.game.signs, utilities, strict=True)]
    return [*own, np.max(gains, axis=0)]


def axis_values(story: NashStory, parameter: str) -> list[Any]:
    """Values of a parameter that stand for its range, in its order; choices as words."""
    return [_shown(story, parameter, place) for place in places(story, parameter)]


def places(story: NashStory, parameter: str) -> list[float]:
    """Where they are."""
    kind = story.policy.actions.parameters[parameter]
    if isinstance(kind, OneOf):
        return [float(index) for index in range(kind.n)]
    if kind.places and len(kind.places) <= 2 * _FINE:
        return list(kind.places)
    even = np.linspace(0.0, 1.0, _FINE)
    return [float(place) for place in np.unique(kind.snapped(even))]


def _draw_played(figure: Any, story: NashStory, panel: dict[str, int]) -> None:
    level_names = story.level_names()
    for level, name in enumerate(level_names):
        shown = [p for p in story.played if story.level_index(p.query) == level]
        figure.add_scatter(
            **_at(story, [p.query.profile for p in shown]),
            text=[_describe(story, p) for p in shown],
            mode="markers",
            marker={
                "symbol": ["circle" if None not in p.values else "x" for p in shown],
                "size": 7,
                "color": level_colour(level, len(level_names)),
                "line": {"color": "white", "width": 0.7},
            },
            legendgroup=name,
            showlegend=panel["col"] == 1,
            name=name,
            **panel,
        )


def _draw_way(figure: Any, story: NashStory, panel: dict[str, int]) -> None:
    way = {"mode": "lines", "line": {"color": WINNER, "width": 1.5}}
    end = {"mode": "markers", "marker": star(15)}
    for stages, name, look in (
        (story.stages, "way of the recommendation", way),
        ([story.answer], "recommended", end),
    ):
        figure.add_scatter(
            **_at(story, [stage.answer.profile for stage in stages]),
            text=[f"after cost {s.cost:.6g}<br>{params_text(s.params)}" for s in stages],
            name=name,
            legendgroup="answer",
            showlegend=panel["col"] == 1,
            **look,
            **panel,
        )


def _at(story: NashStory, profiles: list[Mapping[str, float]]) -> dict[str, list[Any]]:
    x, y = story.policy.actions.parameters
    return {
        "x": [_shown(story, x, profile[x]) for profile in profiles],
        "y": [_shown(story, y, profile[y]) for profile in profiles],
    }


def star(size: int) -> dict[str, Any]:
    """The mark of the recommended profile."""
    white = {"color": "white", "width": 1}
    return {"symbol": "star", "size": size, "color": WINNER, "line": white}


def axis_type(story: NashStory, parameter: str) -> str:
    """Of the axis that shows a parameter."""
    distribution = story.game.space.distributions[parameter]
    if isinstance(distribution, CategoricalDistribution):
        return "category"
    return "log" if getattr(distribution, "log", False) else "linear"


def _shown(story: NashStory, parameter: str, place: float) -> Any:
    value = story.game.space.value(parameter, place)
    return str(value) if axis_type(story, parameter) == "category" else value


def _describe(story: NashStory, played: Played) -> str:
    values = ", ".join(
        f"{escape(player)} {'failed' if value is None else f'{value:.5g}'}"
        for player, value in zip(story.game.players.names, played.values, strict=True)
    )
    level = story.level_names()[story.level_index(played.query)]
    return f"trial {played.trial}: {values}<br>{escape(level)}<br>{params_text(played.params)}"
