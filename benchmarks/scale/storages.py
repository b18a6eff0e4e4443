"""The storages, and how a study in them is given many finished trials at once."""

import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import distribution_to_json
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import BaseJournalBackend, JournalFileBackend
from optuna.trial import FrozenTrial

STUDY = "long"

_AT_ONCE = 2_000  # trials that are inserted together


def opened(place: str) -> BaseStorage:
    """The storage in memory (""), in a journal file or in a database, named by path or URL."""
    if not place:
        return InMemoryStorage()
    if "://" in place:
        return RDBStorage(place)
    return JournalStorage(JournalFileBackend(place))


def fill(place: str, trials: Iterable[FrozenTrial]) -> None:
    """Make a study of these trials, where there is none; see `opened`."""
    storage = opened(place) if "://" in place else JournalStorage(_OneWriter(place))
    study = optuna.create_study(study_name=STUDY, storage=storage)
    if "://" in place:
        _insert(place, study._study_id, trials)
    else:
        study.add_trials(trials)


class _OneWriter(BaseJournalBackend):
    """A new journal file that nobody else writes to or reads: it needs no lock, nor the disk."""

    def __init__(self, place: str) -> None:
        self._path = Path(place)
        self._unread: list[dict[str, Any]] = []

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        self._unread += logs

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        unread, self._unread = self._unread, []
        return unread


def _insert(url: str, study_id: int, trials: Iterable[FrozenTrial]) -> None:
    """Fill the tables of an empty database, whose trials are therefore numbered from 1."""
    storage = RDBStorage(url)
    connection: Any = storage.engine.raw_connection()  # psycopg's own
    found = iter(trials)
    number = 0
    while batch := list(itertools.islice(found, _AT_ONCE)):
        for table, rows in _rows(study_id, number, batch).items():
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copied:
                for row in rows:
                    copied.write_row(row)
        number += len(batch)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('trials_trial_id_seq', %s)", (number,))
        cursor.execute("ANALYZE")  # as PostgreSQL itself does it after a minute
    connection.commit()
    connection.close()
    storage.remove_session()
    storage.engine.dispose()


def _rows(study_id: int, first: int, trials: Sequence[FrozenTrial]) -> dict[str, list[Any]]:
    """Rows by table and columns, as Optuna writes them."""
    json_of = {
        name: distribution_to_json(distribution)
        for name, distribution in trials[0].distributions.items()
    }
    numbered = list(enumerate(trials, first))
    return {
        "trials (trial_id, study_id, number, state, datetime_start, datetime_complete)": [
            (n + 1, study_id, n, t.state.name, _utc(t.datetime_start), _utc(t.datetime_complete))
            for n, t in numbered
        ],
        "trial_params (trial_id, param_name, param_value, distribution_json)": [
            (n + 1, name, trial.distributions[name].to_internal_repr(value), json_of[name])
            for n, trial in numbered
            for name, value in trial.params.items()
        ],
        "trial_values (trial_id, objective, value, value_type)": [
            (n + 1, 0, trial.value, "FINITE") for n, trial in numbered
        ],
        "trial_user_attributes (trial_id, key, value_json)": [
            (n + 1, key, json.dumps(value))
            for n, trial in numbered
            for key, value in trial.user_attrs.items()
        ],
        "trial_system_attributes (trial_id, key, value_json)": [
            (n + 1, key, json.dumps(value))
            for n, trial in numbered
            for key, value in trial.system_attrs.items()
        ],
    }


def _utc(local: datetime | None) -> datetime | None:
    return None if local is None else local.astimezone(timezone.utc).replace(tzinfo=None)
