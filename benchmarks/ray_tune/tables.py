"""Learning curves of many configurations, to be replayed: LCBench's, or synthetic ones."""

from pathlib import Path

import numpy as np

from benchmarks.hpo.problems.surrogate import surrogate
from mfhpo.knowledge.arrays import FloatArray

EPOCHS = 52

LCBENCH_TASKS = ("3945", "7593", "34539", "167168", "168330", "168908", "189873", "189906")
"""OpenML tasks that are used; the others of the surrogate are kept for tests of what is new."""

SYNTHETIC_TASKS = ("synthetic 1", "synthetic 2")

_ACCURACY = 1  # of the surrogate's outputs, the validation accuracy in percent


def table(task: str, count: int, seed: int, data: Path | None = None) -> FloatArray:
    """Draw configurations at random; return their learning curves.

    Parameters
    ----------
    task
        One of `LCBENCH_TASKS` or `SYNTHETIC_TASKS`.
    count
        Number of configurations.
    seed
        The same seed gives the same configurations, whatever their number.
    data
        Folder of the surrogate of LCBench, needed for its tasks.

    Returns
    -------
    array of shape (count, 52)
        Validation accuracy in percent after each epoch.
    """
    if task in SYNTHETIC_TASKS:
        return synthetic(SYNTHETIC_TASKS.index(task), count, seed)
    if data is None:
        raise ValueError(f"task {task!r} needs the folder of LCBench's surrogate.")
    return lcbench(data, task, count, seed)


def lcbench(data: Path, task: str, count: int, seed: int) -> FloatArray:
    """Curves of YAHPO Gym's surrogate of LCBench (Pfisterer et al., AutoML 2022).

    Raises
    ------
    FileNotFoundError
        If the folder lacks the surrogate.
    """
    model = surrogate(data)
    uniform = np.random.default_rng(seed).random((count, 7))

    def between(column: int, low: float, high: float) -> FloatArray:
        return low + (high - low) * uniform[:, column]

    def log_between(column: int, low: float, high: float) -> FloatArray:
        return np.exp(between(column, np.log(low), np.log(high)))

    configurations = np.column_stack(
        [
            np.round(log_between(0, 16, 512)),  # batch_size
            log_between(1, 1e-4, 0.1),  # learning_rate
            between(2, 0.1, 0.99),  # momentum
            between(3, 1e-5, 0.1),  # weight_decay
            1.0 + np.floor(between(4, 0.0, 5.0)),  # num_layers
            np.round(log_between(5, 64, 1024)),  # max_units
            between(6, 0.0, 1.0),  # max_dropout
        ]
    )
    epochs = np.tile(np.arange(1.0, EPOCHS + 1), count)[:, None]
    values = np.hstack([epochs, np.repeat(configurations, EPOCHS, axis=0)])
    code = model.encoding["OpenML_task_id"][task]
    outputs = model.predict(values, np.full((len(values), 1), code))
    return outputs[:, _ACCURACY].astype(np.float64).reshape(count, EPOCHS)


def synthetic(number: int, count: int, seed: int) -> FloatArray:
    """Power-law curves that cross: those that learn fast tend to end lower.

    A curve of accuracy, in percent, is ``end - (end - begin) * epoch ** -speed``. The ends are
    spread over 60 to 95, more of them near the top in the second task; what a configuration
    begins with says nothing about its end.
    """
    quality, haste, luck = np.random.default_rng(seed).random((count, 3)).T
    end = 60.0 + 35.0 * quality ** (1.0, 0.5)[number]
    begin = 10.0 + 30.0 * luck
    speed = 0.4 + 0.8 * haste - 0.3 * quality
    epochs = np.arange(1.0, EPOCHS + 1)
    curves: FloatArray = end[:, None] - (end - begin)[:, None] * epochs ** -speed[:, None]
    return curves
