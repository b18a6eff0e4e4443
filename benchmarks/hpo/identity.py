"""Which code has played a run: ours by its contents, a peer by its version."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.dependencies import what_counts
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.record import Record, Run

_ROOT = Path(__file__).parents[2]
_CODE = (
    "mfhpo/search/*.py",
    "mfhpo/certification/*.py",
    "mfhpo/identification/group_sequential.py",
    "mfhpo/knowledge/space.py",
    "integrations/mfhpo_optuna/samplers/*.py",
    "integrations/mfhpo_optuna/study/*.py",
    "integrations/mfhpo_optuna/study/trials/*.py",
)
_DISTRIBUTIONS = {"ax": "ax-platform", "neps": "neural-pipeline-search", "optuna-gp": "optuna"}


def distribution_of(peer: str) -> str:
    """The main distribution of a peer.

    Examples
    --------
    >>> distribution_of("optuna_gp"), distribution_of("syne_tune")
    ('optuna', 'syne-tune')
    """
    name = peer.replace("_", "-")
    return _DISTRIBUTIONS.get(name, name)


@cache
def identity_of(peer: str) -> str:
    """What tells the code of a module's methods from what it was or will be.

    Parameters
    ----------
    peer
        Name of a module of benchmarks/peers/, or "ours".

    Returns
    -------
    str
        The version of a peer's main distribution, "" if it has none; of ours a hash of the code.
        It stays the same while the process lives, as the code does that it has imported.
    """
    if peer == OURS:
        return _hash_of([file for pattern in _CODE for file in sorted(_ROOT.glob(pattern))])
    try:
        return version(distribution_of(peer))
    except PackageNotFoundError:
        return ""


def valid_runs(records: Iterable[Record], identity: str | None) -> set[Run]:
    """The runs that need not be played again.

    Parameters
    ----------
    records
        What there is; of two records of a run the later one counts.
    identity
        Of the code whose runs alone are valid; None: all are.
    """
    last = {record.run: record.identity for record in records}
    return {run for run, of_run in last.items() if identity in (None, of_run)}


def _hash_of(files: Sequence[Path]) -> str:
    """Twelve digits; changes with the name of each file, and with what it does."""
    contents = hashlib.sha256()
    for file in files:
        contents.update(f"{file.name}\n{what_counts(file)}\n".encode())
    return contents.hexdigest()[:12]
