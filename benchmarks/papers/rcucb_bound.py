"""What arms with limits on consumption must cost: a lower bound in the manner of Lai and Robbins.

A method that is consistent on all problems with rewards in [0, 1] cannot do without finding out
that a worse pair is worse. Take an arm, and another law of its outcomes which leaves everything up
to some limit tau0 as it is, but makes the gain at a longer limit tau as good as the best one. Plays
of the arm must tell the two laws apart: with N(tau') plays at tau', of which each tells K(tau'),
the Kullback-Leibler divergence of what can be seen with that limit,

    sum over tau' of N(tau') K(tau') >= log T    for every tau0 < tau, as T grows.

Of the laws with that gain, the one nearest to the truth is taken. The regret of the arm is then at
least the least sum of N(tau') Delta(tau') that satisfies all of these: a small linear programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, minimize_scalar

from benchmarks.papers.rcucb_instances import CensoredInstance
from mfhpo.censored import Charge
from mfhpo.knowledge.arrays import FloatArray

# Below this a gap is taken for none: gains are not known more exactly.
_NO_GAP = 1e-9


def regret_per_log(
    instance: CensoredInstance,
    limits: FloatArray,
    cost: Charge,
    penalty: Charge,
    *,
    draws: int = 20_000,
    seed: int = 0,
) -> float:
    """The factor of log T in the lower bound of the regret.

    Divergences are those of a sample of each arm, made to have the true gains and probabilities.
    With 20,000 draws the factor is known to one or two per cent.
    """
    gains, survival = instance.gains(limits, cost, penalty), instance.survival(limits)
    gaps = gains.max() - gains
    rng = np.random.default_rng(seed)
    total = 0.0
    for arm in range(instance.n_arms):
        rewards, consumptions = instance.draw(rng, arm, draws)
        sample = _true_to(
            gains[arm] + penalty(limits) * survival[arm],
            survival[arm],
            np.searchsorted(limits, consumptions),
            rewards - cost(consumptions),
        )
        told = _divergences(sample, float(gains.max()), limits, cost, penalty(limits), gaps[arm])
        if len(told):
            solved = linprog(gaps[arm], A_ub=-told, b_ub=-np.ones(len(told)))
            if solved.fun is None:
                raise ArithmeticError(f"no lower bound for arm {arm}: {solved.message}")
            total += float(solved.fun)
    return total


@dataclass(frozen=True)
class _Sample:
    """Draws of an arm: the first limit that each keeps, what it earns, and its weight."""

    kept_by: npt.NDArray[np.int64]
    earned: FloatArray
    weights: FloatArray

    def after(self, place: int) -> _Sample:
        """Those that exceed the limits before this one."""
        later = self.kept_by >= place
        return _Sample(self.kept_by[later], self.earned[later], self.weights[later])

    def mean(self, values: npt.NDArray[Any]) -> float:
        """Weighted mean."""
        return float(np.average(values, weights=self.weights))


def _true_to(
    earned: FloatArray, survival: FloatArray, kept_by: npt.NDArray[np.int64], values: FloatArray
) -> _Sample:
    """Weigh and shift draws so that between limits they have true probabilities and means.

    `earned` is E[(R - c(C)) 1{C <= limit}], without which a small gap drowns in chance.
    """
    shares = -np.diff(survival, prepend=1.0, append=0.0)
    counts = np.bincount(kept_by, minlength=len(shares))
    weights = shares[kept_by] / counts[kept_by]
    sums = np.diff(earned, prepend=0.0)
    values = values.copy()
    for place in np.flatnonzero(counts[:-1]).tolist():
        chosen = kept_by == place
        if shares[place] > 0.0:
            values[chosen] += sums[place] / shares[place] - values[chosen].mean()
    return _Sample(kept_by, values, weights)


def _divergences(
    sample: _Sample,
    best: float,
    limits: FloatArray,
    cost: Charge,
    fines: FloatArray,
    gaps: FloatArray,
) -> FloatArray:
    """What a play at each limit tells of each law that has to be ruled out, shape (laws, m)."""
    rows = []
    for start in range(len(limits)):
        later = sample.after(start)
        share = float(later.weights.sum() / sample.weights.sum())
        if not share:
            continue
        before = sample.mean(np.where(sample.kept_by < start, sample.earned, 0.0))
        wanted = (best - before) / share
        most = 1.0 - float(cost(limits[start - 1 : start] if start else np.zeros(1))[0])
        for place in range(start, len(limits)):
            values = np.where(later.kept_by <= place, later.earned, -fines[place])
            if gaps[place] > _NO_GAP and later.mean(values) < wanted < most:
                told = np.zeros(len(limits))
                told[start:] = share * _told(later, values, wanted, most, start, place, len(limits))
                rows.append(told)
    return np.array(rows)


def _told(
    sample: _Sample,
    values: FloatArray,
    wanted: float,
    most: float,
    start: int,
    place: int,
    n_limits: int,
) -> FloatArray:
    """Divergences, by limit from the start on, from the nearest law with the wanted mean.

    Its density is 1 / (1 - eta (y - wanted)) with the eta that maximises the mean logarithm of the
    denominator (Honda and Takemura 2010); what is missing to 1 is an atom at `most`.
    """
    excess = values - wanted
    # Shifted draws may lie a little above the largest value.
    largest = max(most - wanted, float(excess.max()))
    found = minimize_scalar(
        lambda eta: -sample.mean(np.log1p(-eta * excess)),
        bounds=(0.0, (1.0 - 1e-9) / largest),
        method="bounded",
    )
    logarithms = np.log1p(-float(found.x) * excess)
    told = np.full(n_limits - start, sample.mean(logarithms))
    for shorter in range(start, place):
        ended = sample.kept_by <= shorter
        running = sample.mean(~ended)
        seen = sample.mean(np.where(ended, logarithms, 0.0))
        if running:
            other = sample.mean(np.where(ended, 0.0, np.exp(-logarithms)))
            seen += running * float(np.log(running / other))
        told[shorter - start] = max(0.0, seen)
    return told
