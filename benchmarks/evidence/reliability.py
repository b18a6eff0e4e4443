"""What became of races of several workers on real storages, and of Optuna alone there."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.evidence.tables import distinct, only, percent, result, table

_OPTUNA = "RandomSampler"

# Of what a trial may leave behind in the process of its study, or beside it.
_LEFT = ("children", "descriptors", "mebibytes", "files")

_NOTHING = 20  # MiB; what a study takes anyway


def storages() -> str:
    """Each sampler on each storage, nothing going wrong."""
    cells = [cell for cell in _cells() if cell.get("fault") == "none"]
    rows = []
    for storage in distinct(cells, "storage"):
        of_storage = [cell for cell in cells if cell["storage"] == storage]
        for cell in sorted(of_storage, key=lambda cell: cell["sampler"] == _OPTUNA):
            rows.append([storage, f"`{cell['sampler']}`", *_figures(cell)])
    return table(_head("storage", "sampler"), rows, words=2)


def faults() -> str:
    """Races in the middle of which something goes wrong, beside Optuna alone."""
    cells = [cell for cell in _cells() if cell.get("fault", "none") != "none"]
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


def cluster() -> str:
    """Studies whose workers a queue kills and starts again."""
    head = ["storage", "workers begun", "killed", "values", "lost", "certified"]
    names = ["begun", "killed", "values", "lost"]
    return table(
        head,
        [
            [storage, *map(found.get, names), "yes" if found["certified"] else "no"]
            for storage, found in result("cluster")["studies"].items()
        ],
    )


def objectives() -> str:
    """What became of trials that misbehave, beside what Optuna alone does with them."""
    cells = [cell for cell in _cells() if "states" in cell]
    rows = []
    for cell in cells:
        if cell["sampler"] == _OPTUNA:
            continue
        alone = only(cells, sampler=_OPTUNA, objective=cell["objective"])
        row = [cell["objective"], cell["states"][1], "kept" if cell["parameters"] else "lost"]
        rows.append([*row, _in_words(alone), *map(cell.get, _LEFT), f"{cell['seconds']:.1f}"])
    head = ["the second of four trials", "state", "parameters", "Optuna alone"]
    return table([*head, "processes", "files open", "MiB", "files", "seconds"], rows, words=4)


def _in_words(alone: dict[str, Any]) -> str:
    """How a study ended without limits, and what it left behind."""
    told = [str(alone["end"])]
    told += [f"{alone['children']} left running"] if alone["children"] else []
    told += [f"{alone['descriptors']} files open"] if alone.get("descriptors", 0) > 0 else []
    told += [f"{alone['mebibytes']} MiB kept"] if alone.get("mebibytes", 0) > _NOTHING else []
    return ", ".join(told)


def values() -> str:
    """What races make of odd values, and Optuna alone."""
    cells = [c for c in _cells() if "certified" in c and "seconds_per_trial" not in c]
    samplers = [name for name in distinct(cells, "sampler") if name != _OPTUNA]
    rows = []
    for objective in distinct(cells, "objective"):
        of_objective = partial(only, cells, objective=objective)
        found = [of_objective(sampler=name) for name in [*samplers, _OPTUNA]]
        rows.append([objective, *map(_answer, found)])
    return table(["values", *(f"`{name}`" for name in [*samplers, _OPTUNA])], rows, words=5)


def _answer(cell: dict[str, Any]) -> str:
    if cell["answer"] is None:
        return f"none, {cell['values']}"
    right = "right" if cell["right"] else "wrong"
    return f"{right}{', certified' * bool(cell['certified'])}, {cell['values']}"


def numbers_of_arms() -> str:
    """What one arm and thousands of them take."""
    rows = [
        [
            cell["objective"],
            f"`{cell['sampler']}`",
            cell["values"],
            f"{1000 * cell['seconds_per_trial']:.1f}",
        ]
        for cell in _cells()
        if "seconds_per_trial" in cell
    ]
    return table(["arms", "sampler", "trials", "ms per trial"], rows, words=2)


def _cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = result("reliability")["cells"]
    return cells


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
    "cluster": cluster,
    "objectives": objectives,
    "values": values,
    "numbers of arms": numbers_of_arms,
}
