"""How long plays of MF-UCB take: by its definition, by its candidates, and compiled."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.papers.mf_ucb_regret import draw_instance
from benchmarks.report import numba_if_installed
from benchmarks.simulation.instances import Instance
from benchmarks.simulation.mf_ucb import play
from mfhpo.knowledge.arrays import IntArray
from mfhpo.regret import MFUCB

# Capital of the plays that are timed, and of those of the naive rule, which is slow.
_TIMED = {1: (1e7, 2e5), 2: (1e7, 4e4), 3: (5e6, 2e5), 4: (1e7, 4e4)}


@dataclass(frozen=True)
class Speed:
    """CPU seconds for a million plays: medians, scaled from `plays` plays.

    `same_plays` says whether it made the naive rule's plays, in their order.
    """

    instance: int
    method: str
    plays: int
    seconds: float
    same_plays: bool


def naive_plays(
    instance: Instance, rng: np.random.Generator, capital: float, rho: float = 2.0
) -> IntArray:
    """MF-UCB by its definition (Algorithm 1): every step looks at every arm and fidelity.

    Returns the plays, arm * M + fidelity. Draws as many values at once as
    `benchmarks.simulation.mf_ucb.play` does, so that both see the same values.
    """
    n_arms, n_fidelities = instance.n_arms, instance.n_fidelities
    zeta, costs = instance.xi, instance.costs
    width = math.sqrt(instance.variance) * math.sqrt(2.0 * rho)
    gamma = zeta[:-1] * np.sqrt(costs[:-1] / costs[1:])
    counts = np.zeros((n_arms, n_fidelities), dtype=np.int64)
    centres = np.full((n_arms, n_fidelities), np.inf)
    slopes = np.zeros((n_arms, n_fidelities))
    drawn: dict[tuple[int, int], list[float]] = {}
    sums = np.zeros((n_arms, n_fidelities))
    plays: list[int] = []
    paid = 0.0
    while True:
        root = math.sqrt(math.log(len(plays) + 1))
        arm = int(np.argmax((centres + slopes * root).min(axis=1)))
        fidelity = n_fidelities - 1
        for m in range(n_fidelities - 1):
            if not counts[arm, m] or slopes[arm, m] * root >= gamma[m]:
                fidelity = m
                break
        if costs[fidelity] > capital - paid:
            return np.array(plays, dtype=np.int64)
        cell = (arm, fidelity)
        count = int(counts[cell])
        if not drawn.get(cell):
            totals = np.arange(count + 1, count + min(256, max(16, count)) + 1)
            following = instance.running_sums(
                rng, np.array([arm]), fidelity, count, sums[[arm], fidelity], totals
            )
            drawn[cell] = following[0, ::-1].tolist()
        sums[cell] = drawn[cell].pop()
        counts[cell] += 1
        centres[cell] = sums[cell] / counts[cell] + zeta[fidelity]
        slopes[cell] = width / math.sqrt(counts[cell])
        plays.append(arm * n_fidelities + fidelity)
        paid += float(costs[fidelity])


def _played(
    instance: Instance, rng: np.random.Generator, capital: float, *, compiled: bool
) -> IntArray:
    order: list[IntArray] = []
    source = partial(instance.running_sums, rng)
    play(MFUCB(instance.problem()), source, capital, compiled=compiled, order=order)
    return np.concatenate(order)


def speeds(numbers: Sequence[int], repeats: int, *, seed: int = 0) -> Iterator[Speed]:
    """CPU time of plays, by instance and method."""
    methods: dict[str, Callable[[Instance, np.random.Generator, float], IntArray]] = {
        "naive": naive_plays,
        "lazy": partial(_played, compiled=False),
    }
    if numba_if_installed():
        methods["lazy, compiled"] = partial(_played, compiled=True)
    for number in numbers:
        instance = draw_instance(number, np.random.default_rng([seed, number]))
        long, short = _TIMED[number]
        expected = naive_plays(instance, np.random.default_rng(seed), short)
        for name, method in methods.items():
            # What is compiled is compiled here.
            first = method(instance, np.random.default_rng(seed), short)
            capital = short if method is naive_plays else long
            seconds = []
            for _ in range(repeats):
                started = time.process_time()
                plays = len(method(instance, np.random.default_rng(seed), capital))
                seconds.append((time.process_time() - started) / plays * 1e6)
            same = bool(np.array_equal(first, expected))
            yield Speed(number, name, plays, float(np.median(seconds)), same)
