"""How much there is to read: lines, files, floors of imports, functions that a trial passes.

python -m benchmarks.size             # counts alone
python -m benchmarks.size --seconds   # runs the tests as well
"""

import argparse
import graphlib
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import grimp

from benchmarks.one_trial import SAMPLERS, functions_of_one_trial

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "mfhpo": ROOT / "mfhpo",
    "mfhpo_optuna": ROOT / "integrations" / "mfhpo_optuna",
    "mfhpo_ray": ROOT / "integrations" / "mfhpo_ray",
    "mfhpo_sklearn": ROOT / "integrations" / "mfhpo_sklearn",
}
_OTHERS = ("benchmarks", "examples", "tests")


def floors(package: str) -> dict[str, int]:
    """How many children of a package, and of each package in it, stand on each other.

    A child that is a package counts as one, with all that it holds.
    """
    graph = grimp.build_graph(package, cache_dir=None)
    parents = [module for module in graph.modules if graph.find_children(module)]
    return {parent: _height(graph, parent) for parent in sorted(parents)}


def entries(folder: Path) -> dict[Path, int]:
    """How many files and folders a folder, and each folder in it, shows."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    return {
        path: sum(entry.name != "__pycache__" for entry in path.iterdir())
        for path in folders
        if "__pycache__" not in path.parts
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.size", description=__doc__)
    parser.add_argument("--seconds", action="store_true", help="run `make test` and time it")
    options = parser.parse_args(arguments)
    print("| package | files | lines | floors | entries of a folder, at most |")
    print("|---|---|---|---|---|")
    for name, folder in [*PACKAGES.items(), *((name, ROOT / name) for name in _OTHERS)]:
        files, lines = _count(folder.rglob("*.py"))
        deep = str(max(floors(name).values())) if name in PACKAGES else ""
        print(f"| {name} | {files} | {lines} | {deep} | {max(entries(folder).values())} |")
    files, lines = _count(path for folder in PACKAGES.values() for path in folder.rglob("*.py"))
    print(f"| product | {files} | {lines} | | |")
    print("\n| one trial of | functions | files |\n|---|---|---|")
    for name in SAMPLERS:
        functions, files = functions_of_one_trial(name)
        print(f"| {name} | {functions} | {files} |")
    if options.seconds:
        began = time.monotonic()
        done = subprocess.run(["make", "test"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        print(f"\n`make test` took {time.monotonic() - began:.0f} s")
        return done.returncode
    return 0


def _count(paths: Iterable[Path]) -> tuple[int, int]:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return len(texts), sum(text.count("\n") for text in texts)


def _height(graph: grimp.ImportGraph, package: str) -> int:
    children = graph.find_children(package)
    below = {
        child: {
            other
            for other in children - {child}
            if graph.find_shortest_chains(child, other, as_packages=True)
        }
        for child in children
    }
    height: dict[str, int] = {}
    for child in graphlib.TopologicalSorter(below).static_order():
        height[child] = 1 + max((height[other] for other in below[child]), default=0)
    return max(height.values())


if __name__ == "__main__":
    sys.exit(main())
