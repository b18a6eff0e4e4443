"""z-RCUCB: a time limit anywhere up to a longest one, on a grid that is refined where it pays.

Paper 004 (Bengs, Hüllermeier), Section 4 and Algorithm 1.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mfhpo._validation import MOST_ARMS, MOST_LEVELS, check_count, check_positive
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.policy import CensoredPolicy, Confidence
from mfhpo.censored.upper_bounds import is_refinable
from mfhpo.knowledge.arrays import FloatArray

# Rounds that are planned for at first where no horizon is declared.
_FIRST_HORIZON = 64


class ZoomingRCUCB(CensoredPolicy):
    """RCUCB with a grid of limits for each arm that grows where it is played.

    An arm begins with the longest limit alone. A limit stands for the interval down to the next
    lower one; the pair with the largest upper bound plus what the gain may differ within its
    interval is played (Eq. 13). Once the bound is narrower than that, the interval is split into
    equal parts (Eq. 14), and what is known about the new limits is taken from all earlier pulls.

    Differences to Algorithm 1: only the limit that was played is split, not the lower ones. The
    answer is the pair with the best lower bound. The finest one may have been split early for its
    width, and be far from the best.

    Parameters
    ----------
    n_arms
        Number of arms.
    longest
        The largest limit, in seconds.
    splits
        See `mfhpo.censored.options.ZoomingRCUCBOptions`. It is m of the paper.
    smoothness
        See `mfhpo.censored.options.ZoomingRCUCBOptions`. In the paper it is 1 for longest = 1.
    cost, penalty, reward_range, max_failures
        See `mfhpo.censored.options.ZoomingRCUCBOptions`.
    exploration
        See `CensoredPolicy`. All bounds are at the level alpha log(n T^2 / delta).
    confidence
        See `CensoredPolicy`. "kl+" is refused.
    delta
        Probability with which a bound may fail within the horizon, in (0, 1); also for the
        intervals of gains in the answers, and again for those of survival. Approximate if
        `reward_range` is None.
    horizon
        Number of rounds T, after which the policy is finished. None: it never finishes, and T is
        doubled whenever it is reached; what was learned is kept.

    Raises
    ------
    ValueError, TypeError
        For arguments out of range or of another kind.

    Notes
    -----
    The first split of a pair takes about 2 V log(n T^2 / delta) / smoothness^2 pulls for gains with
    the variance V: with a large penalty at the longest limit that is many.

    Examples
    --------
    >>> from mfhpo import Observation
    >>> from mfhpo.censored import Linear
    >>> policy = ZoomingRCUCB(2, 4.0, penalty=Linear(0.1), reward_range=(0, 1), horizon=500)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     seconds, reward = (0.9, 0.7) if pull.arm == 0 else (3.0, 0.4)
    ...     if seconds <= pull.limit:
    ...         policy.tell(pull, Observation(reward, cost=seconds))
    ...     else:
    ...         policy.tell(pull, Observation(None, cost=pull.limit, censored_at=pull.limit))
    >>> policy.recommend().arm, len(policy.points(0)) > 1
    (0, True)
    """

    def __init__(
        self,
        n_arms: int,
        longest: float,
        *,
        splits: int = 2,
        smoothness: float = 1.0,
        confidence: Confidence = "kl",
        **options: Any,
    ) -> None:
        if isinstance(confidence, str) and confidence == "kl+":
            raise ValueError(
                'confidence="kl+" narrows its bounds with the rounds, but the level of z-RCUCB is '
                'fixed by its horizon; take "kl".'
            )
        if "limits" in options:
            raise TypeError("limits must be left out: they are chosen up to `longest`.")
        self._splits = check_count("splits", splits, 2, MOST_LEVELS)
        check_positive("longest", longest)
        self._smoothness = check_positive("smoothness", smoothness, "; try 1") / longest
        n_arms = check_count("n_arms", n_arms, 1, MOST_ARMS)
        self._points = [np.array([float(longest)]) for _ in range(n_arms)]
        super().__init__(n_arms, [float(longest)], confidence=confidence, **options)

    def points(self, arm: int) -> FloatArray:
        """Return an arm's limits so far, in seconds, increasing."""
        self._check_arm(arm)
        return self._points[arm].copy()

    def _plan_further(self, estimates: GainEstimates) -> None:
        """Double a horizon that is reached: the bounds become wider, and the grid stays."""
        if self.horizon is None and self.pulls >= self._planned:
            self._set_level(estimates)

    def _set_level(self, estimates: GainEstimates) -> None:
        while self.horizon is None and self.pulls >= self._planned:
            self._planned *= 2
        level = math.log(self.n_arms * float(self._planned) ** 2 / self.delta)
        estimates.rule = estimates.rule._replace(level=level)

    def _set_points(self, estimates: GainEstimates) -> None:
        self._planned = _FIRST_HORIZON if self.horizon is None else self.horizon
        self._set_level(estimates)
        for arm, limits in enumerate(self._points):
            estimates.set_limits(arm, limits)

    def _take_note(self, arm: int, limit: float) -> None:
        super()._take_note(arm, limit)
        estimates = self._known()
        point = estimates.latest[1]
        if point >= 0 and is_refinable(estimates.tallies, estimates.rule, arm, point):
            self._refine(estimates, arm)
        self._plan_further(estimates)

    def _refine(self, estimates: GainEstimates, arm: int) -> None:
        point = estimates.latest[1]
        limits = self._points[arm]
        below = limits[point - 1] if point else 0.0
        parts = np.linspace(below, limits[point], self._splits + 1)[1:-1]
        self._points[arm] = np.union1d(limits, parts)
        estimates.set_limits(arm, self._points[arm])
        estimates.record_all(*self._history.arrays(arm))
        estimates.note_latest(arm, float(limits[point]))
        self._lowest.pop(arm, None)

    def _share_of_delta(self, estimates: GainEstimates, arm: int) -> list[float]:
        # Points are found by looking at the data, among countably many places: a level of m^d
        # places gets a share of 1 / ((d + 1) (d + 2)).
        longest = float(self._points[arm][-1])
        shares = []
        for limit in estimates.limits(arm).tolist():
            depth, place = 0, limit / longest
            while abs(place - round(place)) > 1e-9 and depth < 60:
                place *= self._splits
                depth += 1
            places = self.n_arms * float(self._splits) ** depth
            shares.append(self.delta / (places * (depth + 1) * (depth + 2)))
        return shares

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        return super().state_dict() | {"points": [limits.tolist() for limits in self._points]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        self._check_arguments(state)
        self._points = [np.array(limits) for limits in state["points"]]
        super().load_state_dict(state)
