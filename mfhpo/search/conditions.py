"""Which configurations have a parameter, as far as others told: by choices and by thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ByChoice", "ByThreshold", "Question", "explain"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

_MOST_QUESTIONS = 3  # in a row
_TRIED = 4  # of the questions that may come first


@dataclass(frozen=True)
class ByChoice:
    """Each choice of a parameter either settles it or leads to another question.

    Parameters
    ----------
    parent
        Name of the parameter; configurations without it do not have the other one either.
    answers
        By choice; a choice that is missing says yes.
    """

    parent: str
    answers: Mapping[int, Answer]

    def branches(self, values: FloatArray) -> list[tuple[BoolArray, Answer]]:
        """Which values lead to which answer; those of none say yes."""
        return [(values == choice, answer) for choice, answer in self.answers.items()]


@dataclass(frozen=True)
class ByThreshold:
    """Numbers on the two sides of a threshold; see `ByChoice`."""

    parent: str
    threshold: float
    below: Answer
    above: Answer

    def branches(self, values: FloatArray) -> list[tuple[BoolArray, Answer]]:
        """Which values lead to which answer."""
        return [(values < self.threshold, self.below), (values >= self.threshold, self.above)]


Question: TypeAlias = ByChoice | ByThreshold
Answer: TypeAlias = bool | Question


def explain(
    has: BoolArray,
    choices: Mapping[str, FloatArray],
    steps: Mapping[str, FloatArray],
    numbers: Mapping[str, FloatArray],
) -> Question | None:
    """Find the questions that tell the configurations with a parameter from those without it.

    The fewer in a row the better, and among as many those about choices are preferred to those
    about numbers with steps; other numbers come last, and with one question alone, for among many
    of them one has a threshold by chance. Three in a row are the most.

    Parameters
    ----------
    has
        Which configurations have it, shape (n,).
    choices, steps, numbers
        By name, the values of the parameters that it may depend on, shape (n,), NaN where they are
        missing; all configurations that have it must have these.

    Returns
    -------
    Question or None
        None if nothing tells all of them apart.

    Examples
    --------
    >>> layers = np.array([1.0, 2.0, 3.0, 2.0])
    >>> explain(layers > 1.0, {}, {"layers": layers}, {})
    ByThreshold(parent='layers', threshold=1.5, below=False, above=True)
    """
    if not has.any():  # perhaps a choice that was not seen has it
        for name, values in choices.items():
            seen = np.unique(values[~np.isnan(values)])
            if seen.size:
                return ByChoice(name, {int(choice): False for choice in seen})
        return None
    for most in range(1, _MOST_QUESTIONS + 1):
        for ordered in ({}, steps) if steps else ({},):
            found = _explain(has, choices, ordered, most)
            if found is not None and not isinstance(found, bool):
                return found
    found = _explain(has, {}, numbers, 1)
    return None if isinstance(found, bool) else found


def _explain(
    has: BoolArray,
    choices: Mapping[str, FloatArray],
    numbers: Mapping[str, FloatArray],
    most: int,
) -> Answer | None:
    """The same for a part of the configurations; None if they cannot be told apart."""
    if has.all() or not has.any():
        return bool(has.all())
    if most == 0:
        return None
    ways: list[tuple[Question, FloatArray]] = []
    ways += _ways_by_choice(choices)
    ways += _ways_by_threshold(has, numbers)
    if not ways:
        return None
    # Those that leave least to be told apart go first.
    mixed = [_left_mixed(has, question, values) for question, values in ways]
    for place in np.argsort(mixed, kind="stable")[: _TRIED if most > 1 else 1]:
        question, values = ways[place]
        answers: list[Answer] = []
        for inside, _ in question.branches(values):
            answer = _explain(
                has[inside],
                {name: several[inside] for name, several in choices.items()},
                {name: several[inside] for name, several in numbers.items()},
                most - 1,
            )
            if answer is None:
                break
            answers.append(answer)
        else:
            if isinstance(question, ByThreshold):
                return ByThreshold(question.parent, question.threshold, *answers)
            return _answered(question, answers)
    return None


def _answered(question: ByChoice, answers: Sequence[Answer]) -> ByChoice:
    return ByChoice(question.parent, dict(zip(question.answers, answers, strict=True)))


def _ways_by_choice(choices: Mapping[str, FloatArray]) -> list[tuple[ByChoice, FloatArray]]:
    """A question for every parameter whose choices may tell something; its answers are open."""
    ways: list[tuple[ByChoice, FloatArray]] = []
    for name, values in choices.items():
        missing = np.isnan(values)
        chosen = np.unique(values[~missing])
        if len(chosen) > 1 or missing.any():
            ways.append((ByChoice(name, {int(choice): True for choice in chosen}), values))
    return ways


def _ways_by_threshold(
    has: BoolArray, numbers: Mapping[str, FloatArray]
) -> list[tuple[ByThreshold, FloatArray]]:
    """The best threshold of every number; its answers are open."""
    ways: list[tuple[ByThreshold, FloatArray]] = []
    for name, values in numbers.items():
        there = ~np.isnan(values)
        order = np.argsort(values[there], kind="stable")
        ordered, having = values[there][order], has[there][order]
        between = np.flatnonzero(ordered[1:] > ordered[:-1])
        if not between.size:
            continue
        below, n_below = np.cumsum(having)[between], between + 1
        above, n_above = having.sum() - below, len(having) - n_below
        mixed = _mixture(below, n_below) + _mixture(above, n_above)
        cut = between[int(np.argmin(mixed))]
        threshold = float((ordered[cut] + ordered[cut + 1]) / 2.0)
        ways.append((ByThreshold(name, threshold, below=True, above=True), values))
    return ways


def _left_mixed(has: BoolArray, question: Question, values: FloatArray) -> float:
    """How much there is left to tell apart on the branches; 0 if nothing."""
    inside = [has[branch] for branch, _ in question.branches(values)]
    return sum(float(_mixture(part.sum(), len(part))) for part in inside if len(part))


def _mixture(n_having: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Gini's impurity, times the number of configurations."""
    share = np.divide(n_having, n)
    return np.asarray(n * share * (1.0 - share))
