"""`mfhpo show` and `mfhpo report`: the answer of a study so far, printed or on a page."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import optuna
import typer

from mfhpo_optuna.command_line.output import NO_ANSWER, AsJson, fail, print_json, print_summary, say
from mfhpo_optuna.command_line.storages import StorageArgument, StudyArgument, load_study
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.page import write_report
from mfhpo_optuna.report.summary import Summary, summary_of
from mfhpo_optuna.study.trials.attributes import certificate_of
from mfhpo_optuna.visualization.reading import StudyReading, read_study

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="The file to write; one that exists is replaced.")
]


def show(storage: StorageArgument, study: StudyArgument, as_json: AsJson = False) -> None:
    """Print the answer of a study so far, also while it runs; nothing is written to it.

    It is that of `mfhpo certify`, if that has one. The study tells which sampler has run it, with
    which arguments. Of one that does not, the last answer that it holds is printed.
    """
    reading = read_study(load_study(storage, study))
    summary = summary_of(reading, ledger_of(reading))
    counts = _counts(reading)
    if as_json:
        said = {"study": study, "status": summary.status, "sentence": str(summary)}
        print_json(said | {"trials": counts, "answer": reading.answer})
    else:
        print_summary(summary, f"study {study}")
        if reading.answer is None:
            _say_what_to_do(reading, counts.get("complete", 0))
    if reading.answer is None:
        raise typer.Exit(NO_ANSWER)


def _say_what_to_do(reading: StudyReading, n_complete: int) -> None:
    if reading.record is not None:
        certified = quote(str(reading.record.about.get("study")))
        say(
            f"To go on, call it with the same arguments; with --timeout 0 it says what is known so "
            f"far: mfhpo certify STORAGE {certified} module:objective"
        )
    elif reading.without:
        say(f"{reading.without[:1].upper()}{reading.without[1:]}.")
        if len(reading.study.directions) == 1 and n_complete >= 2:
            say("To learn which trial is best: mfhpo certify STORAGE STUDY module:objective")


def _counts(reading: StudyReading) -> dict[str, int]:
    """Return how many trials are in each state; those that hold answers were no evaluations."""
    states = [
        "answers" if certificate_of(trial) is not None else trial.state.name.lower()
        for trial in reading.trials
    ]
    return {state: states.count(state) for state in sorted(set(states))}


def report(
    storage: StorageArgument,
    study: StudyArgument,
    output: OutputOption = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one HTML file with all that is known about a study: no network is needed to read it.

    It works while the study runs, and nothing is written to the study.
    """
    summary = write_page(load_study(storage, study), output)
    if as_json:
        print_json({"report": str(output), "status": summary.status, "sentence": str(summary)})
    else:
        say(f"{summary}\n{output} shows it; open it in a browser.")
    if summary.status == "no answer":
        raise typer.Exit(NO_ANSWER)


def write_page(study: optuna.Study, output: Path) -> Summary:
    """Write a report, or exit with what is wrong; return the answer in words."""
    try:
        return write_report(study, output)
    except OSError as error:
        fail(f"--output {str(output)!r} cannot be written: {error.strerror}.")
    except ImportError as error:
        fail(str(error))
