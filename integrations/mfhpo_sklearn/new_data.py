"""An interval for the score on new data of the same kind, beside the one about the data at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from mfhpo.racing.recommendation import UserRecommendation
from mfhpo.search.recommendation import UserSearchRecommendation


def interval_for_new_data(
    scores: Sequence[float], test_per_train: float, delta: float
) -> tuple[float, float]:
    """Return an approximate interval for the expected score on new data of the same kind.

    Scores on splits of the same data are not independent, because the splits share samples. The
    corrected resampled variance of their mean is (1 / J + n_test / n_train) * s^2 for J scores of
    variance s^2 (Nadeau and Bengio 2003, Section 4.1); Student's t has J - 1 degrees of freedom.

    Parameters
    ----------
    scores
        Of one setting on random splits, shape (J,).
    test_per_train
        Test samples of a split by its training samples.
    delta
        About the probability that the interval misses, in (0, 1).

    Returns
    -------
    tuple of float
        Infinite for fewer than two scores, and for equal ones: they say nothing about the spread.

    Examples
    --------
    >>> low, high = interval_for_new_data([0.8, 0.9, 0.85, 0.85], test_per_train=0.25, delta=0.05)
    >>> round(low, 3), round(high, 3)
    (0.758, 0.942)
    """
    n = len(scores)
    if n < 2 or np.ptp(scores) == 0.0:
        return -math.inf, math.inf
    variance = (1.0 / n + test_per_train) * float(np.var(scores, ddof=1))
    half = float(stdtrit(n - 1, 1.0 - delta / 2.0)) * math.sqrt(variance)
    mean = float(np.mean(scores))
    return mean - half, mean + half


class BesideNewData:
    """An answer about the data at hand, with the interval for new data beside its own."""

    delta: float
    new_data_interval: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.new_data_interval
        said = "nothing is known yet"
        if math.isfinite(high - low):
            said = (
                f"in [{low:.5g}, {high:.5g}], wrong with probability about {self.delta:g} "
                f"(approximate: corrected resampled variance, Nadeau and Bengio 2003)"
            )
        return (
            f"{super().__str__()}\n"
            f"  these data  interval and claim are about random splits of these data\n"
            f"  new data    the score on new data of the same kind: {said}"
        )


@dataclass(frozen=True, kw_only=True)
class SearchRecommendation(BesideNewData, UserRecommendation):
    """Which setting to be content with, and how sure that is.

    The other fields are those of `mfhpo.racing.recommendation.UserRecommendation`.

    Parameters
    ----------
    new_data_interval
        About the expected score on new data of the same kind, of a fit on as many samples as a
        split trains on. It is approximate (`interval_for_new_data`); infinite where too little is
        known.
    """

    new_data_interval: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class RaceSearchRecommendation(SearchRecommendation, UserSearchRecommendation):
    """Which of the settings that a search has tried to be content with, and how sure that is.

    The fields are those of `SearchRecommendation` and of
    `mfhpo.search.recommendation.UserSearchRecommendation`.
    """
