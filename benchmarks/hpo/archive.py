"""Records of long comparisons, small enough to be kept with the project: a file for each method.

Playing all optimisers takes many hours. What is archived can be reported on, added to and looked
into by whoever has the project, without playing it again.
"""

import fcntl
import lzma
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.hpo.identity import identity_of
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.record import Record, Run, add, as_lines, file_of, read, records_of, slug

_SUFFIX = ".jsonl.xz"
_OURS = "mfhpo "


def keep(records: Path, archive: Path) -> list[Path]:
    """Add the records of a folder to an archive, from which nothing is ever removed.

    Of a run that is in both, the one that was played by our methods' present code counts. Else, of
    ours the archived one counts, which a release may have been judged by; of a peer the folder's.

    Parameters
    ----------
    records
        Folder of files as they are played.
    archive
        Folder of compressed files; made if there is none.

    Returns
    -------
    list of Path
        The files that changed.

    Raises
    ------
    FileNotFoundError
        If there are no records.
    ValueError
        If a file holds something else.
    """
    by_file: dict[Path, list[Record]] = defaultdict(list)
    for record in read(sorted(records.glob("*.jsonl"))):
        by_file[archive / f"{slug(record.method)}{_SUFFIX}"].append(record)
    if not by_file:
        raise FileNotFoundError(f"{records} holds no records, *.jsonl; play some by run.")
    archive.mkdir(parents=True, exist_ok=True)
    changed = []
    with _alone(archive):
        for file, new in sorted(by_file.items()):
            old = _by_run(_unpacked(file))
            newer = [one for one in new if one.run not in old or _may_replace(one)]
            merged = _by_run([*old.values(), *newer])
            if merged != old:
                _pack([merged[run] for run in sorted(merged)], file)
                changed.append(file)
    return changed


def restore(archive: Path, records: Path) -> int:
    """Add to a folder the archived records of runs that it lacks.

    So is a run that it has of other code of ours, if the present code's is archived.

    Parameters
    ----------
    archive, records
        See `keep`.

    Returns
    -------
    int
        How many were added.

    Raises
    ------
    FileNotFoundError
        If there is no archive.
    ValueError
        If a file holds something else.
    """
    files = sorted(archive.glob(f"*{_SUFFIX}"))
    if not files:
        raise FileNotFoundError(f"{archive} holds no archived records, *{_SUFFIX}.")
    by_file: dict[Path, list[Record]] = defaultdict(list)
    for record in (record for file in files for record in _unpacked(file)):
        by_file[file_of(record.method, record.problem, records)].append(record)

    def lacking(there: Iterable[Record], archived: Iterable[Record]) -> list[Record]:
        last = _by_run(there)
        return [
            record
            for record in _by_run(archived).values()
            if record.run not in last or (_is_present(record) and not _is_present(last[record.run]))
        ]

    return sum(add(archived, file, lacking) for file, archived in by_file.items())


def _may_replace(record: Record) -> bool:
    """Whether a record may take the place of an archived one of the same run."""
    return _is_present(record) or not record.method.startswith(_OURS)


def _is_present(record: Record) -> bool:
    """Whether our methods' present code has played it."""
    return record.identity == identity_of(OURS)


def _by_run(records: Iterable[Record]) -> dict[Run, Record]:
    """The record that counts of each run: the present code's, else the last one."""
    counting: dict[Run, Record] = {}
    for record in records:
        other = counting.get(record.run)
        if other is None or _is_present(record) or not _is_present(other):
            counting[record.run] = record
    return counting


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _pack(records: Iterable[Record], file: Path) -> None:
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(lzma.compress(as_lines(records)))
    part.replace(file)  # at once: whoever stops it leaves the one or the other


def _unpacked(file: Path) -> list[Record]:
    if not file.exists():
        return []
    try:
        text = lzma.decompress(file.read_bytes()).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no archive of records: {error}") from error
    return records_of(text, file)
