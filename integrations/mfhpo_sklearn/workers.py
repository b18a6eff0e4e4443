"""Fits by several workers come in the order asked, and an interrupt loses only those under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

from mfhpo_sklearn.evaluation import Evaluation, evaluate


def workers(n_jobs: int | None) -> Parallel:
    """Workers that hand over results as they come, where joblib's backend can."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    except ValueError:  # the backend "multiprocessing"
        return Parallel(n_jobs=n_jobs)


def evaluations(
    parallel: Parallel, tasks: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Evaluation]]:
    """What comes of each task, the arguments of `evaluate`, and which task it is.

    They come in the order of the tasks, so that what is learned from them does not depend on which
    worker is faster. After a KeyboardInterrupt, all that have ended come before it is raised.
    """
    ended: dict[int, Evaluation] = {}
    place = 0
    try:
        for found, evaluation in parallel(
            delayed(_evaluate_at)(number, *task) for number, task in enumerate(tasks)
        ):
            ended[found] = evaluation
            while place in ended:
                yield place, ended.pop(place)
                place += 1
    except KeyboardInterrupt:
        for found in sorted(ended):
            yield found, ended[found]
        raise


def _evaluate_at(place: int, *task: Any) -> tuple[int, Evaluation]:
    return place, evaluate(*task)
