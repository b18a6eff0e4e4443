"""The picture of a search and its certificate, drawn by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mfhpo_optuna.visualization.colours import QUIET, WINNER, level_colour
from mfhpo_optuna.visualization.matplotlib.style import (
    add_legend,
    head,
    label_rows,
    new_figure,
    plain,
    reach,
)
from mfhpo_optuna.visualization.stories.search import Mark, SearchStory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOP_HEIGHT, _GAP, _ROW_HEIGHT = 2.9, 0.85, 0.27  # in inches


def draw_search(pyplot: Any, story: SearchStory) -> Figure:
    """The figure that `plot_race` returns for a search."""
    rows = [_ROW_HEIGHT * len(story.finalists)] if story.finalists else []
    figure: Figure
    figure, panels = new_figure(pyplot, story.title, [_TOP_HEIGHT, *rows], _GAP)
    top = panels[0, 0]
    _draw_evaluations(top, story)
    _draw_answer(top, story)
    top.set_xlabel(story.cost_axis)
    top.set_ylabel(plain(story.value_axis))
    top.set_xlim(0.0, 1.02 * story.cost)
    top.set_ylim(story.value_span)
    head(top, "What the search saw" + (", then new evaluations" * bool(story.finalists)))
    if rows:
        _draw_shortlist(panels[1, 0], story)
    add_legend(figure, (top,))
    return figure


def _draw_evaluations(axes: Any, story: SearchStory) -> None:
    n_levels = len(story.levels)
    for level, (name, marks) in enumerate(zip(story.levels, story.searched, strict=True)):
        size = 22 if level == n_levels - 1 else 9
        colour = level_colour(level, n_levels)
        axes.scatter(*_points(marks), s=size, color=colour, label=plain(name))
    if story.replicates:
        colour = level_colour(n_levels - 1, n_levels)
        axes.scatter(
            *_points(story.replicates),
            s=22,
            marker="D",
            facecolors="none",
            edgecolors=colour,
            label="evaluated again",
        )
    if story.failed:
        axes.scatter(
            *_points(story.failed), s=22, marker="x", color=QUIET, clip_on=False, label="failed"
        )
    if story.cost_of_search is not None:
        axes.axvline(story.cost_of_search, color=QUIET, linewidth=1, linestyle=":")


def _draw_answer(axes: Any, story: SearchStory) -> None:
    if story.best:
        axes.step(
            [*(mark.cost for mark in story.best), story.cost],
            [*(mark.value for mark in story.best), story.best[-1].value],
            where="post",
            color=QUIET,
            linewidth=1.5,
            label=plain(story.best_label),
        )
    label = plain(story.answer_label)
    if story.answer:
        axes.plot(*_points(story.answer), color=WINNER, linewidth=2, marker="o", label=label)
    if story.answer_replicates:
        again = _points(story.answer_replicates)
        label = "" if story.answer else label
        axes.scatter(*again, s=32, marker="D", color=WINNER, zorder=3, label=label)


def _points(marks: Sequence[Mark]) -> tuple[list[float], list[float]]:
    return [mark.cost for mark in marks], [mark.value for mark in marks]


def _draw_shortlist(axes: Any, story: SearchStory) -> None:
    colour = level_colour(len(story.levels) - 1, len(story.levels))
    for place, finalist in enumerate(story.finalists):
        axes.scatter(finalist.claim, place, s=40, facecolors="none", edgecolors=QUIET, zorder=3)
        if not math.isfinite(finalist.mean):
            continue
        below, above = reach(finalist.mean, finalist.interval)
        is_winner = story.has_winner and place == 0
        axes.plot(
            [finalist.claim, finalist.mean], [place] * 2, color=QUIET, linewidth=1, linestyle=":"
        )
        axes.errorbar(
            finalist.mean,
            place,
            xerr=[[below], [above]],
            fmt="*" if is_winner else "o",
            color=WINNER if is_winner else colour,
            markersize=13 if is_winner else 5,
            elinewidth=4 if is_winner else 1.8,
        )
        if is_winner and below + above > 0.0:
            low, high = finalist.interval
            axes.axvspan(low, high, color=WINNER, alpha=0.16, linewidth=0)
    axes.set_xlim(story.finalist_span)
    axes.set_xlabel(plain(story.value_axis))
    head(axes, "The finalists (○ what the search had seen)")
    label_rows(axes, [finalist.label for finalist in story.finalists], story.has_winner)
