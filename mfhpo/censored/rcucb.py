"""RCUCB: which arm to pull, and how long it may take, where a pull may be stopped; and z-RCUCB.

Paper 004 (Bengs, Hüllermeier, "Multi-Armed Bandits with Censored Consumption of Resources",
Machine Learning 2023), Sections 3.3 and 4.
"""

from collections.abc import Sequence
from typing import Any

from mfhpo._validation import check_index
from mfhpo.censored.limits import Refinement, SharedLimits
from mfhpo.censored.policy import CensoredPolicy, Confidence
from mfhpo.knowledge.arrays import FloatArray


class RCUCB(CensoredPolicy):
    """Play the arm and the limit with the highest upper bound on what they gain.

    Every arm is played once at the largest limit, and then, in round t, the pair (i, tau) with the
    largest estimate plus confidence length (Eq. 12). A pull informs about all limits up to its own,
    also when it was stopped. For the reward while it runs; it certifies nothing.

    Parameters
    ----------
    n_arms
        Number of arms n.
    limits
        Limits in seconds, positive and increasing; or how many are to be derived from the first
        durations: equidistant over their interquartile range (Section 5.2).
    longest, cost, penalty, reward_range, delta, horizon, max_failures
        See `mfhpo.censored.options.RCUCBOptions`.

    Notes
    -----
    With N(i, tau) pulls at limits of at least tau, the upper bounds are:

    ``"kl"``
        The largest mean that empirical likelihood leaves possible for the gain of a pull at tau, at
        the level alpha log t / N(i, tau), by pulls that tell all of tau. For gains on finitely many
        values, regret is asymptotically the least of a consistent rule that does not share between
        limits (Cappé and others 2013, with log log t more).
    ``"kl+"``
        The same at the level alpha log(t / N(i, tau)), the default, as in KL-UCB+ (Garivier and
        Cappé 2011; Honda 2019 for one-parameter families). In the benchmarks its regret is below
        that of "kl" everywhere.
    ``"bernstein"``
        Mean of the same gains + sqrt(2 V alpha log t / N) + 3 w alpha log t / N with their variance
        V and width w (Audibert, Munos, Szepesvári 2009).
    ``"printed"``
        The estimate + sqrt(2 alpha log t / N(i, tau)) + lambda(tau) sqrt(2 alpha log t / N(i, 0)):
        Proposition 1, for alpha > 1, and where every pull tells whether it ran beyond tau.
    ``"published curves"``
        The same without the last term, as in the published figures. It is no bound where the
        penalty is large.

    With a range or limits that were found out and not declared, none of them holds strictly.
    Intervals of answers are by empirical likelihood in all cases. Where several pulls run at once,
    the quick ones come back first, and estimates and intervals lean towards them: with 16 workers
    and 150 pulls, most intervals missed for pairs whose pulls either end at once or run to the
    limit.

    Examples
    --------
    >>> from mfhpo import Observation
    >>> from mfhpo.censored import Linear
    >>> policy = RCUCB(2, [1.0, 2.0], cost=Linear(0.1), reward_range=(0, 1), horizon=300)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     seconds, reward = (0.5, 0.7) if pull.arm == 0 else (1.5, 0.9)
    ...     if seconds <= pull.limit:
    ...         policy.tell(pull, Observation(reward, cost=seconds))
    ...     else:
    ...         policy.tell(pull, Observation(None, cost=pull.limit, censored_at=pull.limit))
    >>> answer = policy.recommend()
    >>> answer.arm, answer.limit, round(answer.mean, 2)
    (1, 2.0, 0.75)
    """

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray | int = 10,
        *,
        longest: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(n_arms, SharedLimits(limits, longest), **options)


class ZoomingRCUCB(CensoredPolicy):
    """RCUCB with a grid of limits for each arm that grows where it is played.

    An arm begins with the longest limit alone. A limit stands for the interval down to the next
    lower one; the pair with the largest upper bound plus what the gain may differ within its
    interval is played (Eq. 13). Once the bound is narrower than that, the interval is split into
    equal parts (Eq. 14), and what is known about the new limits is taken from all earlier pulls.
    Other than in Algorithm 1, only the limit that was played is split, not the lower ones, and the
    answer is the pair with the best lower bound.

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
        Probability with which a bound may fail within the horizon, in (0, 1); also as in `RCUCB`.
    horizon
        Number of rounds T, after which the policy is finished. None: it never finishes, and T is
        doubled whenever it is reached; what was learned is kept.

    Notes
    -----
    The first split of a pair takes about 2 V log(n T^2 / delta) / smoothness^2 pulls for gains with
    the variance V: with a large penalty at the longest limit that is many.
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
        self._refined = Refinement(n_arms, longest, splits, smoothness)
        limits = SharedLimits([longest])
        super().__init__(n_arms, limits, self._refined, confidence=confidence, **options)

    def points(self, arm: int) -> FloatArray:
        """Return an arm's limits so far, in seconds, increasing."""
        check_index("arm", arm, self.n_arms)
        return self._refined.points[arm].copy()
