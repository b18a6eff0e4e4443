"""The file of the certificates' runs: written as they end, so that a stopped command can go on."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.fingerprints import fingerprints
from benchmarks.hpo.certificate_outcomes import Outcome
from benchmarks.hpo.certificate_summary import Row, holds
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.provenance import provenance
from benchmarks.report import write
from benchmarks.rests_on import kinds_of

_PROGRAM = "benchmarks.hpo.certificates"
_GROWING = ("runs", "sigma")  # settings of which a report may be given more


def begun(
    file: Path, settings: Mapping[str, Any], wanted: Collection[tuple[str, float, int]]
) -> list[Outcome]:
    """The runs of a report that can be gone on with.

    That is one that was stopped, or is complete with fewer runs or noises than are wanted; its
    settings and the code are the same but for these, and none of its runs may be missing among the
    wanted.

    Parameters
    ----------
    file
        The report.
    settings
        See `save`.
    wanted
        Task, sigma and seed of each run that the command asks for.

    Raises
    ------
    ValueError
        If the report was stopped, and going on would lose runs of it.
    """
    if not file.is_file():
        return []
    report = json.loads(file.read_text(encoding="utf-8"))
    outcomes = [Outcome.of_record(record) for record in report["records"]]
    there = {(outcome.task, outcome.sigma, outcome.seed) for outcome in outcomes}
    different = [
        name
        for name in {**report["settings"], **settings}
        if name not in _GROWING and report["settings"].get(name) != settings.get(name)
    ]
    if report.get("fingerprints") != fingerprints(kinds_of(_PROGRAM)):
        different.append("fingerprints")
    if report["complete"]:
        return outcomes if not different and there < set(wanted) else []
    if different or not there <= set(wanted):
        what = f"other {different}" if different else "more runs or noises than are asked for"
        raise ValueError(
            f"{file} holds {len(outcomes)} runs of a command that was stopped, of {what}: go on "
            "with that one, give another --output, or remove the file."
        )
    return outcomes


def save(
    file: Path,
    settings: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    rows: Sequence[Row] | None = None,
) -> None:
    """Write what there is.

    Parameters
    ----------
    file
        The report.
    settings
        "tasks", "sigma", "budget", "share", "declared" and "runs" of the command line.
    outcomes
        The runs until now.
    rows
        Their summary; None as long as not all of them are there.
    """
    report = provenance(_PROGRAM, _command(settings), "onnxruntime") | {
        "unit": "costs in full evaluations, the rest in percent of accuracy",
        "complete": rows is not None,
        "settings": settings,
        "cpu_seconds": round(sum(outcome.seconds for outcome in outcomes)),
        "holds": holds(rows or []),
        "rows": rows or [],
        "records": [asdict(outcome) for outcome in outcomes],
    }
    part = file.with_name(f"{file.name}.part")
    write(part, _as_text(report))
    part.replace(file)  # at once: whoever stops it leaves the one or the other


def _command(settings: Mapping[str, Any]) -> list[str]:
    command = [
        "--data=FOLDER",
        *(f"--{name}={settings[name]}" for name in ("runs", "budget", "share")),
        f"--sigma {' '.join(f'{sigma:g}' for sigma in settings['sigma'])}",
    ]
    if settings["declared"]:
        command.append("--declared")
    if tuple(settings["tasks"]) != DEVELOPMENT_TASKS:
        command.append(f"--tasks {' '.join(map(repr, settings['tasks']))}")
    return command


def _as_text(report: Mapping[str, Any]) -> str:
    """JSON with one line for each row and each record."""
    lists = ("rows", "records")
    text = json.dumps({**report, **{name: [] for name in lists}}, indent=1, allow_nan=False)
    for name in lists:
        lines = ",\n".join(f"  {json.dumps(one, allow_nan=False)}" for one in report[name])
        text = text.replace(f'"{name}": []', f'"{name}": [\n{lines}\n ]')
    return text + "\n"
