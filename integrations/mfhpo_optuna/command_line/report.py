"""`mfhpo report`: a page about a study."""

from pathlib import Path
from typing import Annotated

import optuna
import typer

from mfhpo_optuna.command_line.output import NO_ANSWER, AsJson, fail, print_json, say
from mfhpo_optuna.command_line.storages import StorageArgument, StudyArgument, load_study
from mfhpo_optuna.report.page import write_report
from mfhpo_optuna.report.summary import Summary

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="The file to write; one that exists is replaced.")
]


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
