"""Maps of a game of two players with one parameter each."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution

from mfhpo.search import OneOf
from mfhpo_optuna.visualization.games.story import NashStory, Played, Stage
from mfhpo_optuna.visualization.style import WINNER, level_colour, params_text

__all__ = ["draw_heat_maps"]

_FINE = 41  # values of a number's range
_GREYS = [[0.0, "#fbfbf9"], [1.0, "#6b6b6b"]]


def draw_heat_maps(go: Any, make_subplots: Any, story: NashStory) -> Any:
    """Both players' objectives and the largest gain by deviating, over both parameters.

    The game has two players with one parameter each.
    """
    names = story.game.players.names
    better = ["higher" if sign > 0.0 else "lower" for sign in story.game.signs]
    titles = [f"{escape(n)} ({b} is better)" for n, b in zip(names, better, strict=True)]
    titles.append("largest gain by deviating, in standard deviations")
    figure = make_subplots(
        rows=1, cols=3, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.09
    )
    policy = story.policy
    first, second = policy.actions.parameters
    axes = [axis_values(story, first), axis_values(story, second)]
    profiles = [{first: x, second: y} for x in places(story, first) for y in places(story, second)]
    features = policy.actions.features_of(profiles)
    shape = len(axes[0]), len(axes[1])
    utilities = [model.mean(features, model.top).reshape(shape) for model in policy.models]
    stated = story.answer.answer.dissatisfaction.values()
    gains = np.max(
        [
            (of.max(axis=player, keepdims=True) - of) / gain.unit
            for player, (of, gain) in enumerate(zip(utilities, stated, strict=True))
        ],
        axis=0,
    )
    maps = [sign * of for sign, of in zip(story.game.signs, utilities, strict=True)]
    for col, (of, light) in enumerate(
        zip([*maps, gains], [*(sign > 0.0 for sign in story.game.signs), False], strict=True),
        start=1,
    ):
        figure.add_trace(
            go.Heatmap(
                x=axes[0],
                y=axes[1],
                z=[[float(f"{z:.5g}") for z in row] for row in of.T],
                colorscale=_GREYS,
                reversescale=light,
                colorbar={
                    "x": figure.layout[f"xaxis{col if col > 1 else ''}"].domain[1] + 0.005,
                    "thickness": 9,
                },
                hovertemplate="%{x}, %{y}: %{z}<extra></extra>",
                name=titles[col - 1],
            ),
            row=1,
            col=col,
        )
        _draw_played(go, figure, story, col)
        _draw_way(go, figure, story, col)
    _lay_out(figure, story)
    return figure


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


def _draw_played(go: Any, figure: Any, story: NashStory, col: int) -> None:
    first, second = story.policy.actions.parameters
    level_names = story.level_names()
    for level, name in enumerate(level_names):
        shown = [p for p in story.played if story.level_index(p.query) == level]
        figure.add_trace(
            go.Scatter(
                x=[_shown(story, first, p.query.profile[first]) for p in shown],
                y=[_shown(story, second, p.query.profile[second]) for p in shown],
                text=[_describe(story, p) for p in shown],
                hovertemplate="%{text}<extra></extra>",
                mode="markers",
                marker={
                    "symbol": ["circle" if None not in p.values else "x" for p in shown],
                    "size": 7,
                    "color": level_colour(level, len(level_names)),
                    "line": {"color": "white", "width": 0.7},
                },
                legendgroup=name,
                showlegend=col == 1,
                name=name,
            ),
            row=1,
            col=col,
        )


def _draw_way(go: Any, figure: Any, story: NashStory, col: int) -> None:
    first, second = story.policy.actions.parameters
    common = {"legendgroup": "answer", "showlegend": col == 1}

    def at(stages: list[Stage]) -> dict[str, Any]:
        return {
            "x": [_shown(story, first, s.answer.profile[first]) for s in stages],
            "y": [_shown(story, second, s.answer.profile[second]) for s in stages],
            "text": [f"after cost {s.cost:.6g}<br>{params_text(s.params)}" for s in stages],
            "hovertemplate": "%{text}<extra></extra>",
        }

    figure.add_trace(
        go.Scatter(
            **at(story.stages),
            mode="lines",
            line={"color": WINNER, "width": 1.5},
            name="way of the recommendation",
            **common,
        ),
        row=1,
        col=col,
    )
    figure.add_trace(
        go.Scatter(
            **at([story.answer]),
            mode="markers",
            marker=star(15),
            name="recommended",
            **common,
        ),
        row=1,
        col=col,
    )


def _lay_out(figure: Any, story: NashStory) -> None:
    figure.update_layout(
        legend={"orientation": "h", "x": 0.0, "y": -0.16, "yanchor": "top"},
        margin={"t": 120, "r": 60},
        height=520,
    )
    named = zip(story.policy.actions.parameters, story.game.players.names, strict=True)
    (x, row), (y, column) = named
    figure.update_xaxes(type=axis_type(story, x), title=f"{escape(x)} ({escape(row)})")
    figure.update_yaxes(type=axis_type(story, y))
    figure.update_yaxes(title=f"{escape(y)} ({escape(column)})", col=1)


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
