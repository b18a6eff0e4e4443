"""`write_report`: one page that shows a study to people who were not there."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo import __version__
from mfhpo._validation import check_instance
from mfhpo._validation.missing import missing
from mfhpo.racing.recommendation import clean
from mfhpo_optuna.report.ledger import Ledger, is_sortable, ledger_of, table_of, where_it_went
from mfhpo_optuna.report.pictures import pictures_of
from mfhpo_optuna.report.reading import StudyReading, read_study
from mfhpo_optuna.report.summary import Measured, Summary, summary_of
from mfhpo_optuna.visualization.reading import ReadingSampler
from mfhpo_optuna.visualization.style import require_plotly
from mfhpo_optuna.visualization.words import value_text

if TYPE_CHECKING:
    from jinja2 import Environment

_MARGIN = 0.04  # of the scale on which values are drawn, at either end


def write_report(
    study: optuna.Study, path: str | PathLike[str], *, sampler: ReadingSampler | None = None
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

    Examples
    --------
    >>> import optuna, tempfile
    >>> from mfhpo_optuna import SearchSampler, seed_of, write_report
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=SearchSampler(budget=60, certify_share=0.4, seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2 + seed_of(trial) % 3 / 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = write_report(study, f"{folder}/report.html")
    """
    check_instance("study", study, optuna.Study, "an optuna.Study")
    check_instance("path", path, str | PathLike, "the name of a file")
    if not os.fspath(path):
        raise ValueError("path must be the name of a file, not empty, got ''.")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", os.fspath(path))
    require_plotly("write_report")
    from plotly.offline import get_plotlyjs

    environment = _environment()
    reading = read_study(study, sampler)
    ledger = ledger_of(reading)
    summary = summary_of(reading, ledger)
    page = environment.get_template("report.html").render(
        study=study,
        summary=summary,
        strips=_strips(summary),
        pictures=pictures_of(reading),
        plotly_js=get_plotlyjs(),
        without=reading.without,
        is_record=reading.is_record,
        shares=where_it_went(ledger),
        budget=_budget(reading, ledger),
        ledger=ledger,
        table=table_of(reading, ledger),
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


@dataclass(frozen=True)
class Strip:
    """Where a value and its interval are on a scale that all of them share, in percent."""

    measured: Measured
    place: float | None  # None where values are on scales of their own
    low: float | None
    width: float


def _strips(summary: Summary) -> list[Strip]:
    known = [(one, one.value) for one in summary.values if one.value is not None]
    if not summary.comparable:
        return [Strip(one, None, None, 0.0) for one, _ in known]
    points = [value for _, value in known]
    points += [end for one, _ in known if one.bounds for end in one.bounds]
    if not points:
        return []
    spread = (max(points) - min(points)) or 1.0
    first, span = min(points) - _MARGIN * spread, (1.0 + 2.0 * _MARGIN) * spread

    def place(value: float) -> float:
        return round(100.0 * (value - first) / span, 2)

    strips = []
    for one, value in known:
        low, high = (None, None) if one.bounds is None else map(place, one.bounds)
        width = 0.0 if low is None or high is None else high - low
        strips.append(Strip(one, place(value), low, width))
    return strips


def _budget(reading: StudyReading, ledger: Ledger) -> float | None:
    if ledger.paid is None:
        return None
    arguments = getattr(reading.sampler, "arguments", {})
    for name in ("budget", "trials", "seconds"):
        if arguments.get(name) is not None:
            return float(arguments[name])
    return None


def _environment() -> Environment:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(missing("write_report", "Jinja2", "report")) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mfhpo_optuna.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:,.6g}"
    environment.filters["text"] = value_text
    environment.tests["sortable"] = is_sortable
    return environment


def _shown(value: Any) -> Any:
    """Return what a page shows of a value: a text without escape sequences and passwords.

    What is trusted is a subclass of str.
    """
    return clean(value) if type(value) is str else value
