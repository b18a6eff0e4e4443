"""The answer of a policy that chooses time limits, and the same in the terms of whoever asked."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from mfhpo.problem import Recommendation, plain
from mfhpo.racing.recommendation import short

AnswerT = TypeVar("AnswerT", bound="UserLimitRecommendation")


class SurvivalPoint(NamedTuple):
    """How probably a pull runs beyond a limit, in seconds, with bounds.

    The bounds are valid at all times with probability 1 - delta for all arms and limits together;
    an estimate outside is moved into them.
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
    pulls that were begun have been told.

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
        Probability with which any of the bounds, on all pairs and at any time, may fail.
    survival, censored
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

    @classmethod
    def of(
        cls: type[AnswerT], answer: LimitRecommendation, sign: float, params: dict[str, Any]
    ) -> AnswerT:
        """Translate an answer about the arm of these `params`; `sign` is -1 to minimise."""
        low, high = sorted(sign * bound for bound in answer.interval)
        return cls(
            params=params,
            arm=answer.arm,
            limit=answer.limit,
            gain=sign * answer.mean,
            interval=(low, high),
            delta=answer.delta,
            survival=answer.survival,
            censored=answer.censored,
            finished=answer.finished,
            reason=answer.reason,
            seconds=answer.cost,
            trials=answer.pulls,
            survivors=answer.survivors,
            assumptions=answer.assumptions,
        )

    def to_dict(self) -> dict[str, Any]:
        """The recommendation as plain JSON values (what is not finite becomes None)."""
        content = asdict(self) | {"survival": [point._asdict() for point in self.survival]}
        plainly: dict[str, Any] = plain(content)
        return plainly

    def __str__(self) -> str:
        low, high = self.interval
        params = ", ".join(f"{name}={short(value)}" for name, value in self.params.items())
        limit = "no limit yet" if self.limit is None else f"limit {self.limit:.4g} s"
        lines = [
            f"BEST SO FAR: {params or 'nothing'}, {limit}",
            f"  gain        {self.gain:.5g}  in [{low:.5g}, {high:.5g}], time charged",
            f"  interval    wrong with probability at most {self.delta:g}",
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
