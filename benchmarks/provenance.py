"""What makes a result repeatable: the command, the date, the versions, the choices."""

import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import mfhpo
from benchmarks.fingerprints import fingerprints
from benchmarks.rests_on import kinds_of

ROOT = Path(__file__).parents[1]
_PRODUCT = ("mfhpo", "integrations")


def provenance(module: str, arguments: Sequence[str], *packages: str) -> dict[str, object]:
    """Describe a run of a benchmark.

    "fingerprints" says how the experiments chose that the result rests on, by kind; "commit" names
    the state of the repository, if there is one, with a + if the product has been changed since.

    Parameters
    ----------
    module
        The module that was run.
    arguments
        Its command-line arguments, the file that it wrote to left out.
    packages
        Distributions whose versions matter, besides NumPy and SciPy.
    """
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = "+" if head and _git("status", "--porcelain", "--", *_PRODUCT) else ""
    return {
        "command": " ".join(["python -m", module, *arguments]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": {
            "python": platform.python_version(),
            "mfhpo": mfhpo.__version__,
            **{name: version(name) for name in ("numpy", "scipy", *packages)},
        },
        "machine": platform.machine(),
        "fingerprints": fingerprints(kinds_of(module)),
        **({"commit": head + changed} if head else {}),
    }


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
