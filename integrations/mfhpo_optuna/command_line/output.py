"""What the commands print: JSON for programs, tables for people, one line for a mistake."""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import optuna
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mfhpo._validation import plain
from mfhpo.racing.text import clean
from mfhpo_optuna.report.page import write_report
from mfhpo_optuna.report.summary import Status, Summary

OBJECTIVE_RAISED = 1
WRONG_ARGUMENT = 2
NO_ANSWER = 3
STORAGE_FAILED = 4

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="The file to write; one that exists is replaced.")
]

_STYLES: dict[Status, str] = {
    "certified": "bold green",
    "not certified": "bold yellow",
    "best so far": "bold yellow",
    "no answer": "bold red",
}


def fail(message: str) -> NoReturn:
    """End the command with one line about what is wrong with its arguments."""
    say_what_failed(message)
    raise typer.Exit(WRONG_ARGUMENT)


def say_what_failed(message: str) -> None:
    """Print one line to standard error."""
    typer.echo(f"mfhpo: {clean(message)}", err=True)


def say(text: str) -> None:
    """Print lines of text."""
    typer.echo("\n".join(map(clean, text.split("\n"))))


def print_json(content: Any) -> None:
    """Print plain values; what is not finite becomes null.

    As ASCII: a pipe may have an encoding that lacks the letters of a study's name.
    """
    typer.echo(json.dumps(plain(content), indent=2))


def print_summary(summary: Summary, heading: str) -> None:
    """Print an answer for people."""
    console = Console(highlight=False)
    console.print(Text(clean(heading), style="dim"))
    console.print(Text(str(summary), style=_STYLES[summary.status]))
    if not summary.rows:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", max_width=38)
    table.add_column()
    for name, text in summary.rows:
        table.add_row(Text(name), Text(text))  # no value is taken for markup
    console.print(table)


def write_page(study: optuna.Study, output: Path) -> Summary:
    """Write a report, or exit with what is wrong; return the answer in words."""
    try:
        return write_report(study, output)
    except OSError as error:
        fail(f"--output {str(output)!r} cannot be written: {error.strerror}.")
    except ImportError as error:
        fail(str(error))
