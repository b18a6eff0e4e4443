"""What LUCB's decisions read and write: plain arrays and numbers, so that they can be compiled."""

from typing import NamedTuple

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray


class Rules(NamedTuple):
    """What the decisions depend on besides the statistics; M is the number of fidelities."""

    explore: int  # how fidelities are chosen, one of the constants of `explore`
    bounds: FloatArray  # bias bounds xi_m, shape (M,)
    roots: FloatArray  # square roots of the costs, shape (M,)
    usable: BoolArray  # fidelities that cost less than every one with a larger index, shape (M,)
    scales: FloatArray  # twice the noise scale, shape (M,); infinite where unknown
    best_at_most: float  # assumed bound on the best mean; NaN: to be estimated
    second_at_least: float  # assumed bound on the second-best mean; NaN: to be estimated
    factor: float  # (1 + C) / (1 - C) of Remark A.2, the 3 in Line 10 of Algorithm 2
    logarithm: float  # log(L / delta) with L = 4 K M
    epsilon: float  # tolerance
    safeguard: bool  # whether fidelities that cannot separate the leaders are left
    schedule: int  # PULLS or ROUNDS for the published radius, which starts with each pair, else 0


class Cells(NamedTuple):
    """What is known of every arm at every fidelity, all of shape (K, M)."""

    counts: IntArray  # number of pulls, those under way included
    seen: IntArray  # number of values
    means: FloatArray  # means of the values, 0 where there are none
    radii: FloatArray  # confidence radii at `counts`, infinite without values


class Race(NamedTuple):
    """A race under way, for `run_race`; every array is written to."""

    cells: Cells  # what is known; `counts` and `seen` are one array
    active: BoolArray  # arms in the race, shape (K,)
    by: IntArray  # by which arm the others were eliminated, shape (K,)
    committed: IntArray  # commitments of EXPLORE-B, shape (K,)
    exhausted: BoolArray  # the fidelities that the safeguard has left, shape (M,)
    clock: IntArray  # pulls, and M-ths of explorations so far, shape (2,)
    widths: FloatArray  # radii by count, shape (M, N); of the published radius without `growth`
    tape: FloatArray  # sums of the first ``start + 1``, ``start + 2``, ... values, shape (K, M, B)
    start: IntArray  # number of values before the tape, shape (K, M)
    ready: IntArray  # number of values on the tape, shape (K, M)
