"""Parts that the commands share: studies in storages that exist, and what is printed."""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import optuna
import typer
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy import create_engine, inspect, make_url
from sqlalchemy.exc import DBAPIError

from mfhpo._validation import plain
from mfhpo.racing.text import clean
from mfhpo_optuna.report.page import write_report
from mfhpo_optuna.report.summary import Status, Summary
from mfhpo_optuna.study.distributions import did_you_mean

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

StorageArgument = Annotated[
    str,
    typer.Argument(
        metavar="STORAGE",
        help="URL of Optuna's, such as sqlite:///study.db, or the path of a file.",
        show_default=False,
    ),
]
StudyArgument = Annotated[
    str, typer.Argument(metavar="STUDY", help="Name of a study in it.", show_default=False)
]

_SQLITE = "sqlite:///"
_SQLITE_HEADER = b"SQLite format 3\x00"


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


def load_study(storage: str, name: str) -> optuna.Study:
    """Load the study, or exit with what is wrong; no storage is made where there is none."""
    try:
        opened = _opened(storage)
        names = optuna.get_all_study_names(opened)
    except typer.Exit:
        raise  # it said what is wrong
    except Exception as error:  # a damaged journal makes Optuna raise all kinds of them
        cause = str(error.orig if isinstance(error, DBAPIError) else error)
        reason = cause.partition("\n")[0].rstrip(".")
        fail(f"{storage!r} is no storage of Optuna that can be read: {reason}.")
    if name in names:
        return optuna.load_study(study_name=name, storage=opened)
    if not names:
        fail(f"{storage!r} holds no study.")
    known = ", ".join(map(repr, sorted(names)))
    fail(f"{storage!r} holds no study {name!r}, but {known}.{did_you_mean(name, names)}")


def _opened(storage: str) -> BaseStorage:
    if "://" not in storage:
        with Path(storage).open("rb") as file:
            if file.read(len(_SQLITE_HEADER)) != _SQLITE_HEADER:
                return JournalStorage(JournalFileBackend(storage))
        storage = f"{_SQLITE}{Path(storage).absolute()}"
    url = make_url(storage)
    if url.get_backend_name() == "sqlite" and not str(url.database).startswith("file:"):
        Path(url.database or "").open("rb").close()  # SQLite would make it
    # Optuna would make its tables in whatever database it is allowed to write to.
    engine = create_engine(url)
    try:
        has_tables = inspect(engine).has_table("studies")
    finally:
        engine.dispose()
    if not has_tables:
        fail(f"{storage!r} is no storage of Optuna that can be read: it has no tables of Optuna's.")
    return RDBStorage(storage)
