"""`RCUCBScheduler`: which trial to start, and how long it may run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from ray.tune.schedulers import TrialScheduler

from mfhpo import RCUCB, Labels, Observation, Pull
from mfhpo._validation import check_number
from mfhpo.censored import Charge, Confidence, Survival
from mfhpo_ray.experiment.recommendation import TuneLimitRecommendation
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Entry
from mfhpo_ray.schedulers.runs import Run

__all__ = ["RCUCBScheduler"]

# So many limits are derived where none are given, and at most where a number is.
_N_LIMITS = 10
_MOST_LIMITS = 50


class RCUCBScheduler(ArmScheduler):
    """Chooses which trial to start next, and the time limit that it runs with.

    For when the trials themselves count, and their time: `mfhpo.RCUCB` says what is maximised. A
    trial is one replicate of an arm: the arm is the configuration without the replicate's key.

    A trial beyond its limit is stopped, also if it hangs; it is TERMINATED, counts as no error,
    and its last result has the limit as ``"mfhpo/censored_at"``: the scheduler learns from it as
    from any other.

    Parameters
    ----------
    limits
        Time limits in seconds to choose from, positive and increasing; or how many are to be
        derived from the first durations, 50 at most. None: 10 derived ones.
    reward_range
        Least and largest value of the metric. None: of those seen so far, which makes the bounds
        approximate.
    horizon
        Number of trials, without those that fail, after which the experiment ends. None: when all
        trials were run. The last ones are of arms that are not worth it: what an experiment gains
        depends on ending it, or on replicates enough.
    longest
        Limit in seconds of the trials that limits are derived from. None: they run to their end,
        so that one which hangs is not stopped.
    replicate, arms, metric, mode
        See `mfhpo_ray.IISEScheduler`. To let the arms be repeated without end, use `RCUCBSearch`.
    cost, penalty, confidence, survival, exploration, delta, max_failures
        See `mfhpo.RCUCB`; a trial is a pull there, and its metric the reward.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind or out of range.

    Notes
    -----
    Everything observed is written to the experiment's storage at once: after a crash of the
    driver, ``Tuner.restore`` goes on with all of it.

    Examples
    --------
    >>> from mfhpo.censored import Linear
    >>> from mfhpo_ray import RCUCBScheduler
    >>> scheduler = RCUCBScheduler(
    ...     [10, 30, 90], cost=Linear(0.001), reward_range=(0, 1), metric="accuracy", mode="max"
    ... )

    and, with a function ``train`` that reports ``accuracy``::

        tuner = tune.Tuner(
            train,
            param_space={
                "model": tune.grid_search(["forest", "boosting", "svm"]),
                "seed": tune.grid_search(list(range(100))),
            },
            tune_config=tune.TuneConfig(scheduler=scheduler, reuse_actors=True),
        )
        print(mfhpo_ray.recommendation(tuner.fit()))
    """

    def __init__(
        self,
        limits: Sequence[float] | int | None = None,
        *,
        cost: Charge | None = None,
        penalty: Charge | None = None,
        reward_range: tuple[float, float] | None = None,
        horizon: int | None = None,
        replicate: str | Collection[str] = "seed",
        arms: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        confidence: Confidence = "kl+",
        survival: Survival = "kaplan-meier",
        exploration: float = 1.0,
        longest: float | None = None,
        delta: float = 0.05,
        max_failures: int = 3,
    ) -> None:
        if isinstance(limits, Integral) and int(limits) > _MOST_LIMITS:
            raise ValueError(
                f"limits={limits!r} is the number of limits to derive, at most {_MOST_LIMITS}; for "
                f"one limit of {limits} seconds give limits=[{limits}]."
            )
        check_number("exploration", exploration)
        check_number("delta", delta)
        super().__init__(metric=metric, mode=mode, replicate=replicate, arms=arms)
        self._reward_range = reward_range
        self._options: dict[str, Any] = {
            "limits": _N_LIMITS if limits is None else limits,
            "longest": longest,
            "cost": cost,
            "penalty": penalty,
            "confidence": confidence,
            "survival": survival,
            "exploration": exploration,
            "delta": delta,
            "horizon": horizon,
            "max_failures": max_failures,
        }
        RCUCB(2, **self._options, reward_range=reward_range)  # raises before any trial runs
        self._policy: RCUCB  # from `_open` on
        self._granted: dict[str, tuple[Run, float | None]] = {}
        # Arms whose trials, as far as they are known, are all over.
        self._exhausted: set[int] = set()
        self._n_observed = 0

    def recommendation(self) -> TuneLimitRecommendation:
        """The best pair of arm and time limit so far, and its gain.

        Raises
        ------
        ValueError
            If no trial was started yet.
        """
        if not self._is_open:
            raise ValueError("there is nothing to recommend yet: no trial was started.")
        answer = self._policy.recommend()
        exhausted = self._closed or (self._complete and self._runs.all_over)
        if exhausted and not answer.finished:
            reason = f"no replicates are left to tell: {answer.reason}"
            answer = replace(answer, finished=True, reason=reason)
        config = self._runs.config(answer.arm)
        return TuneLimitRecommendation.of(answer, self._sign, config)

    # What `ArmScheduler` asks.

    def _open(self, n_arms: int, search: Any) -> None:
        self._exhausted = {arm for arm in range(self._runs.n_arms) if not self._runs.of(arm)}
        mirrored = self._reward_range
        if mirrored is not None and self._sign < 0.0:
            mirrored = (-mirrored[1], -mirrored[0])
        self._policy = RCUCB(n_arms, **self._options, reward_range=mirrored)
        self._policy.labels = Labels(
            arm=lambda arm: f"arm {arm} {self._runs.config(arm)}",
            value=lambda value: self._sign * value + 0.0,  # the sum makes 0 of -0
        )

    def _recover(self, entries: Sequence[Entry]) -> None:
        told = [
            (number, arm, rest)
            for record, arm, _ in entries
            for number, *rest in record["observed"]
        ]
        for number, arm, (limit, value, seconds, censored_at) in sorted(told, key=lambda t: t[0]):
            self._n_observed = max(self._n_observed, number)
            self._policy.tell(Pull(arm, 0, limit), Observation(value, seconds, censored_at))

    @property
    def _over(self) -> bool:
        return self._is_open and self._policy.finished

    def _is_out(self, arm: int) -> bool:
        return self._is_open and arm not in self._policy.active

    def _grant_first(self, run: Run) -> None:
        limits = self._policy.limits if self._is_open else self._options["limits"]
        if limits is None or isinstance(limits, Integral):
            self._grant(run, self._options["longest"])
        else:
            self._grant(run, float(limits[-1]))

    def _next(self) -> Run | None:
        policy = self._policy
        under_way = [Pull(run.arm, 0, limit) for run, limit in self._granted.values()]
        busy = {run.arm for run in self._busy.values()}
        without = {arm for arm in busy if self._waiting(arm) is None}
        without.update(self._exhausted, range(self._runs.n_arms, policy.n_arms))
        pulls = policy.ask(1, under_way, without=without)
        if not pulls:
            return None
        run = self._waiting(pulls[0].arm)
        if run is not None:
            self._grant(run, pulls[0].limit)
        return run

    def _waiting(self, arm: int) -> Run | None:
        return next((run for run in self._runs.of(arm) if run.waits), None)

    def _grant(self, run: Run, limit: float | None) -> None:
        run.granted = 0
        self._granted[run.trial.trial_id] = run, limit
        self._time_limits.set(run.trial, limit)

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        return str(TrialScheduler.CONTINUE)

    def _on_timeout(self, run: Run, limit: float) -> None:
        self._tell(run, Observation(None, self._time_limits.seconds(run.trial), limit))

    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        self._tell(run, Observation(self._value(result), self._time_limits.seconds(run.trial)))

    def _on_retry(self, run: Run) -> None:
        self._granted.pop(run.trial.trial_id, None)

    def _on_failure(self, run: Run) -> None:
        self._tell(run, Observation(None, self._time_limits.seconds(run.trial)))

    def _leave(self, run: Run) -> None:
        self._granted.pop(run.trial.trial_id, None)
        super()._leave(run)
        if not self._runs.of(run.arm):
            self._exhausted.add(run.arm)

    def _tell(self, run: Run, observation: Observation) -> None:
        granted = self._granted.pop(run.trial.trial_id, None)
        if granted is None or not self._is_open:
            return
        _, limit = granted
        self._policy.tell(Pull(run.arm, 0, limit), observation)
        self._n_observed += 1
        told = (observation.value, observation.cost, observation.censored_at)
        entry = [self._n_observed, limit, *told]
        self._write(run, {"observed": [entry], "over": not observation.failed})
        if self._is_out(run.arm):
            self._doom_arm(run.arm)
        if self._policy.finished:
            self._note_answer()
