"""Parts that the commands share: studies in storages that exist, and what is printed."""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import quote, unquote, urlsplit

import optuna
import typer
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy import URL, create_engine, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

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
_TABLES = ("studies", "version_info")  # that every storage of Optuna has
_LEFT_BEHIND = (  # which SQLite may only undo where it may write
    "cannot be read yet: a process was killed while it wrote, and left an unfinished transaction "
    "in a file beside it. Keep both. Go on with the study, or read from the file once with sqlite3."
)


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


def load_study(storage: str, name: str, *, writable: bool = False) -> optuna.Study:
    """Load the study, to be read alone unless `writable`, or exit with what is wrong."""
    try:
        opened = _opened(storage, writable)
        names = optuna.get_all_study_names(opened)
        if name in names:
            return optuna.load_study(study_name=name, storage=opened)
    except typer.Exit:
        raise  # it said what is wrong
    except ArgumentError:
        fail(f"STORAGE must be a URL such as {_SQLITE}study.db or the path of a file: {storage!r}.")
    except OSError as error:
        fail(f"STORAGE names {storage!r}, which cannot be opened: {error.strerror}.")
    except Exception as error:  # a damaged journal makes Optuna raise all kinds of them
        cause = str(error.orig if isinstance(error, DBAPIError) else error)
        if "readonly" in cause:
            fail(f"{storage!r} {_LEFT_BEHIND}")
        reason = cause.partition("\n")[0].rstrip(".")
        fail(f"{storage!r} is no storage of Optuna that can be read: {reason}.")
    if not names:
        fail(f"{storage!r} holds no study.")
    known = ", ".join(map(repr, sorted(names)))
    fail(f"{storage!r} holds no study {name!r}, but {known}.{did_you_mean(name, names)}")


def _opened(storage: str, writable: bool) -> BaseStorage:
    if "://" in storage:
        url = make_url(storage)
        if url.get_backend_name() == "sqlite":
            name = url.database or ":memory:"
            if name.startswith("file:"):  # a URI of SQLite's own
                name = unquote(urlsplit(name).path)
            url = _of_file(url, _existing(name), writable)
    else:
        path = _existing(storage)
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
        if header.startswith(b"{"):
            return JournalStorage(JournalFileBackend(storage))
        if header != _SQLITE_HEADER:
            fail(f"STORAGE names the file {storage!r}, which is neither SQLite's nor a journal.")
        url = _of_file(make_url(_SQLITE), path, writable)
    # Optuna would make its tables in whatever database it is allowed to write to.
    engine = create_engine(url)
    try:
        tables = inspect(engine)
        has_tables = all(tables.has_table(name) for name in _TABLES)
    finally:
        engine.dispose()
    if not has_tables:
        fail(f"{storage!r} is no storage of Optuna that can be read: it has no tables of Optuna's.")
    return RDBStorage(url.render_as_string(hide_password=False))


def _of_file(url: URL, path: Path, writable: bool) -> URL:
    """Return the same with a URI, by which SQLite creates no file."""
    uri = url.set(database=f"file:{quote(path.as_posix())}")
    return uri.update_query_dict({"mode": "rw" if writable else "ro", "uri": "true"})


def _existing(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        fail(f"STORAGE names the folder {name!r}; name a file in it.")
    if not path.is_file():
        fail(f"STORAGE names the file {name!r}, which does not exist.")
    return path.absolute()
