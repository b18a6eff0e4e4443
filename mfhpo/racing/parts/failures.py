"""Whether an arm fails so often that it leaves a race."""

import math

from scipy.special import betainc, betaln

# An arm may fail up to this share of its evaluations and stay in the race: it then costs twice as
# much as one that never fails.
_TOLERATED_RATE = 0.5

# Probability with which an arm that fails at a tolerated rate ever leaves.
_LEVEL = 0.01


def fails_too_often(values: int, failures: int, max_failures: int, elsewhere: int = 0) -> bool:
    """Tell whether an arm leaves because its evaluations at a fidelity fail.

    An arm without values leaves after `max_failures` failures. One with values leaves once its
    failure rate at a fidelity is confidently above one half. `elsewhere` counts values at other
    fidelities.

    Examples
    --------
    >>> [fails_too_often(values, 15, max_failures=3) for values in (0, 1, 13)]
    [True, True, False]
    """
    if values + elsewhere == 0:
        return failures >= max_failures
    if failures < max_failures or failures <= values:
        return False
    return evidence_of_failing(values, failures) >= 1.0 / _LEVEL


def evidence_of_failing(values: int, failures: int) -> float:
    """Return how strongly the outcomes say that more than half of the evaluations fail.

    It is the likelihood of a failure rate drawn evenly between one half and 1, over that of one
    half. This is a nonnegative supermartingale for every rate up to one half, so that it ever
    reaches 1 / a with probability at most a (Ville's inequality).
    """
    a, b = failures + 1.0, values + 1.0
    # The integral of r^failures (1 - r)^values from the tolerated rate to 1.
    mass = betainc(b, a, 1.0 - _TOLERATED_RATE)
    if mass == 0.0:
        return 0.0
    log_likelihood = float(betaln(a, b)) + math.log(mass) - math.log(1.0 - _TOLERATED_RATE)
    log_at_rate = failures * math.log(_TOLERATED_RATE) + values * math.log(1.0 - _TOLERATED_RATE)
    return math.exp(min(log_likelihood - log_at_rate, 700.0))
