"""Whether a result was measured with the present code."""

import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.dependencies import code_of
from benchmarks.hpo.identity import identity_of
from benchmarks.hpo.methods import OURS
from benchmarks.provenance import programs


def is_of_present_code(report: dict[str, Any]) -> bool:
    """Whether all that a report tells was measured with the code of today.

    A comparison of optimisers says with which code each of our runs was played; every other report
    has the hash of the code that its command runs, and so have rows that are older than the rest.
    A report without either is of an earlier version.
    """
    if played := list(_identities(report)):
        return set(played) == {identity_of(OURS)}
    command = str(report["command"]).partition(" -m ")[2]
    module, *arguments = shlex.split(command.replace("'", "")) or [""]
    return set(_codes(report)) == {_code_of(module, *arguments[:1])}


@cache
def _code_of(module: str, *arguments: str) -> str:
    return code_of(*programs(module, arguments))


def _identities(report: dict[str, Any]) -> Iterator[str]:
    """Of the runs of our methods; on the clock there is a part for each number of workers."""
    for method in report.get("ours", ()):
        yield from report.get("identities", {}).get(method, [""])
    parts = report.get("workers")
    for part in parts.values() if isinstance(parts, dict) else ():
        yield from _identities(part)


def _codes(report: dict[str, Any]) -> Iterator[str]:
    yield report.get("code", "")
    for rows in report.values():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and "code" in row:
                yield row["code"]
