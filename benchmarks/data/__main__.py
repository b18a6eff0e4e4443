"""Fetch the published data that benchmarks read, into the data folder.

    python -m benchmarks.data                  # what is missing, from github.com
    python -m benchmarks.data --only iise      # a part of it
    python -m benchmarks.data --from FOLDER    # from clones: FOLDER/OWNER/REPOSITORY

The data folder is `MFHPO_DATA`, else ~/.cache/mfhpo/data. What is there and right is left alone.
Everything is fetched at a pinned commit, whose name is a hash that git checks. The files that
published results rest on are checked by hashes of their own. The status is 1 if something lacks.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data.folder import data_folder
from benchmarks.data.sources import PARTS, Part
from benchmarks.report import progress


def main(arguments: Sequence[str] | None = None, parts: Sequence[Part] = PARTS) -> int:
    """Run the command line; for tests, with other parts than the published ones."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.data", description=(__doc__ or "").splitlines()[0]
    )
    names = [part.name for part in parts]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="PART")
    parser.add_argument(
        "--from", dest="base", default="https://github.com", help="where the repositories are"
    )
    options = parser.parse_args(arguments)
    base = str(Path(options.base).resolve()) if Path(options.base).is_dir() else options.base
    folder = data_folder()
    lacking: dict[str, list[str]] = {}
    for part in (part for part in parts if part.name in options.only):
        try:
            progress(f"{part.name}: {_fetch(part, base, folder)}")
        except (OSError, ValueError) as error:
            lacking.setdefault(str(error), []).append(part.name)
    for reason, missing in lacking.items():
        progress(f"{', '.join(missing)}: not to be had now: {reason}")
    progress(f"{folder}: {'something is missing' if lacking else 'complete'}")
    return 1 if lacking else 0


def _fetch(part: Part, base: str, folder: Path) -> str:
    """Fetch a part unless it is there; says what was done."""
    if part.is_there(folder):
        return "is there"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetched-") as fresh:
        checked = part.fetch(base, Path(fresh), folder)
    return f"fetched from {base}/{part.repository} at {part.commit[:12]}; {checked}"


if __name__ == "__main__":
    sys.exit(main())
