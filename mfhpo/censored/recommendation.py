"""The answer of a policy that chooses time limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mfhpo.problem import Recommendation

__all__ = ["LimitRecommendation", "SurvivalPoint"]


class SurvivalPoint(NamedTuple):
    """How probably a pull runs beyond a limit.

    Parameters
    ----------
    limit
        The limit in seconds.
    probability
        Estimated probability of not ending by it, moved into the bounds if it lies outside.
    low, high
        Bounds, valid at all times with probability 1 - delta for all arms and limits together.
    """

    limit: float
    probability: float
    low: float
    high: float


@dataclass(frozen=True)
class LimitRecommendation(Recommendation):
    """An arm and a time limit, with what they gain.

    Of `Recommendation`, ``mean`` is the estimated gain of the pair, in the unit of the reward,
    moved into its interval if it lies outside; ``interval`` holds bounds on it that are valid at
    all times, with probability 1 - delta for all pairs together, once all pulls that were begun
    have been told; ``certified`` is False, because the aim is reward while it runs.

    Parameters
    ----------
    limit
        The recommended limit in seconds, None before any limit is known.
    survival
        The recommended arm's survival curve, one point for each of its limits.
    censored
        Share of the pulls so far that were stopped at their limit.
    """

    limit: float | None = None
    survival: tuple[SurvivalPoint, ...] = ()
    censored: float = 0.0
