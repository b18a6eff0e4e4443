"""Which configurations have a parameter: questions about their other values tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mfhpo.knowledge.arrays import BoolArray, FloatArray

_MOST_QUESTIONS = 3  # in a row
_TRIED = 4  # of the questions that may come first


@dataclass(frozen=True)
class Question:
    """Asks for the value of a parameter, which either settles it or leads to another question.

    Configurations without the `parent` do not have the other parameter either. Of the `branches`,
    values from the first number to below the second one have this answer; others say yes.
    """

    parent: str
    branches: tuple[tuple[float, float, Answer], ...]

    def inside(self, values: FloatArray) -> list[BoolArray]:
        """Return which values belong to each branch."""
        return [(values >= low) & (values < high) for low, high, _ in self.branches]


Answer: TypeAlias = bool | Question


def explain(
    has: BoolArray,
    choices: Mapping[str, FloatArray],
    steps: Mapping[str, FloatArray],
    numbers: Mapping[str, FloatArray],
) -> Question | None:
    """Find the questions that tell the configurations with a parameter from those without it.

    Few questions in a row are preferred to more, three at most, and questions about choices to
    those about numbers with steps. Other numbers come last, and with one question alone, because
    among many of them one has a fitting threshold by chance. `has` says which configurations have
    it, (n,), the others are the values of parameters that it may depend on, NaN where missing.
    None if nothing tells all of them apart.
    """
    if not has.any():  # perhaps a choice that was not seen has it
        seen = (each for each in choices.items() if not np.isnan(each[1]).all())
        return next((_about_choices(name, values, False) for name, values in seen), None)
    for most in range(1, _MOST_QUESTIONS + 1):
        for ordered in ({}, steps) if steps else ({},):
            found = _explain(has, choices, ordered, most)
            if isinstance(found, Question):
                return found
    found = _explain(has, {}, numbers, 1)
    return found if isinstance(found, Question) else None


def _explain(
    has: BoolArray, choices: Mapping[str, FloatArray], numbers: Mapping[str, FloatArray], most: int
) -> Answer | None:
    """Explain a part of the configurations; None if they cannot be told apart."""
    if has.all() or not has.any():
        return bool(has.all())
    if most == 0:
        return None
    ways = list(_ways(has, choices, numbers))
    # Those that leave least to be told apart go first.
    parts = [[has[inside] for inside in question.inside(values)] for question, values in ways]
    mixed = [sum(float(_mixture(part.sum(), len(part))) for part in each) for each in parts]
    for place in np.argsort(mixed, kind="stable")[: _TRIED if most > 1 else 1].tolist():
        question, values = ways[place]
        told: list[tuple[float, float, Answer]] = []
        for inside, (low, high, _) in zip(question.inside(values), question.branches, strict=True):
            chosen = {name: several[inside] for name, several in choices.items()}
            placed = {name: several[inside] for name, several in numbers.items()}
            answer = _explain(has[inside], chosen, placed, most - 1)
            if answer is None:
                break
            told.append((low, high, answer))
        else:
            return Question(question.parent, tuple(told))
    return None


def _ways(
    has: BoolArray, choices: Mapping[str, FloatArray], numbers: Mapping[str, FloatArray]
) -> Iterator[tuple[Question, FloatArray]]:
    """Return open questions: about each choice, and each number's best threshold."""
    for name, values in choices.items():
        question = _about_choices(name, values, True)
        if len(question.branches) > 1 or np.isnan(values).any():
            yield question, values
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
        yield Question(name, ((-np.inf, threshold, True), (threshold, np.inf, True))), values


def _about_choices(name: str, values: FloatArray, answer: bool) -> Question:
    seen = np.unique(values[~np.isnan(values)]).tolist()
    return Question(name, tuple((choice, choice + 1.0, answer) for choice in seen))


def _mixture(n_having: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Return Gini's impurity, times the number of configurations."""
    share = np.divide(n_having, np.maximum(n, 1))
    return np.asarray(n * share * (1.0 - share))
