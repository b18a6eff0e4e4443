"""Which code has played a run: ours by its contents, a peer by its version."""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from benchmarks.dependencies import code_of
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.record import Record, Run

_DISTRIBUTIONS = {
    "ax": "ax-platform",
    "neps": "neural-pipeline-search",
    "optuna-gp": "optuna",
    "syne-tune-mobster": "syne-tune",
}


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
        return code_of("benchmarks.hpo.ours")
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
