"""What became of races of several workers on real storages, and of Optuna alone there."""

from collections.abc import Callable
from typing import Any

from benchmarks.evidence.tables import distinct, only, percent, result, table

_OPTUNA = "RandomSampler"


def storages() -> str:
    """Each sampler on each storage, nothing going wrong."""
    cells = [cell for cell in result("reliability")["cells"] if cell["fault"] == "none"]
    rows = []
    for storage in distinct(cells, "storage"):
        of_storage = [cell for cell in cells if cell["storage"] == storage]
        for cell in sorted(of_storage, key=lambda cell: cell["sampler"] == _OPTUNA):
            rows.append([storage, f"`{cell['sampler']}`", *_figures(cell)])
    return table(_head("storage", "sampler"), rows, words=2)


def faults() -> str:
    """Races in the middle of which something goes wrong, beside Optuna alone."""
    cells = [cell for cell in result("reliability")["cells"] if cell["fault"] != "none"]
    cases = dict.fromkeys((cell["fault"], cell["storage"]) for cell in cells)
    rows = []
    for fault, storage in cases:
        case = [c for c in cells if (c["fault"], c["storage"]) == (fault, storage)]
        alone = only(case, sampler=_OPTUNA)
        for cell in [*(cell for cell in case if cell is not alone), alone]:
            row = [fault, storage, f"`{cell['sampler']}`", cell["values_before"]]
            rows.append([*row, *_figures(cell), cell["workers_lost"]])
    return table([*_head("fault", "storage", "sampler", "before"), "restarts"], rows, words=3)


def soak() -> str:
    """An hour of races with random faults, at a glance."""
    found = result("soak")
    figures = {
        "minutes": f"{found['minutes']:.0f}",
        "races": found["races"],
        "workers that were killed or ended with an error": found["workers_lost"],
        "values": f"{found['values']:,}",
        "values lost": found["values_lost"],
        "values wasted": percent(found["wasted"] / found["values"], 1),
        "races that did not end, or failed otherwise": len(found["failures"]),
        "wrong answers": found["wrong_answers"],
        "seconds of the slowest race": f"{found['slowest']['seconds']:.0f}",
        "locks left behind": found["locks_left"],
    }
    return table(["", ""], figures.items())


def leaks() -> str:
    """What the process that plays the races holds, and what is left beside it."""
    words = {
        "megabytes": "megabytes of memory",
        "descriptors": "open files",
        "threads": "threads",
        "processes": "processes",
        "temporary_files": "temporary files",
    }
    left = result("soak")["leaks"]
    rows = [
        [words[name], *(f"{left[name][when]:.0f}" for when in ("early", "end"))] for name in left
    ]
    return table(["", "after a quarter", "at the end"], rows)


def _head(*words: str) -> list[str]:
    return [*words, "values", "lost", "wasted", "seconds"]


def _figures(cell: dict[str, Any]) -> list[object]:
    ours = cell["sampler"] != _OPTUNA
    return [
        cell["values"],
        cell["values_lost"],
        percent(cell["wasted"] / cell["values"]) if ours else "",
        f"{cell['seconds']:.0f}" if "seconds" in cell else "",
    ]


FIGURES: dict[str, Callable[[], str]] = {
    "workers on storages": storages,
    "faults": faults,
    "soak": soak,
    "soak, left behind": leaks,
}
