"""The picture of a race among given arms by matplotlib (of a search: `search.py`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.visualization.colours import QUIET, WINNER, level_colour
from mfhpo_optuna.visualization.matplotlib.search import draw_search
from mfhpo_optuna.visualization.matplotlib.style import (
    add_legend,
    head,
    import_pyplot,
    label_rows,
    new_figure,
    plain,
    reach,
)
from mfhpo_optuna.visualization.stories.choice import NEEDS_A_RACE, chosen_sampler
from mfhpo_optuna.visualization.stories.race import EXITS, RaceStory, tell_race
from mfhpo_optuna.visualization.stories.search import tell_search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EXIT_MARKS = {"eliminated": "x", "failed": "<", "duplicate": "o"}
_ROW_HEIGHT, _BAR = 0.22, 0.66  # in inches, in rows


def plot_race(study: optuna.Study, *, sampler: FidelitySampler | None = None) -> Figure:
    """Plot what every arm of a race is worth, when it left, and what it cost.

    The content, the arguments and the errors are those of
    `mfhpo_optuna.visualization.plot_race`; ImportError is raised if matplotlib is not installed.
    Colours of texts and backgrounds are those of matplotlib's current style.

    Examples
    --------
    >>> import matplotlib, optuna
    >>> matplotlib.use("agg")
    >>> from mfhpo_optuna import IISESampler
    >>> from mfhpo_optuna.visualization.matplotlib import plot_race
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     return trial.suggest_float("x", -1, 1) ** 2 / trial.suggest_int("epochs", 1, 9)
    >>> sampler = IISESampler("epochs", arms=4, epsilon=0.1, sigma=0.1, seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective, n_trials=20)
    >>> plot_race(study).axes[1].get_xlabel()
    'cost of the race'
    """
    pyplot = import_pyplot("plot_race")
    chosen = chosen_sampler(study, sampler, FidelitySampler, "plot_race", NEEDS_A_RACE)
    if chosen.searches(study):
        return draw_search(pyplot, tell_search(study, chosen))
    return _draw(pyplot, tell_race(study, chosen))


def _draw(pyplot: Any, story: RaceStory) -> Figure:
    figure: Figure
    figure, panels = new_figure(
        pyplot, story.title, [_ROW_HEIGHT * max(4, len(story.rows))], 0.0, ncols=2, sharey=True
    )
    worth, paid = panels[0]
    _draw_worth(worth, story)
    _draw_paid(paid, story)
    worth.set_xlabel(plain(story.value_axis))
    worth.set_xlim(story.value_span)
    more = f" ({story.omitted} arms are not shown)" if story.omitted else ""
    paid.set_xlabel(f"{story.cost_axis}{more}")
    paid.set_xlim(0.0, 1.02 * story.cost)
    paid.tick_params(axis="y", length=0)
    head(worth, "What it is worth")
    head(paid, "When it left, and its cost")
    label_rows(worth, [row.label for row in story.rows], story.has_winner)
    add_legend(figure, (paid, worth))
    return figure


def _draw_worth(axes: Any, story: RaceStory) -> None:
    low, high = story.value_span
    n_levels = len(story.levels)
    for place, row in enumerate(story.rows):
        if not math.isfinite(row.mean):
            continue
        colour = level_colour(row.level, n_levels)
        below, above = reach(row.mean, row.interval)
        is_winner = story.has_winner and place == 0
        # Beyond the axis, an arrow at its edge.
        mark = "<" if row.mean < low else ">" if row.mean > high else "o"
        axes.errorbar(
            min(max(row.mean, low), high),
            place,
            xerr=[[below], [above]],
            fmt="*" if is_winner else mark,
            color=WINNER if is_winner else colour,
            markersize=13 if is_winner else 5,
            markerfacecolor=None if is_winner or row.level == n_levels - 1 else "none",
            elinewidth=4 if is_winner else 1.8,
            label=plain(row.label) if is_winner else None,
        )
        if is_winner and below + above > 0.0:
            axes.axvspan(row.mean - below, row.mean + above, color=WINNER, alpha=0.16, linewidth=0)


def _draw_paid(axes: Any, story: RaceStory) -> None:
    places = range(len(story.rows))
    lanes = [row.left_at for row in story.rows]
    axes.barh(places, lanes, height=_BAR, color=QUIET, alpha=0.22, label="in the race")
    for level, name in enumerate(story.levels):
        stretches = [
            (place, begin, end - begin)
            for place, row in enumerate(story.rows)
            for at, begin, end in row.paid
            if at == level
        ]
        if stretches:
            at, begins, lengths = zip(*stretches, strict=True)
            colour = level_colour(level, len(story.levels))
            # An edge, or stretches of less than a pixel would not be seen.
            axes.barh(
                at,
                lengths,
                left=begins,
                height=_BAR,
                color=colour,
                edgecolor=colour,
                linewidth=0.4,
                label=plain(name),
            )
    for reason, name in EXITS.items():
        gone = [(row.left_at, place) for place, row in enumerate(story.rows) if row.exit == reason]
        if gone:
            axes.scatter(
                *zip(*gone, strict=True),
                marker=_EXIT_MARKS[reason],
                s=26,
                color=QUIET,
                linewidths=1.5,
                clip_on=False,
                zorder=3,
                label=name,
            )
