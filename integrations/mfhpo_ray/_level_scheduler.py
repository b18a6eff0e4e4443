"""A scheduler whose policy chooses arms and levels: trials pause at a level, and go on later."""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ray.tune.schedulers import TrialScheduler

from mfhpo import Labels, Observation, Policy, Pull
from mfhpo._validation import check_count, check_number
from mfhpo.fidelity import Fidelity
from mfhpo.identification.curves import check_steps
from mfhpo_ray._arm_scheduler import ArmScheduler, Entry
from mfhpo_ray._prices import Prices
from mfhpo_ray._recommendation import RECOMMENDATION, TuneRecommendation, to_record
from mfhpo_ray._runs import Run

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

__all__ = ["LevelScheduler", "levels_of"]

# Seconds between two notes of the answer so far.
_NOTE_PERIOD = 5.0


class Order(NamedTuple):
    """A run, the level that it is sent to, and the pull that this takes the place of, if any."""

    run: Run
    level: int
    replaced: Pull | None


class LevelScheduler(ArmScheduler):
    """Runs a policy that chooses arms and levels, on trials that report their progress.

    Parameters
    ----------
    fidelity
        The time attribute with its levels, costs and bias.
    prices
        What a second of each resource costs, where costs are measured; None: a second costs 1.
    metric, mode, replicate, arms
        See `ArmScheduler`.
    """

    def __init__(
        self,
        fidelity: Fidelity,
        *,
        prices: Mapping[str, float] | None,
        metric: str | None,
        mode: str | None,
        replicate: str | Collection[str],
        arms: int | None,
    ) -> None:
        super().__init__(metric=metric, mode=mode, replicate=replicate, arms=arms)
        self._fidelity = fidelity
        self._prices = Prices(prices, fidelity.costs)
        self._levels: tuple[Any, ...] = tuple(fidelity.levels or ())
        self._costs = fidelity.costs_of(self._levels)
        self._policy: Policy | None = None
        self._observed: dict[str, list[list[Any]]] = {}
        self._n_observed = 0
        # Pulls that no replicate was left for, and that a dearer one took the place of.
        self._replaced: list[Pull] = []
        self._active: set[int] = set()
        self._noted_at = -math.inf
        self._warned_of_length = False

    @abc.abstractmethod
    def _make_policy(self, n_arms: int, replicates: int | None) -> Policy:
        """Make the policy; `replicates` is the least number of an arm's trials, if it is known."""

    # The answer.

    def recommendation(self) -> TuneRecommendation:
        """The best answer so far, with its certificate once the race has ended.

        Raises
        ------
        ValueError
            If the race has not begun.
        """
        policy = self._policy
        if policy is None:
            raise ValueError("the race has not begun: no trial was started yet.")
        answer = policy.recommend()
        if not answer.finished and (self._closed or self._nothing_is_left()):
            reason = f"no replicates are left to tell: {answer.reason}"
            answer = replace(answer, finished=True, reason=reason)
        config = {} if answer.arm is None else self._runs.configs[answer.arm]
        return TuneRecommendation.of(answer, self._sign, config, self._levels[answer.fidelity])

    # What `ArmScheduler` asks.

    def _open(self, n_arms: int) -> None:
        complete = self._runs.n_arms == n_arms
        replicates = self._runs.fewest_replicates if complete else None
        self._policy = self._make_policy(n_arms, replicates)
        self._policy.labels = Labels(
            arm=lambda arm: f"arm {arm} {self._config(arm)}",
            fidelity=lambda fidelity: f"{self._fidelity.name}={self._levels[fidelity]!r}",
        )
        self._active = set(range(n_arms))

    def _recover(self, entries: Sequence[Entry]) -> None:
        told: list[tuple[int, Pull, Observation]] = []
        for record, arm, run in entries:
            for number, fidelity, value, cost in record["observed"]:
                told.append((number, Pull(arm, fidelity), Observation(value, cost)))
            if run is not None:
                run.reached = record["reached"]
                run.shown, run.seconds = record["shown"], record["seconds"]
                self._observed[run.trial.trial_id] = [list(entry) for entry in record["observed"]]
                if run.granted is not None and run.granted <= run.reached:
                    run.granted = run.reached + 1
        assert self._policy is not None
        for number, pull, observation in sorted(told, key=lambda entry: entry[0]):
            self._n_observed = max(self._n_observed, number)
            self._policy.tell(pull, observation)
        self._sweep()

    @property
    def _over(self) -> bool:
        return self._policy is not None and self._policy.finished

    def _is_out(self, arm: int) -> bool:
        return arm not in self._active

    def _grant_first(self, run: Run) -> None:
        run.granted = 0

    def _next(self) -> Run | None:
        order = self._order(None)
        if order is None:
            return None
        self._send(order)
        order.run.began_at = None
        return order.run

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        if run.granted is None:
            return str(TrialScheduler.CONTINUE)
        self._note_time(run, result)
        if run.shown < self._levels[run.granted]:
            return str(TrialScheduler.CONTINUE)
        failed = self._observe(run, result)
        complete = run.reached == len(self._levels) - 1
        if failed or complete or self._over or run.arm not in self._active:
            return str(TrialScheduler.STOP)
        order = self._order(run)
        if order is None or order.run is not run:
            return str(TrialScheduler.PAUSE)
        self._send(order)
        run.began_at, run.began_with = run.shown, run.seconds
        return str(TrialScheduler.CONTINUE)

    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        if run.granted is None:
            return
        if self._metric not in result:
            self._on_failure(run)
            return
        self._note_time(run, result)
        level = self._levels[run.granted]
        if run.shown < level and not self._warned_of_length:
            self._warned_of_length = True
            warnings.warn(
                f"trial {run.trial.trial_id} ended at {self._fidelity.name}={run.shown:g}, before "
                f"the level {level!r}: its last value counts as the one there, and so will others. "
                f"Give max_t={run.shown:g}, or levels that trials reach.",
                stacklevel=2,
            )
        self._observe(run, result)

    def _on_failure(self, run: Run) -> None:
        if run.granted is not None and self._policy is not None:
            cost = None if self._costs else 0.0
            self._tell(run, Pull(run.arm, run.granted), Observation(None, cost))
        run.granted = None

    def _on_step(self, tune_controller: TuneController) -> None:
        if self._policy is not None and self._clock() - self._noted_at > _NOTE_PERIOD:
            self._note_answer()

    # The race.

    def _note_time(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and where it set out if this is its first result."""
        name = self._fidelity.name
        if name not in result:
            raise ValueError(
                f"time_attr={name!r} is not in a trial's result, which has {sorted(result)}; "
                f"report it, or name one of these."
            )
        shown = check_number(name, result[name])
        if run.began_at is None:
            # Time that goes on from where it was shows that the trial had a checkpoint.
            continues = 0.0 < run.shown < shown
            run.began_at = run.shown if continues else 0.0
            run.began_with = run.seconds if continues else 0.0
        run.shown = shown

    def _observe(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Tell the policy of a run at its level; return whether it gave no value."""
        assert run.granted is not None
        fidelity = run.granted
        observation = Observation(self._value(result), self._paid(run, result))
        run.reached, run.granted = fidelity, None
        self._tell(run, Pull(run.arm, fidelity), observation)
        return observation.failed

    def _tell(self, run: Run, pull: Pull, observation: Observation) -> None:
        self._n_observed += 1
        entry = [self._n_observed, pull.fidelity, observation.value, observation.cost]
        observed = self._observed.setdefault(run.trial.trial_id, [])
        observed.append(entry)
        self._write(
            run,
            {
                "observed": observed,
                "reached": run.reached,
                "shown": run.shown,
                "seconds": run.seconds,
                "over": observation.failed or run.reached == len(self._levels) - 1,
            },
        )
        assert self._policy is not None
        self._policy.tell(pull, observation)
        self._may_find_one = True
        self._sweep()

    def _sweep(self) -> None:
        """Have the runs of arms that have left the race stopped."""
        assert self._policy is not None
        active = set(self._policy.active.tolist())
        for arm in self._active - active:
            self._doom_arm(arm)
        self._active = active
        if self._policy.finished:
            self._note_answer()

    def _order(self, at_rest: Run | None) -> Order | None:
        """What the policy wants next, and the run that it falls to; None if none can.

        A run that has just come to its level, and is not paused yet, is among those that can.
        """
        policy = self._policy
        assert policy is not None
        absent: list[Pull] = []
        for _ in range(4 * len(self._active) + 4):
            pulls = policy.ask(1, [*self._under_way(), *self._replaced, *absent])
            if not pulls:
                return None
            order = self._serving(pulls[0], at_rest)
            if order is not None:
                return order
            absent.append(pulls[0])
        # What the policy asks for again and again is not there: take what is.
        waiting = [run for arm in self._active for run in self._waiting(arm, at_rest)]
        if not waiting:
            return None
        run = min(waiting, key=lambda run: run.reached)
        return Order(run, run.reached + 1, None)

    def _send(self, order: Order) -> None:
        order.run.granted = order.level
        if order.replaced is not None:
            self._replaced.append(order.replaced)

    def _under_way(self) -> list[Pull]:
        return [
            Pull(run.arm, run.granted) for run in self._busy.values() if run.granted is not None
        ]

    def _waiting(self, arm: int, at_rest: Run | None) -> list[Run]:
        """An arm's runs that can be sent on."""
        target = len(self._levels) - 1
        return [
            run
            for run in self._runs.of(arm)
            if run.reached < target and (run.waits or run is at_rest)
        ]

    def _serving(self, pull: Pull, at_rest: Run | None) -> Order | None:
        """The run for a pull and the level to send it to: that of the pull, or the next above."""
        waiting = self._waiting(pull.arm, at_rest)
        below = [run for run in waiting if run.reached < pull.fidelity]
        if below:
            # The one that has come furthest has the least left to pay.
            return Order(max(below, key=lambda run: run.reached), pull.fidelity, None)
        if not waiting:
            return None
        run = min(waiting, key=lambda run: run.reached)
        return Order(run, run.reached + 1, pull)

    def _nothing_is_left(self) -> bool:
        """Whether all trials of all arms in the race are over."""
        return not any(self._runs.of(arm) for arm in self._active)

    # Costs, and what is shown.

    def _paid(self, run: Run, result: Mapping[str, Any]) -> float:
        """What a run has cost since it was sent on its way to its level."""
        assert run.granted is not None
        total = float(result.get("time_total_s", 0.0))
        seconds, run.seconds = max(0.0, total - run.began_with), total
        run.began_with = total
        if self._costs is None:
            return seconds * self._prices.per_second(run.trial)
        before = self._cost_at(run.began_at or 0.0)
        return max(0.0, self._costs[run.granted] - before)

    def _cost_at(self, time: float) -> float:
        """The declared cost of a trial up to a time: that of the last level that it has passed."""
        assert self._costs is not None
        passed = [
            cost for level, cost in zip(self._levels, self._costs, strict=True) if level <= time
        ]
        return passed[-1] if passed else 0.0

    def _config(self, arm: int) -> dict[str, Any]:
        return self._runs.configs[arm] if arm < self._runs.n_arms else {}

    def _note_answer(self) -> None:
        """Write the answer so far where `mfhpo_ray.recommendation` finds it."""
        self._noted_at = self._clock()
        if self._journal is not None and self._policy is not None:
            owned = self._replicate_keys[0]
            record = to_record(self.recommendation(), str(self._metric), str(self._mode), owned)
            self._journal.write(RECOMMENDATION, record)


def levels_of(
    levels: Sequence[float] | None,
    max_t: float | None,
    grace_period: float,
    reduction_factor: float,
) -> tuple[float, ...]:
    """The levels of a time attribute: as given, or geometric up to `max_t`.

    Raises
    ------
    ValueError
        If both or none of `levels` and `max_t` are given, or nothing lies between them.

    Examples
    --------
    >>> levels_of(None, 81, 3, 3)
    (3, 9, 27, 81)
    """
    if (levels is None) == (max_t is None):
        raise ValueError(
            f"give either max_t, the time at which a trial is complete, or levels, got "
            f"max_t={max_t!r} and levels={levels!r}."
        )
    if levels is not None:
        return tuple(levels)
    last = check_count("max_t", max_t, 1)  # type: ignore[arg-type]  # not None here
    first = check_count("grace_period", int(grace_period), 1)
    if not check_number("reduction_factor", reduction_factor) > 1.0:
        raise ValueError(f"reduction_factor must be above 1, got {reduction_factor!r}; try 3.")
    if first > last:
        raise ValueError(f"grace_period={first} must not be above max_t={last}.")
    return check_steps(last, reduction_factor, first)
