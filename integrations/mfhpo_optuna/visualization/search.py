"""The picture of a search and its certificate, drawn by plotly."""

import math
from collections.abc import Sequence
from typing import Any

from mfhpo_optuna.visualization.colours import QUIET, WINNER, level_colour
from mfhpo_optuna.visualization.stories.search import Finalist, Mark, SearchStory
from mfhpo_optuna.visualization.style import (
    band,
    head,
    hover,
    label_rows,
    lay_out,
    literal,
    new_figure,
    rounded,
    rule,
)

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000
_TOP, _BOTTOM = {"row": 1, "col": 1}, {"row": 2, "col": 1}
_TOP_HEIGHT, _GAP, _ROW_HEIGHT = 280, 76, 26  # in pixels


def draw_search(story: SearchStory) -> Any:
    """The figure that `plot_race` returns for a search."""
    rows = _ROW_HEIGHT * len(story.finalists)
    panels = _TOP_HEIGHT + bool(rows) * (_GAP + rows)
    figure = new_figure(
        rows=1 + bool(rows),
        cols=1,
        row_heights=[_TOP_HEIGHT, rows][: 1 + bool(rows)],
        vertical_spacing=_GAP / panels,
    )
    _draw_evaluations(figure, story)
    _draw_best(figure, story)
    _draw_answer(figure, story)
    _draw_failures(figure, story)
    if story.cost_of_search is not None:
        rule(figure, story.cost_of_search)
    head(figure, "What the search saw" + (", then new evaluations" * bool(story.finalists)))
    if story.finalists:
        _draw_shortlist(figure, story)
    lay_out(figure, story.title, panels=panels, legend_lines=3)
    figure.update_xaxes(
        title_text=story.cost_axis, range=[0.0, 1.02 * story.cost], nticks=7, **_TOP
    )
    figure.update_yaxes(title_text=story.value_axis, range=list(story.value_span), **_TOP)
    figure.update_yaxes(zeroline=False)
    return figure


def _draw_evaluations(figure: Any, story: SearchStory) -> None:
    n_levels = len(story.levels)
    are_few = sum(map(len, story.searched)) <= _MOST_DRAWN_ONE_BY_ONE
    add = figure.add_scatter if are_few else figure.add_scattergl
    for level, (name, marks) in enumerate(zip(story.levels, story.searched, strict=True)):
        is_target = level == n_levels - 1
        marker = {
            "size": 7 if is_target else 5,
            "opacity": 1.0 if is_target else 0.7,
            "color": level_colour(level, n_levels),
        }
        add(**_points(marks), marker=marker, name=literal(name))
    if story.replicates:
        marker = {
            "symbol": "diamond-open",
            "size": 7,
            "color": level_colour(n_levels - 1, n_levels),
        }
        add(**_points(story.replicates), marker=marker, name="evaluated again")


def _draw_best(figure: Any, story: SearchStory) -> None:
    if not story.best:
        return
    texts = [hover(mark.lines) for mark in story.best]
    figure.add_scatter(
        x=[*(mark.cost for mark in story.best), story.cost],
        y=[*(mark.value for mark in story.best), story.best[-1].value],
        text=[*texts, texts[-1]],
        mode="lines",
        line={"color": QUIET, "width": 1.8, "shape": "hv"},
        name=literal(story.best_label),
        **_TOP,
    )


def _draw_answer(figure: Any, story: SearchStory) -> None:
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    for marks, symbol, mode in (
        (story.answer_replicates, "diamond", "markers"),
        (story.answer, "circle", "lines+markers"),
    ):
        if marks:
            figure.add_scatter(
                **_points(marks) | {"mode": mode},
                marker={"symbol": symbol, "size": 9, "color": WINNER},
                line={"color": WINNER, "width": 2.5},
                legendgroup="answer",
                showlegend=marks is (story.answer or story.answer_replicates),
                name=literal(story.answer_label),
            )


def _draw_failures(figure: Any, story: SearchStory) -> None:
    if story.failed:
        marker = {"symbol": "x-thin", "size": 7, "line": {"color": QUIET, "width": 1.5}}
        figure.add_scatter(**_points(story.failed), marker=marker, cliponaxis=False, name="failed")


def _points(marks: Sequence[Mark]) -> dict[str, Any]:
    return {
        "x": rounded([mark.cost for mark in marks]),
        "y": rounded([mark.value for mark in marks]),
        "text": [hover(mark.lines) for mark in marks],
        "mode": "markers",
        **_TOP,
    }


def _draw_shortlist(figure: Any, story: SearchStory) -> None:
    head(figure, "The finalists (○ what the search had seen)", panel=2)
    places = range(len(story.finalists))
    texts = [hover(finalist.lines) for finalist in story.finalists]
    luck_x: list[float | None] = []
    luck_y: list[float | None] = []
    for place, finalist in enumerate(story.finalists):
        luck_x += [finalist.claim, finalist.mean, None]
        luck_y += [place, place, None]
    figure.add_scatter(
        x=luck_x,
        y=luck_y,
        mode="lines",
        line={"color": QUIET, "width": 1, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
        **_BOTTOM,
    )
    colour = level_colour(len(story.levels) - 1, len(story.levels))
    known = [place for place in places if math.isfinite(story.finalists[place].mean)]
    _draw_means(figure, story, known, {"color": colour, "size": 8}, 2.5)
    if story.has_winner and 0 in known:
        star = {"color": WINNER, "size": 16, "symbol": "star"}
        _draw_means(figure, story, [0], star, 5)
        interval = story.finalists[0].interval
        if math.isfinite(interval[1] - interval[0]):
            band(figure, interval, WINNER, "2")
    figure.add_scatter(
        x=rounded([finalist.claim for finalist in story.finalists]),
        y=list(places),
        text=texts,
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": QUIET, "line_width": 2},
        showlegend=False,
        **_BOTTOM,
    )
    figure.update_xaxes(
        title_text=story.value_axis,
        range=list(story.finalist_span),
        zeroline=False,
        nticks=7,
        **_BOTTOM,
    )
    label_rows(figure, [finalist.label for finalist in story.finalists], story.has_winner, _BOTTOM)


def _draw_means(
    figure: Any,
    story: SearchStory,
    places: Sequence[int],
    marker: dict[str, Any],
    thickness: float,
) -> None:
    shown = [story.finalists[place] for place in places]
    figure.add_scatter(
        x=rounded([finalist.mean for finalist in shown]),
        y=list(places),
        error_x={
            "array": rounded([_radius(finalist) for finalist in shown]),
            "thickness": thickness,
            "width": 0,
            "color": marker["color"],
        },
        text=[hover(finalist.lines) for finalist in shown],
        mode="markers",
        marker=marker,
        showlegend=False,
        **_BOTTOM,
    )


def _radius(finalist: Finalist) -> float:
    radius = (finalist.interval[1] - finalist.interval[0]) / 2.0
    return radius if math.isfinite(radius) else 0.0
