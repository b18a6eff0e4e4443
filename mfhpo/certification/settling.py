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
    """Prospects of further trials, by the values of those so far; ``print`` them."""

    n_ended: int  # with a value or without
    best: float  # NaN if there is no value
    epsilon: float  # by how much a value must be better to count
    trials: int  # how many further ones this is about
    chance: float  # the estimated probability that one of them is better by more than epsilon

    def __str__(self) -> str:
        return (
            f"the best of {self.n_ended} trials is {self.best:.6g}; the next {self.trials} find "
            f"something better by more than {self.epsilon:.3g} with an estimated probability of "
            f"{self.chance:.1%}"
        )


@dataclass(frozen=True)
class Settling:
    """Tells when a study is settled; for the arguments see `mfhpo_optuna.StopWhenSettled`."""

    epsilon: float | None = None
    trials: int = 50
    delta: float = 0.1

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_nonnegative("epsilon", self.epsilon)
        check_count("trials", self.trials, 1)
        check_probability("delta", self.delta)

    def is_settled(self, values: ArrayLike) -> bool:
        """Return whether trials are settled, by their values in order, (n,); NaN for none."""
        found = np.asarray(values, dtype=float)
        n = len(found)
        return n >= N_FIRST + N_IN_A_ROW - 1 and all(
            self.outlook(found[: n - back]).chance <= self.delta for back in range(N_IN_A_ROW)
        )

    def outlook(self, values: ArrayLike, sign: float = 1.0) -> Outlook:
        """Return what trials say about the next ones; `values` are multiplied by the `sign`.

        How far the best quarter of the values exceeds the value below it is taken to be exponential
        with the mean that was seen, and the next trials to be like those so far.
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
