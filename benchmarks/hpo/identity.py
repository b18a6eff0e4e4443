"""Which code has played a run: ours by its choices, a peer by its version."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from benchmarks.fingerprints import fingerprints
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.record import Record, Run
from benchmarks.rests_on import kinds_of

_DISTRIBUTIONS = {
    "ax": "ax-platform",
    "neps": "neural-pipeline-search",
    "optuna-gp": "optuna",
    "syne-tune-mobster": "syne-tune",
}

_KINDS = kinds_of("benchmarks.hpo")


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
        The version of a peer's main distribution, "" if it has none; of ours a hash of the
        fingerprints that a search rests on.
    """
    if peer == OURS:
        return identity_by(fingerprints(_KINDS))
    try:
        return version(distribution_of(peer))
    except PackageNotFoundError:
        return ""


def identity_by(found: Mapping[str, str]) -> str:
    """Return the identity of our methods by the fingerprints of all kinds."""
    text = " ".join(found[kind] for kind in _KINDS)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


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
