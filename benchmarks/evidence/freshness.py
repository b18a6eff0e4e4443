"""Whether a result was measured with code that decides as the present code does."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.fingerprints import recorded
from benchmarks.hpo.identity import identity_by
from benchmarks.rests_on import kinds_of


def is_of_present_code(report: dict[str, Any]) -> bool:
    """Return whether all that a report tells was measured with code that decides as today's.

    A comparison of optimisers says by which fingerprints each of our runs was played. Every other
    report has those that it rests on, and so have rows that are older than the rest. A report
    without either is of an earlier version, unless its program rests on nothing.
    """
    now = recorded()
    if played := list(_identities(report)):
        return set(played) == {identity_by(now)}
    program = str(report["command"]).partition(" -m ")[2].partition(" ")[0]
    present = {kind: now[kind] for kind in kinds_of(program)}
    return all((found or {}) == present for found in _fingerprints(report))


def _identities(report: dict[str, Any]) -> Iterator[str]:
    """Of the runs of our methods; on the clock there is a part for each number of workers."""
    for method in report.get("ours", ()):
        yield from report.get("identities", {}).get(method, [""])
    parts = report.get("workers")
    for part in parts.values() if isinstance(parts, dict) else ():
        yield from _identities(part)


def _fingerprints(report: dict[str, Any]) -> Iterator[Mapping[str, str] | None]:
    yield report.get("fingerprints")
    for rows in report.values():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and "fingerprints" in row:
                yield row["fingerprints"]
