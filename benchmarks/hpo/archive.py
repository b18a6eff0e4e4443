"""Records of long comparisons, small enough to be kept with the project: a file for each method.

Playing all optimisers takes days. What is archived can be reported on, added to and looked into by
whoever has the project, without playing it again.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from pathlib import Path

from benchmarks.hpo.record import Record, append, file_of, read, records_of

__all__ = ["keep", "restore"]

_SUFFIX = ".jsonl.xz"


def keep(records: Path, archive: Path) -> list[Path]:
    """Add the records of a folder to an archive; of a run that is in both, the folder's counts.

    The same records give the same bytes.

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
    ValueError
        If a file holds something else.
    """
    by_file: dict[Path, list[Record]] = defaultdict(list)
    for record in read(sorted(records.glob("*.jsonl"))):
        by_file[_archived(record, archive)].append(record)
    changed = []
    for file, new in by_file.items():
        last = {record.run: record for record in [*_unpacked(file), *new]}
        lines = [json.dumps(last[run].to_dict(), allow_nan=False) + "\n" for run in sorted(last)]
        content = lzma.compress("".join(lines).encode())
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f"{file.name}.part")
            part.write_bytes(content)
            part.replace(file)
            changed.append(file)
    return sorted(changed)


def restore(archive: Path, records: Path) -> int:
    """Add to a folder the archived records of runs that it has none of.

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
    there = {record.run for record in read(sorted(records.glob("*.jsonl")))}
    added = 0
    for record in (record for file in files for record in _unpacked(file)):
        if record.run not in there:
            append(record, file_of(record.method, record.problem, records))
            added += 1
    return added


def _archived(record: Record, archive: Path) -> Path:
    return archive / f"{file_of(record.method, '', archive).stem.rstrip('-')}{_SUFFIX}"


def _unpacked(file: Path) -> list[Record]:
    if not file.exists():
        return []
    try:
        text = lzma.decompress(file.read_bytes()).decode()
    except lzma.LZMAError as error:
        raise ValueError(f"{file} is no archive of records: {error}") from error
    return records_of(text, file)
