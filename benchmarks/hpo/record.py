"""What is kept of a run of an optimiser, and the files that hold it."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

Run: TypeAlias = tuple[str, str, float, int]
"""What tells runs apart: method, problem, budget, seed."""


@dataclass(frozen=True)
class Record:
    """A run of an optimiser on a problem.

    The tuples from `cost` to `claim` have one entry for every recommendation that differs from the
    one before.

    Parameters
    ----------
    method, problem, budget, seed
        Which run it is; the budget in evaluations at the target level.
    cost
        Paid until the recommendation, in evaluations at the target level.
    seconds
        CPU seconds that the optimiser itself had taken until then.
    value
        The recommended configuration's true value at the target level; None where nobody knows.
    claim
        The value that the optimiser promises; None if it promises nothing, or no finite value.
    evaluations
        Their number at each level.
    failures
        Evaluations without a finite value.
    total_cost, total_seconds
        At the end of the run.
    tried
        Number of different configurations that were evaluated, at whatever level.
    best_tried
        The largest true value among them; None where nobody knows.
    crash
        What the optimiser raised, if it did; what it had recommended until then is kept.
    identity
        Of the code that was played, see `benchmarks.hpo.identity`; "" if it is not known.
    """

    method: str
    problem: str
    budget: float
    seed: int
    cost: tuple[float, ...]
    seconds: tuple[float, ...]
    value: tuple[float | None, ...]
    claim: tuple[float | None, ...]
    evaluations: tuple[int, ...]
    failures: int
    total_cost: float
    total_seconds: float
    tried: int
    best_tried: float | None
    crash: str | None = None
    identity: str = ""

    @property
    def run(self) -> Run:
        """What tells it from other runs."""
        return self.method, self.problem, self.budget, self.seed

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Record:
        """The record of which `to_dict` gave these values.

        Raises
        ------
        ValueError
            If one without a default is missing, or there are more.
        """
        names = {field.name for field in fields(cls)}
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        different = sorted((needed - set(values)) | (set(values) - names))
        if different:
            raise ValueError(f"values: {different} are missing or unknown; of another version?")
        arguments: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**arguments)


def slug(name: str) -> str:
    """A name as a part of a file's name."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def file_of(method: str, problem: str, folder: Path) -> Path:
    """Where the runs of a method on a problem are kept."""
    return folder / f"{slug(method)}--{slug(problem)}.jsonl"


def read(files: Iterable[Path]) -> list[Record]:
    """Records in files, one on a line; a last line that was not written to its end is left out.

    Raises
    ------
    ValueError
        If another line is no record.
    """
    return [
        record for file in files for record in records_of(file.read_text(encoding="utf-8"), file)
    ]


def records_of(text: str, file: Path) -> list[Record]:
    """Records in the text of a file, as `read` takes them."""
    records = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            records.append(Record.from_dict(json.loads(line)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file}, line {number}, is no record: {error}") from error
    return records


def append(record: Record, file: Path) -> None:
    """Add a record to a file; what a killed process left of a line before it is removed."""
    with _whole_lines(file) as (stream, _):
        stream.write(as_lines([record]))


def add(
    records: Iterable[Record],
    file: Path,
    choose: Callable[[Iterable[Record], Iterable[Record]], Sequence[Record]],
) -> int:
    """Add those of some records that are chosen in view of what is in a file.

    Parameters
    ----------
    records
        What may be added.
    file
        Made if there is none; nobody else writes to it meanwhile.
    choose
        Called with the records in the file and with `records`.

    Returns
    -------
    int
        How many were added.
    """
    with _whole_lines(file) as (stream, content):
        chosen = choose(records_of(content.decode(), file), records)
        stream.write(as_lines(chosen))
    return len(chosen)


def as_lines(records: Iterable[Record]) -> bytes:
    """Records as the content of a file."""
    lines = [json.dumps(record.to_dict(), allow_nan=False) + "\n" for record in records]
    return "".join(lines).encode()


@contextmanager
def _whole_lines(file: Path) -> Iterator[tuple[BinaryIO, bytes]]:
    """A file to add to, and its whole lines; what is left of another one is removed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # or what another process is adding would be cut off
        stream.seek(0)
        content = stream.read()
        whole = content.rfind(b"\n") + 1
        stream.truncate(whole)
        yield stream, content[:whole]


def drop(file: Path, budget: float, seeds: Collection[int]) -> None:
    """Remove the runs of some seeds with a budget from a file, if there is one."""
    if not file.exists():
        return
    kept = [one for one in read([file]) if one.budget != budget or one.seed not in seeds]
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(as_lines(kept))
    part.replace(file)  # at once: whoever stops it leaves the one or the other
