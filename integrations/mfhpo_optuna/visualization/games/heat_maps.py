"""Maps of a game of two players with one parameter each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution

from mfhpo.knowledge.arrays import FloatArray
from mfhpo.search import OneOf
from mfhpo_optuna.visualization.colours import SEVERAL, WINNER, level_colour
from mfhpo_optuna.visualization.games.story import NashStory, Played
from mfhpo_optuna.visualization.stories.words import better, params_lines
from mfhpo_optuna.visualization.style import head, hover, lay_out, literal, new_figure

_FINE = 41  # values of a number's range
_PANELS = ({"row": 1, "col": 1}, {"row": 2, "col": 1}, {"row": 2, "col": 2})
_HEIGHTS, _GAP = (300, 170), 80  # in pixels
_GREYS = [[0.0, "#fbfbf9"], [1.0, "#6b6b6b"]]


def draw_heat_maps(story: NashStory) -> Any:
    """The largest gain by deviating and both players' objectives, over both parameters.

    The game has two players with one parameter each.
    """
    players, signs = story.game.players.names, story.game.signs
    panels = sum(_HEIGHTS) + _GAP
    figure = new_figure(
        rows=2,
        cols=2,
        specs=[[{"colspan": 2}, None], [{}, {}]],
        row_heights=_HEIGHTS,
        vertical_spacing=_GAP / panels,
        horizontal_spacing=0.14,
    )
    x, y = story.policy.actions.parameters
    utilities = _utilities(story, x, y)
    own = [sign * of for sign, of in zip(signs, utilities, strict=True)]
    gain = np.max(_gains(story, utilities), axis=0)
    names = [
        "largest gain by deviating",
        *(f"{n} ({better(s)})" for n, s in zip(players, signs, strict=True)),
    ]
    is_light_high = [False, *(sign > 0.0 for sign in signs)]
    for place, (values, name) in enumerate(zip([gain, *own], names, strict=True)):
        figure.add_heatmap(
            x=axis_values(story, x),
            y=axis_values(story, y),
            z=[[float(f"{z:.5g}") for z in row] for row in values.T],
            colorscale=_GREYS,
            reversescale=is_light_high[place],
            zmin=0.0 if place == 0 else None,
            showscale=False,
            hovertemplate="%{x}, %{y}: %{z}<extra></extra>",
            name=literal(name),
            **_PANELS[place],
        )
    _draw_responses(figure, story, utilities)
    _draw_played(figure, story)
    for panel in _PANELS:
        _draw_answer(figure, story, panel)
    head(figure, "Largest gain by deviating (white: none)")
    head(figure, names[1], panel=2)
    head(figure, names[2], panel=3)
    lay_out(figure, story.title(), panels=panels, legend_lines=3)
    figure.update_xaxes(
        type=axis_type(story, x), title_text=f"{literal(x)} ({literal(players[0])})", nticks=5
    )
    figure.update_yaxes(type=axis_type(story, y), nticks=5)
    figure.update_yaxes(title_text=f"{literal(y)} ({literal(players[1])})", col=1)
    return figure


def _utilities(story: NashStory, x: str, y: str) -> list[FloatArray]:
    """Each player's mean, higher is better: a row for each of the first's actions."""
    policy = story.policy
    rows, columns = places(story, x), places(story, y)
    features = policy.actions.features_of(
        [{x: row, y: column} for row in rows for column in columns]
    )
    shape = len(rows), len(columns)
    return [model.mean(features, model.top).reshape(shape) for model in policy.models]


def _gains(story: NashStory, utilities: list[FloatArray]) -> list[FloatArray]:
    """What each player would gain by its best response, in standard deviations."""
    stated = story.answer.answer.dissatisfaction.values()
    return [
        (of.max(axis=player, keepdims=True) - of) / gain.unit
        for player, (of, gain) in enumerate(zip(utilities, stated, strict=True))
    ]


def _draw_responses(figure: Any, story: NashStory, utilities: list[FloatArray]) -> None:
    """Draw each player's best action against every action of the other."""
    x, y = story.policy.actions.parameters
    values = axis_values(story, x), axis_values(story, y)
    best_x, best_y = utilities[0].argmax(axis=0), utilities[1].argmax(axis=1)
    curves = (
        ([values[0][place] for place in best_x], values[1]),
        (values[0], [values[1][place] for place in best_y]),
    )
    looks = zip(story.game.players.names, ("diamond", "square"), SEVERAL, strict=False)
    for (across, up), (player, symbol, colour) in zip(curves, looks, strict=True):
        figure.add_scatter(
            x=across,
            y=up,
            mode="markers",
            marker={"symbol": symbol, "size": 5, "color": colour},
            hoverinfo="skip",
            name=f"best response of {literal(player)}",
            **_PANELS[0],
        )


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


def _draw_played(figure: Any, story: NashStory) -> None:
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
            name=literal(name),
            **_PANELS[0],
        )


def _draw_answer(figure: Any, story: NashStory, panel: dict[str, int]) -> None:
    figure.add_scatter(
        **_at(story, [story.answer.answer.profile]),
        text=[hover(["recommended", *params_lines(story.answer.params)])],
        mode="markers",
        marker=star(18 if panel == _PANELS[0] else 13),
        name="recommended",
        legendgroup="answer",
        showlegend=panel == _PANELS[0],
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
    return shown_value(story, parameter, story.game.space.value(parameter, place))


def shown_value(story: NashStory, parameter: str, value: Any) -> Any:
    """A parameter's value on an axis; of a choice, its words, which are no markup."""
    if axis_type(story, parameter) != "category":
        return value
    return literal(str(value))


def _describe(story: NashStory, played: Played) -> str:
    values = ", ".join(
        f"{player} {'failed' if value is None else f'{value:.5g}'}"
        for player, value in zip(story.game.players.names, played.values, strict=True)
    )
    level = story.level_names()[story.level_index(played.query)]
    return hover([f"trial {played.trial}: {values}", level, *params_lines(played.params)])
