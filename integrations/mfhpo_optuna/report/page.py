"""A study shown to people who were not there: a page, and a note in optuna-dashboard."""

import errno
import json
import math
import os
import re
import secrets
import stat
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
import optuna

from mfhpo import __version__
from mfhpo._validation import check_instance, is_number
from mfhpo.racing.text import clean
from mfhpo_optuna.report.ledger import ledger_of, table_of, where_it_went
from mfhpo_optuna.report.summary import Summary, summary_of
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.visualization import plot_dissatisfaction, plot_equilibrium, plot_gain, plot_race
from mfhpo_optuna.visualization.reading import StudyReading, read_study
from mfhpo_optuna.visualization.search import draw_certificate
from mfhpo_optuna.visualization.style import needed, require_plotly, value_text

# The part of plotly.js that draws bars and scatter plots, as its authors publish it: a quarter of
# what plotly's Python package ships.
_PLOTLY_JS = Path(__file__).with_name("plotly") / "plotly-basic.min.js"

_CLEAR = "rgba(0, 0, 0, 0)"  # the ground of the pictures
_ROOM = 30  # in pixels, above the panels, for what is written there
_MARGIN = 0.04  # of the scale on which values are drawn, at either end

_PICTURES: tuple[tuple[str, Callable[..., Any], str, str], ...] = (
    (
        "certificate",
        draw_certificate,
        "The certificate",
        "A row for each finalist, the winner first: what the search had seen, and its mean in new "
        "evaluations with its interval.",
    ),
    (
        "search",
        plot_race,
        "The search and its certificate",
        "Above: every evaluation over what had been paid, with the best value so far as a step "
        "line. Below, once there are finalists: what the search had seen of each, and its mean in "
        "new evaluations with its interval.",
    ),
    (
        "race",
        plot_race,
        "The race",
        "A row for each configuration, the winner first. Left: its mean with its interval. Right: "
        "its evaluations, each as long as its cost, up to where it left.",
    ),
    (
        "limits",
        plot_gain,
        "Gain by time limit",
        "Top: estimated gain of a trial under each time limit, with intervals. Bottom: how "
        "probably a trial runs beyond the limit.",
    ),
    (
        "game",
        plot_equilibrium,
        "The equilibrium",
        "For each parameter, what its owner would gain by moving it alone. The star is the answer.",
    ),
    (
        "game",
        plot_dissatisfaction,
        "How the search for it went",
        "The largest gain of a player by deviating, over what had been paid.",
    ),
)

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

# The last ones ("@", "://", the dot after "www") begin an address, in which the dashboard would
# show our backslashes.
_MARKUP = re.compile(r"([\\`*_\[\]<>|$~&#@]|^[-+=]|:(?=//)|(?<=www)\.)", re.IGNORECASE)


def write_report(
    study: optuna.Study, path: str | PathLike[str], *, sampler: StudySampler | None = None
) -> Summary:
    """Write a page about a study, and return its answer in words.

    The page is one HTML file that needs no network: send it to a colleague, or print it. It shows
    the answer, its value beside what the luckiest trial had promised, the figures of
    `mfhpo_optuna.visualization`, where the budget went, and every trial in a table. If
    `mfhpo_optuna.certify` has answered about the study, that is the answer.

    Parameters
    ----------
    study
        A study that was run with a sampler of mfhpo, or that `mfhpo_optuna.certify` has answered
        about; it need not have ended. Nothing is written to it.
    path
        The file to write; one that exists is replaced once the new one is whole, or written over
        where its folder is read-only.
    sampler
        The sampler that it was run with, or one made with the same arguments. None: the study's, or
        the one that a loaded study names. Where there is none, the page has the last answer that
        the study holds, and no figures.

    Raises
    ------
    ImportError
        If Jinja2 or plotly is not installed.
    OSError
        If the file cannot be written.
    """
    check_instance("study", study, optuna.Study, "an optuna.Study")
    check_instance("path", path, str | PathLike, "the name of a file")
    if not os.fspath(path):
        raise ValueError("path must be the name of a file, not empty, got ''.")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", os.fspath(path))
    require_plotly("write_report")
    environment = _environment()
    reading = read_study(study, sampler)
    ledger = ledger_of(reading)
    summary = summary_of(reading, ledger)
    table = table_of(reading, ledger)
    declared = getattr(reading.sampler, "arguments", {})
    budgets = (declared.get(name) for name in ("budget", "trials", "seconds"))
    budget = next((float(given) for given in budgets if given is not None), None)
    scale, points = None, [one.value for one in summary.values if one.value is not None]
    if points and summary.comparable:  # where the scale begins that all share, and its length
        points += [end for one in summary.values if one.bounds for end in one.bounds]
        spread = (max(points) - min(points)) or 1.0
        scale = min(points) - _MARGIN * spread, (1.0 + 2.0 * _MARGIN) * spread
    pictures = []
    for title, alt, figure in figures_of(reading):
        layout = figure.layout  # the page says what the title does
        height = layout.height - layout.margin.t + _ROOM
        figure.update_layout(title_text=None, height=height, margin_t=_ROOM)
        figure.update_layout(paper_bgcolor=_CLEAR, plot_bgcolor=_CLEAR)
        drawn = figure.to_json().replace('"type":"scattergl"', '"type":"scatter"')
        pictures.append((title, alt, drawn))
    page = environment.get_template("report.html").render(
        study=study,
        summary=summary,
        scale=scale,
        pictures=pictures,
        plotly_js=_PLOTLY_JS.read_text(encoding="utf-8") if pictures else "",
        without=reading.without,
        is_record=reading.is_record,
        shares=where_it_went(ledger),
        budget=None if ledger.paid is None else budget,
        ledger=ledger,
        table=table,
        rows=list(zip(*table.values(), strict=True)),
        answer=reading.answer,
        # A choice may be anything, such as a class, while the study is in memory.
        answer_json=json.dumps(reading.answer, indent=2, ensure_ascii=False, default=str),
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        versions=f"mfhpo {__version__}, Optuna {version('optuna')}, Python {python_version()}",
    )
    _replace(Path(path), page)
    return summary


def _replace(path: Path, text: str) -> None:
    """Write a file beside the one that is there, and put it in its place once it is whole.

    A pipe or a device has no place to be taken, nor has a file whose folder may not be written.
    """
    mode = path.stat().st_mode if path.exists() else None  # first: a pipe resolves to no path
    target = path.resolve()  # the file behind a link, and not the link
    if mode is not None and not (stat.S_ISREG(mode) and os.access(target.parent, os.W_OK)):
        path.write_text(text, encoding="utf-8")
        return
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # some file systems say only now that they are full
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _environment() -> Any:
    jinja2 = needed("write_report", "jinja2", "Jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mfhpo_optuna.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        # What is trusted is a subclass of str; no other text brings escape sequences or passwords.
        finalize=lambda value: clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:,.6g}"
    environment.filters["text"] = value_text
    environment.tests["sortable"] = lambda value: is_number(value) and not math.isnan(value)
    return environment


def figures_of(reading: StudyReading) -> Iterator[tuple[str, str, Any]]:
    """Yield title, words and figure of all that there is to see."""
    for purpose, plot, title, alt in _PICTURES:
        is_certificate = purpose == "certificate" and reading.is_of_certify
        if not is_certificate and purpose != reading.purpose:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if is_certificate:
                    figure = plot(reading.answer, reading.sign)
                else:
                    figure = plot(reading.study, sampler=reading.sampler)
            except (ValueError, LookupError, TypeError):
                continue  # nothing to show yet, or a certificate that was damaged
        yield title, alt, figure


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
    of_others = _OF_A_GAME if reading.purpose == "game" else _OF_A_RACE
    rows = [f"| {_plain(name)} | {_plain(text)} |" for name, text in summary.rows]
    table = ["\n".join(["| | |", "| --- | --- |", *rows])] if rows else []
    head = [f"## {_plain(summary.status.capitalize())}", _plain(summary.sentence)]
    note = "\n\n".join([*head, *table, of_others, _END_OF_OURS, own]).strip()
    if note != before:
        dashboard.save_note(study, note)
    return summary


def _in_the_box(figure: Any) -> Any:
    """Return the figure as high as the dashboard's box; None where nothing would show."""
    layout = figure.layout
    before = layout.height - layout.margin.t - layout.margin.b
    panels = np.array(sorted({axis.domain for axis in figure.select_yaxes()}))
    gaps = before / (_BOX - _ABOVE - layout.margin.b) * (panels[1:, 0] - panels[:-1, 1])
    if gaps.sum() > _MOST_BETWEEN:
        return None
    heights = panels[:, 1] - panels[:, 0]
    heights *= (1.0 - gaps.sum()) / heights.sum()
    lows = np.cumsum([0.0, *(heights[:-1] + gaps)])  # with the same gaps, in pixels
    placed = np.clip(np.column_stack([lows, lows + heights]), 0.0, 1.0)
    places = dict(zip(map(tuple, panels.tolist()), map(tuple, placed.tolist()), strict=True))
    title = layout.title.text.split("<br>")[0]
    figure.update_layout(height=_BOX, title_text=title, margin_t=_ABOVE)
    for axis in figure.select_yaxes():
        axis.domain = places[axis.domain]
    return figure


def _plain(text: str) -> str:
    """Return a text that Markdown leaves alone, in one line."""
    return _MARKUP.sub(r"\\\1", clean(" ".join(text.split())))
