"""LCBench: networks on tabular data, epochs as the fidelity (Zimmer et al., 2021), by surrogate."""

from pathlib import Path

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.surrogate import SurrogateProblem, scenario_folder

DEVELOPMENT_TASKS = (
    "167168",
    "189873",
    "189906",
    "3945",
    "7593",
    "34539",
    "168330",
    "168908",
)
"""OpenML tasks on which methods may be developed; the others are kept to judge them."""

LEVELS = (2.0, 6.0, 17.0, 52.0)
"""Epochs."""

_CONTINUOUS = (
    "epoch",
    "batch_size",
    "learning_rate",
    "momentum",
    "weight_decay",
    "num_layers",
    "max_units",
    "max_dropout",
)
_OUTPUT = (1, 0, 1.0)  # val_accuracy, in percent; time


def lcbench(
    task: str,
    data: Path | str | None = None,
    sigma: float = 0.5,
    levels: tuple[float, ...] = LEVELS,
) -> SurrogateProblem:
    """Tune a network on one of LCBench's tasks: validation accuracy in percent.

    Parameters
    ----------
    task
        OpenML's number of it.
    data
        Folder that holds lcbench/; by default ``$MFHPO_DATA/yahpo``.
    sigma
        Standard deviation of the noise, in percent.
    levels
        Whole numbers of epochs, between 1 and 52 and increasing.

    Raises
    ------
    FileNotFoundError
        If a file of the surrogate is missing.
    ValueError
        If the task or the levels are not the surrogate's.
    """
    if not all(1 <= level <= 52 and level == int(level) for level in levels):
        raise ValueError(f"levels must be whole numbers of epochs in 1 to 52, got {levels!r}.")
    return SurrogateProblem(
        f"lcbench {task}",
        scenario_folder("lcbench", data),
        FidelitySpace("epoch", levels, continues=True),
        {"OpenML_task_id": task},
        _CONTINUOUS,
        ("OpenML_task_id",),
        _OUTPUT,
        sigma,
    )
