"""Check a release's wheel: python .ci/check_wheel.py FOLDER [TAG].

It holds the product and nothing else, is small, and its version is that of the tag.
"""

import sys
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from zipfile import Path as ZipPath
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
MOST_BYTES = 2_000_000


def metadata(wheel: Path) -> Distribution:
    """Return what an installed wheel would say about itself."""
    name, version = wheel.name.split("-")[:2]
    return PathDistribution(ZipPath(wheel) / f"{name}-{version}.dist-info")


def product() -> set[str]:
    """Return the files of the product, by their names in a wheel."""
    integrations = ROOT / "integrations"
    files = {
        path.relative_to(base).as_posix()
        for folder, base in [(ROOT / "mfhpo", ROOT), (integrations, integrations)]
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return files


def faults(wheel: Path, tag: str = "") -> list[str]:
    """Return what is wrong with a wheel."""
    found = []
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    for name in sorted(held ^ product()):
        found.append(f"{name} is {'not of the product' if name in held else 'missing'}")
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"{wheel.stat().st_size} bytes, and at most {MOST_BYTES} are allowed")
    about = metadata(wheel)
    if about.metadata["Name"] != "mfhpo" or about.metadata["Requires-Python"] != ">=3.10":
        found.append("name or Requires-Python is wrong")
    if tag and tag != f"v{about.version}":
        found.append(f"the tag is {tag}, the version {about.version}")
    return found


if __name__ == "__main__":
    [only] = Path(sys.argv[1]).glob("*.whl")
    sys.exit("\n".join(faults(only, *sys.argv[2:])) or None)
