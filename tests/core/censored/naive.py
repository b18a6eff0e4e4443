"""Estimates and indices as Bengs and Hüllermeier (2023) print them, from a list of pulls: slow."""

import math
from typing import NamedTuple

import numpy as np


class Seen(NamedTuple):
    """A pull: its limit, and what it would have given and taken without one."""

    arm: int
    limit: float
    reward: float
    seconds: float

    @property
    def stopped(self):
        return self.seconds > self.limit


def record(estimates, arm, limit, reward, seconds):
    estimates.learn(np.array([arm]), *np.array([[limit], [reward], [seconds]]))


def charged(charge, seconds):
    return float(charge(np.array([seconds]))[0])


def expected_gain(history, tau, cost):
    """Eq. 8; NaN without a pull at a limit of at least tau."""
    told = [pull for pull in history if pull.limit >= tau]
    if not told:
        return math.nan
    ended = [pull for pull in told if pull.seconds <= tau]
    return sum(pull.reward - charged(cost, pull.seconds) for pull in ended) / len(told)


def counted_survival(history, tau):
    """The share in Eq. 9: a pull that was stopped counts as beyond all limits."""
    beyond = [pull for pull in history if pull.stopped or pull.seconds > tau]
    return len(beyond) / len(history) if history else 1.0


def product_limit(history, tau):
    """The estimator of Kaplan and Meier as textbooks have it: over the durations seen."""
    surviving = 1.0
    ends = sorted({pull.seconds for pull in history if not pull.stopped and pull.seconds <= tau})
    for end in ends:
        ended = sum(not pull.stopped and pull.seconds == end for pull in history)
        at_risk = sum(min(pull.seconds, pull.limit) >= end for pull in history)
        surviving *= 1.0 - ended / at_risk
    return surviving


def bins_between(floor, top, bins=5):
    """Equidistant values; if the floor is far down, all but one of them within 1 of the top."""
    if top - floor <= 1.5:
        return np.linspace(floor, top, bins)
    return np.append(floor, np.linspace(top - 1.0, top, bins - 1))


def spread(gains, values):
    """Weights on increasing values that keep the sum: each gain goes to its two neighbours."""
    return np.array([np.interp(gains, values, one).sum() for one in np.eye(len(values))])


def largest_means(weights, values, levels, top):
    """Largest means within a divergence of `levels` from weights (k, v) on values (k, v).

    The nearest distribution is proportional to p / (root - value), its root found by bisection.
    """
    shares = weights / weights.sum(axis=1, keepdims=True)
    # The gap of the root above the top is searched on a logarithmic scale.
    least, most = np.full(len(values), -30.0), np.full(len(values), 30.0)
    for _ in range(60):
        middle = 0.5 * (least + most)
        distance = np.exp(middle)[:, None] + (top - values)
        divergence = (shares * np.log(distance)).sum(axis=1)
        divergence += np.log((shares / distance).sum(axis=1))
        too_near = divergence > levels
        least, most = np.where(too_near, middle, least), np.where(too_near, most, middle)
    distance = np.exp(most)[:, None] + (top - values)
    tilted = shares / distance
    means = (tilted * values).sum(axis=1) / tilted.sum(axis=1)
    # Where even the nearest root leaves divergence to spare, the rest is weight on the top.
    distance = np.maximum(top - values, np.exp(-30.0))
    spare = (shares * np.log(distance)).sum(axis=1) + np.log((shares / distance).sum(axis=1))
    kept = np.exp(np.minimum(spare - levels, 0.0))
    means = np.where(spare < levels, kept * means + (1.0 - kept) * top, means)
    return np.where(levels <= 0.0, (shares * values).sum(axis=1), means)
