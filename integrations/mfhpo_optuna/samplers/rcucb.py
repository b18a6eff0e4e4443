"""Samplers that choose which configuration to run next, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo.censored import RCUCB, ZoomingRCUCB
from mfhpo.censored.options import RCUCBOptions, ZoomingRCUCBOptions, check_limits
from mfhpo.racing.options import own_and_host, runs
from mfhpo_optuna.kinds.limits import LimitKind
from mfhpo_optuna.samplers.options import SamplerOptions
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import ArmsLike

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _RCUCB(RCUCBOptions, SamplerOptions): ...


class _ZoomingRCUCB(ZoomingRCUCBOptions, SamplerOptions): ...


@runs(RCUCB, _RCUCB, reward_range=None)
class RCUCBSampler(StudySampler):
    """Chooses a configuration and a time limit for every trial: for the gain of the trials.

    When to use it: when the trials themselves count, and their time, such as in a service that
    trains a model for whatever data come next. A trial that runs beyond its limit is stopped and
    has gained nothing. Good configurations with a good limit are played more and more often. To
    find the best configuration only, use `MFSampler`. To keep an ordinary study from hanging, use
    `time_limited` alone.

    The limit has to be enforced, by ``study.optimize(time_limited(objective))``, which stops any
    objective, or by `TimeLimitPruner`, for objectives that report while they run. A trial that is
    stopped ends PRUNED; that it took longer than its limit is what the sampler learns from it.
    Without an enforcer a warning says so, and trials that took longer count as stopped.

    The sampler maximises the sum of all gains: RCUCB of Bengs and Hüllermeier (2023). See
    `mfhpo.censored.options.LimitOptions` for what a gain is.

    Parameters
    ----------
    arms
        See `IISESampler`.
    limits
        Time limits in seconds to choose from, positive and increasing; or how many are to be
        derived from the first durations, equidistant over their interquartile range, 50 at most.
        None: 10 derived ones. A single limit of 60 seconds is ``limits=[60]``.
    **options
        See `mfhpo.censored.options.RCUCBOptions` and
        `mfhpo_optuna.samplers.options.SamplerOptions`.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind or out of range; for a charge that is negative or decreases,
        where limits are derived, at the latest once they are. A multi-objective study raises in its
        first suggestion.

    Notes
    -----
    **In the study.** A trial's user attributes are ``mfhpo:limit``, its limit; ``mfhpo:seconds``,
    what it took; ``mfhpo:censored_at``, if it was stopped; and ``mfhpo:pull``, its arm. Stopped for
    its memory, it counts as stopped at its limit of time; or as failed, while limits are being
    derived and `longest` is not given.

    **The best trial.** `recommendation` answers at any time, `best_limit` with the limit alone. As
    soon as a configuration leads, a trial is added for the one that is surest to gain much. It has
    the pessimistic end of its interval, charges included, for a value, and its limit among its
    user attributes. Others follow now and then, and once the horizon is reached (see
    `IISESampler`). Where all trials of the configuration hang before they suggest anything, it has
    no parameters. There is no answer while limits are derived, or while no `reward_range` is
    declared and no two different values were seen. Without that range, a value before the end is no
    better than the pessimistic end of the average reward, because early bounds rest on few values.

    **Workers and resuming** are as described for `IISESampler`. An arm may be enqueued with
    ``study.enqueue_trial``; it runs with the largest limit, or with one that is given along:
    ``user_attrs={"mfhpo:limit": 60}``.

    Examples
    --------
    Pass the objective to `time_limited`, as in ``study.optimize(time_limited(score))``:

    >>> from mfhpo.censored import Linear
    >>> from mfhpo_optuna import RCUCBSampler
    >>> sampler = RCUCBSampler(
    ...     [{"model": "quick"}, {"model": "slow"}], limits=[0.1, 0.2],
    ...     cost=Linear(0.1), reward_range=(0, 1), horizon=25,
    ... )
    """

    def __init__(
        self,
        arms: ArmsLike = 32,
        limits: Sequence[float] | int | None = None,
        **options: Unpack[_RCUCB],
    ) -> None:
        kind, host = _choice(self, arms, check_limits(limits), options)
        super().__init__(kind, {"arms": arms, "limits": check_limits(limits), **options}, **host)

    def best_limit(self, study: optuna.Study) -> float:
        """Return the recommended time limit in seconds, of the recommended arm.

        Raises ValueError if there is no answer yet: nothing was observed, or limits are still being
        derived.
        """
        return _best_limit(self, study)


@runs(ZoomingRCUCB, _ZoomingRCUCB, reward_range=None)
class ZoomingRCUCBSampler(StudySampler):
    """Chooses a configuration and any time limit up to a longest one for every trial.

    When to use it: as `RCUCBSampler`, when nothing is known about which limits are worth trying,
    and there are many trials: thousands rather than hundreds. It begins with the longest limit,
    and adds shorter ones to those configurations that are played often: z-RCUCB of Bengs and
    Hüllermeier (2023). With fewer trials, `RCUCBSampler` with a few limits, given or derived, gains
    more.

    The gain of a trial, how limits are enforced, what is in the study, how it is resumed and errors
    are as described for `RCUCBSampler`.

    Parameters
    ----------
    arms
        See `IISESampler`.
    longest
        The largest limit, in seconds.
    **options
        See `mfhpo.censored.options.ZoomingRCUCBOptions` and
        `mfhpo_optuna.samplers.options.SamplerOptions`.
    """

    def __init__(self, arms: ArmsLike, longest: float, **options: Unpack[_ZoomingRCUCB]) -> None:
        kind, host = _choice(self, arms, longest, options)
        super().__init__(kind, {"arms": arms, "longest": longest, **options}, **host)

    def best_limit(self, study: optuna.Study) -> float:
        """Return the recommended time limit in seconds; see `RCUCBSampler.best_limit`."""
        return _best_limit(self, study)


def _choice(
    sampler: Any, arms: ArmsLike, limits: Sequence[float] | float, options: Mapping[str, Any]
) -> tuple[LimitKind, dict[str, Any]]:
    """Return the choice of limits of a sampler's arguments, and those that every sampler has."""
    own, host = own_and_host(type(sampler), options, SamplerOptions)
    return LimitKind(arms, limits, own, sampler._policy_class), host


def _best_limit(sampler: StudySampler, study: optuna.Study) -> float:
    answer = sampler.recommendation(study)
    if answer.limit is None:
        raise ValueError(f"there is no best limit yet: {answer.reason}.")
    return answer.limit
