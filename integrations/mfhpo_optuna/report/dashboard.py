"""A study's answer in optuna-dashboard: as the study's note, with the figures among its plots."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import optuna

from mfhpo._validation import check_instance
from mfhpo.racing.text import clean
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.page import figures_of
from mfhpo_optuna.report.summary import Summary, summary_of
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.visualization.reading import StudyReading, read_study
from mfhpo_optuna.visualization.style import needed, require_plotly

# In pixels: the dashboard's box for a plot, which cuts off what is higher, and the room above the
# panels.
_BOX, _ABOVE = 450, 76
_MOST_BETWEEN = 0.5  # of the room for panels, what may be between them

_END_OF_OURS = "*mfhpo rewrites what is above this line, and keeps what is below.*"

_OF_A_GAME = "The dashboard's best trials are a Pareto front, which is no equilibrium."
_OF_A_RACE = (
    "The dashboard's best trial is the one with the best single value, partly by luck. Its other "
    "panels treat all trials alike."
)

# Each of them ends our part of a note: if one was deleted by hand, the other still does.
_LAST_OF_OURS = re.compile("|".join(map(re.escape, (_OF_A_GAME, _OF_A_RACE, _END_OF_OURS))))

Span: TypeAlias = tuple[float, float]

# The last ones ("@", "://", the dot after "www") begin an address, in which the dashboard would
# show our backslashes.
_MARKUP = re.compile(r"([\\`*_\[\]<>|$~&#@]|^[-+=]|:(?=//)|(?<=www)\.)", re.IGNORECASE)


def publish_to_dashboard(study: optuna.Study, *, sampler: StudySampler | None = None) -> Summary:
    """Show a study's answer in optuna-dashboard, and return it in words.

    The answer becomes the study's note, and the figures of `mfhpo_optuna.visualization` become
    plots of the study, unless they are too high for the dashboard. It replaces what was published
    before, but a plot that is no longer drawn stays. What you have written in the note below the
    last line of the answer is kept; write it while nothing is published.

    Parameters
    ----------
    study
        A study that was run with a sampler of mfhpo; it need not have ended. The note and the plots
        are written to its storage, where the dashboard reads them.
    sampler
        As for `write_report`. None: the study's, or the one that it names.

    Raises
    ------
    ImportError
        If optuna-dashboard or plotly is not installed.
    """
    check_instance("study", study, optuna.Study, "an optuna.Study")
    require_plotly("publish_to_dashboard")
    needs = ("optuna_dashboard", "optuna-dashboard", "dashboard")
    dashboard = needed("publish_to_dashboard", *needs)
    reading = read_study(study, sampler)
    summary = summary_of(reading, ledger_of(reading))
    for title, _, figure in figures_of(reading):
        lower = _in_the_box(figure)
        if lower is not None:
            name = "mfhpo-" + title.lower().replace(" ", "-")
            dashboard.save_plotly_graph_object(study, lower, graph_object_id=name)
    before = dashboard.get_note(study)
    own = _LAST_OF_OURS.split(before)[-1].strip()
    note = f"{_note(reading, summary)}\n\n{own}".strip()
    if note != before:
        dashboard.save_note(study, note)
    return summary


def _in_the_box(figure: Any) -> Any:
    """Return the figure as high as the dashboard's box; None where nothing would show."""
    layout = figure.layout
    before = layout.height - layout.margin.t - layout.margin.b
    after = _BOX - _ABOVE - layout.margin.b
    places = _placed({axis.domain for axis in figure.select_yaxes()}, before / after)
    if not places:
        return None
    title = layout.title.text.split("<br>")[0]
    figure.update_layout(height=_BOX, title_text=title, margin_t=_ABOVE)
    for axis in figure.select_yaxes():
        axis.domain = places[axis.domain]
    return figure


def _placed(panels: set[Span], shrinkage: float) -> dict[Span, Span]:
    """Return where panels go in a lower figure with the same gaps; {} if they do not fit."""
    ordered = np.array(sorted(panels))
    gaps = shrinkage * (ordered[1:, 0] - ordered[:-1, 1])
    if gaps.sum() > _MOST_BETWEEN:
        return {}
    heights = ordered[:, 1] - ordered[:, 0]
    heights *= (1.0 - gaps.sum()) / heights.sum()
    lows = np.cumsum([0.0, *(heights[:-1] + gaps)])
    placed = np.clip(np.column_stack([lows, lows + heights]), 0.0, 1.0)
    return dict(zip(map(tuple, ordered.tolist()), map(tuple, placed.tolist()), strict=True))


def _note(reading: StudyReading, summary: Summary) -> str:
    of_others = _OF_A_GAME if reading.purpose == "game" else _OF_A_RACE
    rows = [f"| {_plain(name)} | {_plain(text)} |" for name, text in summary.rows]
    table = ["\n".join(["| | |", "| --- | --- |", *rows])] if rows else []
    head = f"## {_plain(summary.status.capitalize())}"
    return "\n\n".join([head, _plain(summary.sentence), *table, of_others, _END_OF_OURS])


def _plain(text: str) -> str:
    """Return a text that Markdown leaves alone, in one line."""
    return _MARKUP.sub(r"\\\1", clean(" ".join(text.split())))
