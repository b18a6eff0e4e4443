"""What LUCB's decisions read and write: plain arrays and numbers, so that they can be compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Cells", "Race", "Rules"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Rules(NamedTuple):
    """What the decisions depend on besides the statistics; M is the number of fidelities.

    Attributes
    ----------
    explore
        How fidelities are chosen, one of the constants of `explore`.
    bounds
        Bias bounds xi_m, shape (M,).
    roots
        Square roots of the costs, shape (M,).
    usable
        Fidelities that cost less than every one with a larger index, shape (M,).
    scales
        Twice the noise scale, shape (M,), 1 for values within [0, 1]; infinite where unknown.
    best_at_most, second_at_least
        Assumed bounds on the best and the second-best mean; NaN where they are to be estimated.
    factor
        (1 + C) / (1 - C) of Remark A.2, the 3 in Line 10 of Algorithm 2.
    logarithm
        log(L / delta) with L = 4 K M.
    epsilon
        Tolerance.
    safeguard
        Whether fidelities that cannot separate the leaders are left.
    once_each
        Whether every arm is pulled once at every fidelity first.
    schedule
        PULLS or ROUNDS for the published radius, else 0.
    """

    explore: int
    bounds: FloatArray
    roots: FloatArray
    usable: BoolArray
    scales: FloatArray
    best_at_most: float
    second_at_least: float
    factor: float
    logarithm: float
    epsilon: float
    safeguard: bool
    once_each: bool
    schedule: int


class Cells(NamedTuple):
    """What is known of every arm at every fidelity, all of shape (K, M).

    Attributes
    ----------
    counts
        Number of pulls, those under way included.
    seen
        Number of values.
    means
        Means of the values, 0 where there are none.
    radii
        Confidence radii at `counts`, infinite without values.
    """

    counts: IntArray
    seen: IntArray
    means: FloatArray
    radii: FloatArray


class Race(NamedTuple):
    """A race under way, for `run_race`; every array is written to.

    Attributes
    ----------
    cells
        What is known; `counts` and `seen` are one array.
    active, by, committed, exhausted
        Arms in the race and by which arm the others were eliminated, commitments, all of shape
        (K,); the fidelities that the safeguard has left, shape (M,).
    clock
        Pulls, and M-ths of explorations so far, shape (2,).
    widths
        Radii by count, shape (M, N); of the published radius what multiplies `growth`.
    tape
        Sums of the values to come, shape (K, M, B): of the first ``start + 1``, ``start + 2``, ...
    start, ready
        Number of values before the tape, and on it, shape (K, M).
    """

    cells: Cells
    active: BoolArray
    by: IntArray
    committed: IntArray
    exhausted: BoolArray
    clock: IntArray
    widths: FloatArray
    tape: FloatArray
    start: IntArray
    ready: IntArray
