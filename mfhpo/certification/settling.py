"""The chance that further trials find something better, by the values of those so far."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mfhpo._validation import check_count, check_nonnegative, check_probability
from mfhpo.knowledge.arrays import FloatArray

N_FIRST = 20
"""The values by whose median it is told what was gained, and the fewest trials to judge by."""

N_IN_A_ROW = 10
"""An estimate is believed once it has been small after so many trials."""

GAIN_SHARE = 0.05
"""The default of epsilon, as a share of what was gained."""

_FEWEST_BEST = 8
_TAIL_SHARE = 0.25  # of the values: so many are looked at


@dataclass(frozen=True)
class Outlook:
    """Prospects of further trials, by the values of those so far.

    Parameters
    ----------
    n_ended
        Trials that have ended, with a value or without.
    best
        The best value so far; NaN if there is none.
    epsilon
        By how much a value must be better to count.
    trials
        How many further trials this is about.
    chance
        The estimated probability that one of them is better by more than `epsilon`.
    """

    n_ended: int
    best: float
    epsilon: float
    trials: int
    chance: float

    def __str__(self) -> str:
        """Return it as a sentence."""
        return (
            f"the best of {self.n_ended} trials is {self.best:.6g}; the next {self.trials} find "
            f"something better by more than {self.epsilon:.3g} with an estimated probability of "
            f"{self.chance:.1%}"
        )


@dataclass(frozen=True)
class Settling:
    """When a study is settled: its next trials are unlikely to find something better.

    Parameters
    ----------
    epsilon
        How much better is worth going on for, in units of the value. None: a twentieth of what was
        gained, from the median of the first 20 values to the best one.
    trials
        How many more trials there would be.
    delta
        The largest estimated probability of finding something better with which the study is
        settled, after each of ten trials in a row.

    Raises
    ------
    TypeError, ValueError
        If one of them is not what it should be.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(0).normal(size=200)
    >>> print(Settling(epsilon=0.5).outlook(values))
    the best of 200 trials is 2.00239; the next 50 find something better by more than 0.5 with an
    estimated probability of 37.3%
    """

    epsilon: float | None = None
    trials: int = 50
    delta: float = 0.1

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_nonnegative("epsilon", self.epsilon)
        check_count("trials", self.trials, 1)
        check_probability("delta", self.delta)

    def is_settled(self, values: ArrayLike) -> bool:
        """Return whether trials are settled.

        Parameters
        ----------
        values
            In the order of the trials, the larger the better, shape (n,); NaN for a trial without
            a value.
        """
        found = np.asarray(values, dtype=float)
        n = len(found)
        return n >= N_FIRST + N_IN_A_ROW - 1 and all(
            self.outlook(found[: n - back]).chance <= self.delta for back in range(N_IN_A_ROW)
        )

    def outlook(self, values: ArrayLike, sign: float = 1.0) -> Outlook:
        """Return what trials say about the next ones.

        Parameters
        ----------
        values
            See `is_settled`.
        sign
            -1 if `values` are those of a metric that is minimised, with their signs changed: the
            best value is told with its own.

        Notes
        -----
        The best quarter of the values is the tail. How far it exceeds the value below it is taken
        to be exponential with the mean that was seen, and the next trials to be like those so far.
        """
        every = np.asarray(values, dtype=float)
        found = every[np.isfinite(every)]
        if not len(found):
            return Outlook(len(every), np.nan, self.epsilon or 0.0, self.trials, 1.0)
        best, epsilon = float(found.max()), self.epsilon
        if epsilon is None:
            epsilon = GAIN_SHARE * (best - float(np.median(found[:N_FIRST])))
        chance = _chance_of_better(found, epsilon, self.trials, len(every))
        return Outlook(len(every), sign * best, epsilon, self.trials, chance)


def _chance_of_better(values: FloatArray, epsilon: float, trials: int, n_ended: int) -> float:
    n_best = max(_FEWEST_BEST, int(_TAIL_SHARE * len(values)))
    if len(values) <= n_best:
        return 1.0
    threshold, *tail = np.sort(values)[-n_best - 1 :]
    excess = float(np.mean(tail) - threshold)
    if not excess > 0.0:
        # The best are all equal, which tells nothing. This is the chance of a new record among
        # independent trials, whatever their values.
        return trials / (n_ended + trials)
    each = n_best / n_ended * np.exp((threshold - tail[-1] - epsilon) / excess)
    return 1.0 if each >= 1.0 else float(-np.expm1(trials * np.log1p(-each)))
