"""Studies in storages that exist; a mistake is said in one line."""

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import optuna
import typer
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from mfhpo_optuna.command_line.output import fail
from mfhpo_optuna.study.levels import did_you_mean

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


def load_study(storage: str, name: str, *, writable: bool = False) -> optuna.Study:
    """The study, or an exit with what is wrong.

    Nothing is created. An SQLite file is opened for reading alone, unless it is to be `writable`.
    """
    try:
        opened = _opened(storage, writable)
        names = optuna.get_all_study_names(opened)
        if name in names:
            return optuna.load_study(study_name=name, storage=opened)
    except typer.Exit:
        raise  # it said what is wrong
    except ArgumentError:
        fail(f"STORAGE must be a URL such as {_SQLITE}study.db or the path of a file: {storage!r}.")
    except DBAPIError as error:
        # Read-only, so that missing tables cannot be made.
        why = "it has no tables of Optuna's" if "readonly" in str(error) else error.orig
        fail(f"{storage!r} is no storage of Optuna that can be read: {why}.")
    except (SQLAlchemyError, ImportError, RuntimeError, ValueError, KeyError) as error:
        first_line = str(error).partition("\n")[0].rstrip(".")
        fail(f"{storage!r} is no storage of Optuna that can be read: {first_line}.")
    if not names:
        fail(f"{storage!r} holds no study.")
    known = ", ".join(map(repr, sorted(names)))
    fail(f"{storage!r} holds no study {name!r}, but {known}.{did_you_mean(name, names)}")


def _opened(storage: str, writable: bool) -> BaseStorage:
    if "://" not in storage:
        path = _existing(storage)
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
        if header.startswith(b"{"):
            return JournalStorage(JournalFileBackend(storage))
        if header != _SQLITE_HEADER:
            fail(f"STORAGE names the file {storage!r}, which is neither SQLite's nor a journal.")
        storage = f"{_SQLITE}{path}"
    if not storage.startswith(_SQLITE) or "?" in storage:
        return RDBStorage(storage)
    path = _existing(storage.removeprefix(_SQLITE))
    # Optuna would make its tables in whatever database it is allowed to write to.
    to_read = RDBStorage(f"{_SQLITE}file:{quote(path.as_posix())}?mode=ro&uri=true")
    return RDBStorage(storage) if writable else to_read


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        fail(f"STORAGE names the file {name!r}, which does not exist.")
    return path.absolute()
