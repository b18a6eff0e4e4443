"""What makes a result repeatable: the command, the date, the versions."""

import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version

import mfhpo


def provenance(module: str, arguments: Sequence[str], *packages: str) -> dict[str, object]:
    """Describe a run of a benchmark.

    Parameters
    ----------
    module
        The module that was run.
    arguments
        Its command-line arguments, the file that it wrote to left out.
    packages
        Distributions whose versions matter, besides NumPy and SciPy.
    """
    return {
        "command": " ".join(["python -m", module, *arguments]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": {
            "python": platform.python_version(),
            "mfhpo": mfhpo.__version__,
            **{name: version(name) for name in ("numpy", "scipy", *packages)},
        },
        "machine": platform.machine(),
    }
