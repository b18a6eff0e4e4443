"""The answer of a policy that chooses time limits, and the same in the terms of whoever asked."""

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, TypeVar

from mfhpo.problem import Recommendation, plain
from mfhpo.racing.claims import FIXED, wrong_in_words
from mfhpo.racing.recommendation import params_in_words

AnswerT = TypeVar("AnswerT", bound="UserLimitRecommendation")


def bounds_in_words(delta: float, estimated: str) -> str:
    """Say how often bounds are wrong: with probability delta, or approximately."""
    return f"approximate: {estimated}" if estimated else wrong_in_words(delta, ())


class SurvivalPoint(NamedTuple):
    """How probably a pull runs beyond a limit, with bounds.

    Parameters
    ----------
    limit
        The limit in seconds.
    probability
        The estimate; one outside the bounds is moved into them.
    low, high
        Bounds, valid at all times with probability 1 - delta for all arms and limits together, if
        the limits are declared.
    """

    limit: float
    probability: float
    low: float
    high: float


@dataclass(frozen=True)
class LimitRecommendation(Recommendation):
    """An arm and a time limit, with what they gain; never certified, because the aim is reward.

    ``mean`` is the estimated gain of the pair, moved into its interval if it lies outside;
    ``interval`` is valid at all times, with probability 1 - delta for all pairs together, once all
    pulls that were begun have been told; it is approximate where something is `estimated`.

    Parameters
    ----------
    limit
        The recommended limit in seconds, None before any limit is known.
    survival
        The recommended arm's survival curve, one point for each of its limits.
    censored
        Share of the pulls so far that were stopped at their limit.
    estimated
        What the bounds rest on and was not declared, in words: the range of the rewards, or the
        limits. Empty if they were declared.
    """

    limit: float | None = None
    survival: tuple[SurvivalPoint, ...] = ()
    censored: float = 0.0
    estimated: str = ""


@dataclass(frozen=True)
class UserLimitRecommendation:
    """Which configuration to run, for how long, and the gain of that.

    Parameters
    ----------
    params, arm
        The configuration, empty when there is none, and its index among the arms, or None.
    limit
        The time limit in seconds to run it with; None while limits are being derived.
    gain, interval
        Estimated gain of a trial under that limit, in the unit and the direction of the objective,
        and bounds on it. It is the value, charged with the cost of its time, or the worst value,
        charged with the penalty, if it is stopped.
    delta
        Probability with which any of the bounds on gains may fail, for all pairs and at any time.
        The bounds of `survival` have the same probability for themselves. It is approximate where
        something is `estimated`: then bounds on gains are often too narrow in the first trials.
    survival, censored, estimated
        See `LimitRecommendation`.
    finished, reason
        Whether the horizon is reached; why it is over, or that it is not.
    seconds, trials
        What all trials took, and how many they are.
    survivors
        Indices of the arms in play: those that did not keep failing.
    assumptions
        What the bounds rest on; what was estimated is named as such.
    """

    params: dict[str, Any]
    arm: int | None
    limit: float | None
    gain: float
    interval: tuple[float, float]
    delta: float
    survival: tuple[SurvivalPoint, ...]
    censored: float
    finished: bool
    reason: str
    seconds: float
    trials: int
    survivors: tuple[int, ...]
    assumptions: tuple[str, ...]
    estimated: str = ""

    @classmethod
    def of(
        cls: type[AnswerT], answer: LimitRecommendation, sign: float, params: dict[str, Any]
    ) -> AnswerT:
        """Translate an answer about the arm of these `params`; `sign` is -1 to minimise."""
        low, high = sorted(sign * bound for bound in answer.interval)
        own: dict[str, Any] = {
            "params": params,
            "gain": sign * answer.mean,
            "interval": (low, high),
        }
        own |= {"seconds": answer.cost, "trials": answer.pulls}
        known = {field.name for field in fields(cls)} & vars(answer).keys()
        return cls(**{name: getattr(answer, name) for name in known} | own)

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain JSON values (None for what is not finite)."""
        content = asdict(self) | {"survival": [point._asdict() for point in self.survival]}
        plainly: dict[str, Any] = plain(content)
        return plainly

    def __str__(self) -> str:
        low, high = self.interval
        params = params_in_words(self.params)
        limit = "no limit yet" if self.limit is None else f"limit {self.limit:.4g} s"
        lines = [
            f"BEST SO FAR: {params or 'nothing'}, {limit}",
            f"  gain        {self.gain:.5g}  in [{low:.5g}, {high:.5g}], time charged",
            f"  interval    {bounds_in_words(self.delta, self.estimated)}",
            f"  about       {FIXED}",
        ]
        for point in self.survival:
            if point.limit == self.limit:
                lines.append(
                    f"  stopped     with probability {point.probability:.2f}  in "
                    f"[{point.low:.2f}, {point.high:.2f}]"
                )
        lines += [
            f"  note        {self.reason}",
            f"  cost        {self.seconds:.4g} s in {self.trials} trials, {self.censored:.0%} of "
            f"them stopped",
        ]
        lines += [f"  rests on    {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)
