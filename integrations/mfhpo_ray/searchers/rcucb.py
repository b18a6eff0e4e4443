"""Searchers that choose which configuration to run next, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mfhpo import Observation, Pull
from mfhpo._validation import check_name, shown
from mfhpo.censored import RCUCB, CensoredPolicy, ZoomingRCUCB
from mfhpo.censored.options import check_limits, mirrored
from mfhpo.racing.options import runs, with_defaults
from mfhpo_ray.experiment.pulls import UnderWay
from mfhpo_ray.experiment.recommendation import TuneLimitRecommendation
from mfhpo_ray.experiment.time_limits import CENSORED_KEY
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.options import RCUCBSearchOptions, SearchOptions, ZoomingRCUCBSearchOptions
from mfhpo_ray.searchers.policy_search import PolicySearch

if TYPE_CHECKING:
    from typing_extensions import Unpack


class LimitSearch(PolicySearch[CensoredPolicy]):
    """Runs the policy that `mfhpo.racing.options.runs` names: an arm and a limit for every trial.

    Values are maximised inside; a declared range is mirrored with them. Options are tried at once,
    so that wrong ones raise here and not in the first trial.

    Parameters
    ----------
    arms
        See `IISESearch`.
    """

    # All that ends counts, however long it took: what was stopped counts, too.
    _in_order = False
    # The trials that still run at the horizon are the slow ones: without them, arms look quicker.
    stops_surplus = False

    _policy_class: Callable[..., CensoredPolicy]
    _options_type: type
    _defaults: dict[str, Any]

    def __init__(self, arms: ArmsLike, options: Mapping[str, Any], **explicit: Any) -> None:
        own = with_defaults(type(self), options) | explicit
        host = {name: own.pop(name) for name in SearchOptions.__annotations__}
        limit_key = own.pop("limit_key")
        check_name("limit_key", limit_key, "a key of the configuration such as 'time_limit_s'")
        super().__init__(arms=arms, owned=limit_key, **host)
        self._options = own
        self._owed = 0.0  # seconds of attempts that failed, and that Ray tried again
        self._policy_class(2, **own)

    # What users call.

    def scheduler(
        self, limit: float | None = None, memory_limit: float | None = None
    ) -> PullScheduler:
        """Return the scheduler to run the search with, which keeps the limits that the search sets.

        A `limit` has no part in it, and is a ValueError.
        """
        if limit is not None:
            raise ValueError(
                f"limit={shown(limit)} has no part: each trial has the limit that the search sets; "
                f"leave it out, and declare limits=... or longest=... of the search."
            )
        return PullScheduler(limit_key=self._owned, memory_limit=memory_limit)

    def recommendation(self) -> TuneLimitRecommendation:
        """Return the best arm, limit and gain so far; ValueError before any suggestion."""
        return self._answer(self._made_policy())

    # What its scheduler calls.

    def owe(self, trial_id: str, seconds: float) -> None:
        """Note what a failed attempt took: it is part of the cost, and not of a duration."""
        self._owed += seconds
        super().owe(trial_id, seconds)

    # What the base asks.

    def _make_policy(self, n_arms: int, sign: float) -> CensoredPolicy:
        return self._policy_class(n_arms, **mirrored(self._options, sign))

    def _settings(self, pull: Pull) -> float | None:
        return pull.limit

    def _observed(
        self, trial_id: str, begun: UnderWay, value: float | None, seconds: float, stopped_at: Any
    ) -> Observation:
        limit = begun.pull.limit
        if stopped_at is not None:
            stopped_at = float(stopped_at)
            # That it would have gone on is all that larger limits, which are never granted, tell.
            at = stopped_at if limit is None else limit
            return Observation(None, max(seconds, stopped_at), censored_at=at)
        if value is None:
            return Observation(None, seconds)
        if limit is not None and seconds > limit:
            return Observation(None, seconds, censored_at=limit)
        return Observation(value, seconds)

    def _answer(self, policy: CensoredPolicy) -> TuneLimitRecommendation:
        answer = policy.recommend()
        answer = replace(answer, cost=answer.cost + self._owed)
        params = {} if answer.arm is None else dict(self._arms.shown(answer.arm))
        return TuneLimitRecommendation.of(answer, self._sign, params)

    def _details(self) -> dict[str, Any]:
        return {"owed": self._owed}

    def _load_details(self, state: Mapping[str, Any]) -> None:
        self._owed = float(state["owed"])

    def _stopped_at(self, result: Mapping[str, Any]) -> Any:
        return result.get(CENSORED_KEY)

    def _check_companion(self) -> None:
        self._warn_without_companion(
            "trials run to their end, and count as stopped if they took longer"
        )


@runs(RCUCB, RCUCBSearchOptions, reward_range=None, seed_key="seed", limit_key="time_limit_s")
class RCUCBSearch(LimitSearch):
    """Chooses a configuration and a time limit for every trial: for the gain of the trials.

    When to use it: when the trials themselves count, and their time, as in a service that trains
    models for new data. A trial that runs beyond its limit is stopped and has gained nothing. Good
    configurations with a good limit are played more and more often. To find the best configuration
    only, use `MFSearch`. To keep an ordinary experiment from hanging, use `PullScheduler` alone.

    The limit is in the configuration of each trial, and kept by the search's scheduler, which stops
    any trial, also one that hangs::

        tune.TuneConfig(search_alg=search, scheduler=search.scheduler(), num_samples=-1)

    With any other scheduler a warning says that nobody keeps the limits: trials run to their end,
    and those that took longer count as stopped. The search maximises the sum of all gains: RCUCB
    (Bengs and Hüllermeier, Multi-Armed Bandits with Censored Consumption of Resources, 2023). See
    `mfhpo.censored.options.LimitOptions` for what a gain is; the seconds are ``time_total_s``.

    Parameters
    ----------
    limits
        Time limits in seconds to choose from, positive and increasing. Or how many to derive from
        the first durations, equidistant over their interquartile range, 50 at most. None: 10
        derived ones. A single limit of 60 seconds is ``limits=[60]``.
    **options
        See `mfhpo.censored.options.RCUCBOptions`. Trials that run when the `horizon` is reached may
        end, or run into their limits, and count as well.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments; for a charge that is negative or decreases, at the latest once limits
        are derived.
    """

    def __init__(
        self,
        arms: ArmsLike = 32,
        limits: Sequence[float] | int | None = None,
        **options: Unpack[RCUCBSearchOptions],
    ) -> None:
        super().__init__(arms, options, limits=check_limits(limits))


@runs(
    ZoomingRCUCB,
    ZoomingRCUCBSearchOptions,
    reward_range=None,
    seed_key="seed",
    limit_key="time_limit_s",
)
class ZoomingRCUCBSearch(LimitSearch):
    """Chooses a configuration and any time limit up to a longest one for every trial.

    When to use it: as `RCUCBSearch`, when nothing is known about which limits are worth trying,
    and there are many trials: thousands rather than hundreds. It begins with the longest limit,
    and adds shorter ones to those configurations that are played often: z-RCUCB of the same paper.
    With fewer trials, `RCUCBSearch` with a few limits, given or derived, gains more.

    Parameters
    ----------
    longest
        The largest limit, in seconds.
    """

    def __init__(
        self, arms: ArmsLike, longest: float, **options: Unpack[ZoomingRCUCBSearchOptions]
    ) -> None:
        super().__init__(arms, options, longest=longest)
