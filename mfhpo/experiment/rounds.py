"""Rounds of evaluations by one driver, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from mfhpo.experiment.assignment import Assignment
from mfhpo.experiment.events import Ended
from mfhpo.experiment.experiment import Experiment

T = TypeVar("T")

Outcome: TypeAlias = tuple[float | None, float | None]
"""Value and cost of an evaluation: see `mfhpo.experiment.Ended`."""


def evaluated(
    experiment: Experiment,
    evaluate: Callable[[Sequence[Assignment]], Iterable[tuple[T, Outcome]]],
    at_once: int,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Assignment, T]]:
    """Evaluate what an experiment asks for, so many at once, and yield what it was told.

    Parameters
    ----------
    experiment
        Nobody else changes it meanwhile.
    evaluate
        Yields what came of a round's assignments, in their order, with its outcome.
    at_once
        Number of evaluations of a round.
    is_over
        Asked before each round: whether no other one is to begin.
    """
    while not is_over():
        wanted: list[Assignment] = []
        first = experiment.n_begun
        while len(wanted) < at_once and isinstance(work := experiment.next(), Assignment):
            experiment.apply(work.begun(str(first + len(wanted)), experiment.order))
            wanted.append(work)
        if not wanted:
            return
        for place, (found, (value, cost)) in enumerate(evaluate(wanted)):
            order = experiment.order
            experiment.apply(Ended(id=str(first + place), order=order, value=value, cost=cost))
            yield wanted[place], found
