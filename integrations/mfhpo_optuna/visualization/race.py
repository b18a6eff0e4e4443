"""The picture of a race among given arms: who won, who left when (of a search: `search.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.visualization.colours import QUIET, WINNER, faded, level_colour
from mfhpo_optuna.visualization.search import draw_search
from mfhpo_optuna.visualization.stories.choice import NEEDS_A_RACE, chosen_sampler
from mfhpo_optuna.visualization.stories.race import EXITS, RaceStory, Row, tell_race
from mfhpo_optuna.visualization.stories.search import tell_search
from mfhpo_optuna.visualization.style import (
    LEFT,
    RIGHT,
    band,
    head,
    hover,
    label_rows,
    lay_out,
    literal,
    new_figure,
    require_plotly,
    rounded,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

_EXIT_MARKS = {"eliminated": "x-thin", "failed": "triangle-left", "duplicate": "circle-open"}
_BAR = 0.66  # height of a bar, in rows


def plot_race(study: optuna.Study, *, sampler: FidelitySampler | None = None) -> go.Figure:
    """Plot what every arm of a race is worth, when it left, and what it cost.

    Of a race among given arms: a row for each arm, the winner's on top, then the others in the
    order in which they left, the last one first. On the left, its mean and confidence interval, at
    the level where most was spent on it (no interval while it has too few values for one); the
    shaded band is the winner's interval. On the right,
    the race from its begin to its end: the grey lane ends where the arm left, and each coloured
    stretch is an evaluation of it, as long as what it cost. Colours are levels of the fidelity.

    Of a search by `SearchSampler`: on top, every evaluation over the cost; the step line is the
    best value at the target so far, which is what a search without a certificate would promise.
    Below, the shortlist: what the search had seen of each configuration, and its mean in new
    evaluations with an interval. The distance between the two was luck, as far as the interval can
    tell. A double click shows outliers, too.

    Parameters
    ----------
    study
        A study that was run with one of mfhpo's samplers; it need not have ended.
    sampler
        The sampler that it was run with, or one made with the same arguments. None: the study's.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; ``figure.write_html("race.html")`` saves it. Its template is plotly's default
        (``plotly.io.templates.default``), and may be changed afterwards.

    Raises
    ------
    ImportError
        If plotly is not installed.
    TypeError
        If the sampler does not run races.
    ValueError
        If no trial has told the levels of the fidelity yet.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import IISESampler, plot_race, seed_of
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 9)
    ...     return x**2 + np.random.default_rng(seed_of(trial)).normal(0, 0.1 / epochs)
    >>> study = optuna.create_study(sampler=IISESampler("epochs", arms=4, epsilon=0.1, seed=0))
    >>> study.optimize(objective)
    >>> plot_race(study).layout.xaxis2.title.text
    'cost of the race'
    """
    require_plotly("plot_race")
    chosen = chosen_sampler(study, sampler, FidelitySampler, "plot_race", NEEDS_A_RACE)
    if chosen.searches(study):
        return draw_search(tell_search(study, chosen))
    return _draw(tell_race(study, chosen))


def _draw(story: RaceStory) -> Any:
    figure = new_figure(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.5, 0.5], horizontal_spacing=0.03
    )
    _draw_lanes(figure, story)
    for level in range(len(story.levels)):
        _draw_worth(figure, story, level)
        _draw_paid(figure, story, level)
    _draw_winner(figure, story)
    _draw_exits(figure, story)
    head(figure, "What it is worth")
    head(figure, "When it left, and its cost", panel=2)
    n_rows = len(story.rows)
    lay_out(figure, story.title, panels=max(24, min(44, 480 // n_rows)) * n_rows)
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(
        title_text=story.value_axis, range=list(story.value_span), zeroline=False, nticks=6, **LEFT
    )
    more = f" ({story.omitted} arms are not shown)" if story.omitted else ""
    figure.update_xaxes(
        title_text=f"{story.cost_axis}{more}", range=[0.0, 1.02 * story.cost], nticks=6, **RIGHT
    )
    labels = [row.label for row in story.rows]
    for panel in (LEFT, RIGHT):
        label_rows(figure, labels, story.has_winner, panel)
    return figure


def _draw_worth(figure: Any, story: RaceStory, level: int) -> None:
    shown = [
        (place, row)
        for place, row in enumerate(story.rows)
        if row.level == level and math.isfinite(row.mean)
    ]
    is_target = level == len(story.levels) - 1
    colour = level_colour(level, len(story.levels))
    low, high = story.value_span
    figure.add_scatter(
        x=rounded([min(max(row.mean, low), high) for _, row in shown]),
        y=[place for place, _ in shown],
        error_x=_bars([row for _, row in shown]),
        text=[hover(row.lines) for _, row in shown],
        mode="markers",
        marker={
            "color": colour,
            "size": 8,
            # Beyond the axis, an arrow at its edge.
            "symbol": [
                "triangle-left"
                if row.mean < low
                else "triangle-right"
                if row.mean > high
                else "circle"
                if is_target
                else "circle-open"
                for _, row in shown
            ],
        },
        cliponaxis=False,
        legendgroup=f"level {level}",
        showlegend=False,
        **LEFT,
    )


def _bars(rows: Sequence[Row]) -> dict[str, Any]:
    bounded = [math.isfinite(row.interval[1] - row.interval[0]) for row in rows]
    pairs = list(zip(rows, bounded, strict=True))
    return {
        "array": rounded([row.interval[1] - row.mean if known else 0.0 for row, known in pairs]),
        "arrayminus": rounded(
            [row.mean - row.interval[0] if known else 0.0 for row, known in pairs]
        ),
        "thickness": 2.5,
        "width": 0,
    }


def _draw_paid(figure: Any, story: RaceStory, level: int) -> None:
    stretches = [
        (place, row, begin, end)
        for place, row in enumerate(story.rows)
        for at, begin, end in row.paid
        if at == level
    ]
    figure.add_bar(
        orientation="h",
        base=rounded([begin for _, _, begin, _ in stretches]),
        x=rounded([end - begin for _, _, begin, end in stretches]),
        y=[place for place, _, _, _ in stretches],
        text=[hover(row.lines) for _, row, _, _ in stretches],
        textposition="none",
        width=_BAR,
        marker={"color": level_colour(level, len(story.levels)), "line_width": 0},
        name=literal(story.levels[level]),
        legendgroup=f"level {level}",
        **RIGHT,
    )


def _draw_lanes(figure: Any, story: RaceStory) -> None:
    figure.add_bar(
        orientation="h",
        x=rounded([row.left_at for row in story.rows]),
        y=list(range(len(story.rows))),
        width=_BAR,
        marker={"color": faded(QUIET, 0.22), "line_width": 0},
        name="in the race",
        hoverinfo="skip",
        **RIGHT,
    )


def _draw_winner(figure: Any, story: RaceStory) -> None:
    winner = story.rows[0]
    if not story.has_winner or not math.isfinite(winner.mean):
        return
    if math.isfinite(winner.interval[1] - winner.interval[0]):
        band(figure, winner.interval, WINNER)
    figure.add_scatter(
        x=[winner.mean],
        y=[0],
        error_x=_bars([winner]) | {"color": WINNER, "thickness": 5},
        text=[hover(winner.lines)],
        mode="markers",
        marker={"symbol": "star", "size": 16, "color": WINNER},
        name=literal(winner.label),
        **LEFT,
    )


def _draw_exits(figure: Any, story: RaceStory) -> None:
    for reason, name in EXITS.items():
        gone = [(place, row) for place, row in enumerate(story.rows) if row.exit == reason]
        if gone:
            figure.add_scatter(
                x=rounded([row.left_at for _, row in gone]),
                y=[place for place, _ in gone],
                text=[hover(row.lines) for _, row in gone],
                mode="markers",
                marker={
                    "symbol": _EXIT_MARKS[reason],
                    "size": 8,
                    "color": QUIET,
                    "line": {"color": QUIET, "width": 2},
                },
                cliponaxis=False,
                name=name,
                **RIGHT,
            )
