"""A scheduler whose policy chooses arms and levels: trials pause at a level, and go on later."""

from __future__ import annotations

import abc
import warnings
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.utils import flatten_dict

from mfhpo import Labels, Observation, Pull
from mfhpo._validation import check_count, check_number
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.curves.curves import check_steps
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_ray.experiment.losses import with_losses
from mfhpo_ray.experiment.open_pulls import MOST_PASSED_OVER
from mfhpo_ray.experiment.prices import Prices
from mfhpo_ray.experiment.recommendation import TuneRecommendation
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Entry
from mfhpo_ray.schedulers.ladder import Ladder
from mfhpo_ray.schedulers.level_order import Arrived, LevelOrder, Place
from mfhpo_ray.schedulers.runs import Run

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

__all__ = ["LevelScheduler", "levels_of"]

IntArray = npt.NDArray[np.int64]

# How often the policy is asked for something else when there is no trial for what it wants.
_MOST_CHOICES = 4
# A reason names so many of the trials that are waited for.
_MOST_NAMED = 3


class Order(NamedTuple):
    """A run, and the level that it is sent to."""

    run: Run
    level: int


class LevelScheduler(ArmScheduler):
    """Runs a policy that chooses arms and levels, on trials that report their progress.

    Parameters
    ----------
    fidelity
        The time attribute with its levels, costs and bias.
    prices
        What a second of each resource costs, where costs are measured; None: a second costs 1.
    metric, mode, replicate, arms, limit
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
        limit: float | None = None,
    ) -> None:
        super().__init__(metric=metric, mode=mode, replicate=replicate, arms=arms, limit=limit)
        self._fidelity = fidelity
        self._prices = Prices(prices, fidelity.costs)
        self._levels: tuple[Any, ...] = tuple(fidelity.levels or ())
        self._costs = fidelity.costs_of(self._levels)
        self._policy: BestArmPolicy | None = None
        self._observed: dict[str, list[list[Any]]] = {}
        self._n_observed = 0
        self._places: dict[str, list[Place]] = {}
        self._in_order = LevelOrder()
        # Trials whose value at some level was left out: their process, or the driver, has died.
        self._lost: set[str] = set()
        self._ladder = Ladder(0, len(self._levels))
        # How often each arm has shown a value at each level.
        self._seen: IntArray = np.zeros((0, len(self._levels)), dtype=np.int64)
        # The arms in the race, in their order and as a set.
        self._arms: IntArray = np.zeros(0, dtype=np.int64)
        self._active: set[int] = set()
        self._warned_of_length = False

    @abc.abstractmethod
    def _make_policy(self, n_arms: int, replicates: int | None) -> BestArmPolicy:
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
        answer = with_losses(policy.recommend(), len(self._lost))
        if not answer.finished and (self._closed or self._nothing_is_left()):
            reason = f"no replicates are left to tell: {answer.reason}"
            answer = replace(answer, finished=True, reason=reason)
        elif not answer.finished and self._in_order.waited_for:
            reason = f"{answer.reason}; values count in the order in which trials began, and the "
            answer = replace(answer, reason=f"{reason}race waits for {self._waiting_in_words()}")
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
            value=lambda value: self._sign * value,
        )
        n_levels = len(self._levels)
        self._arms = np.arange(n_arms)
        self._active = set(range(n_arms))
        self._seen = np.zeros((n_arms, n_levels), dtype=np.int64)
        self._ladder = Ladder(n_arms, n_levels)
        for run in self._runs:
            if run.arm < n_arms:
                self._ladder.put(run)

    def _all_are_there(self) -> None:
        """Take arms out that were counted on, and turned out to repeat others."""
        assert self._policy is not None
        expected = {arm for arm in self._active if arm >= self._runs.n_arms}
        for arm in sorted(expected):
            self._policy.withdraw(arm, duplicate_of=0)
        if expected:
            self._sweep()
        # What waited for more suggestions waits no longer.
        self._may_find_one = True

    def _recover(self, entries: Sequence[Entry]) -> None:
        arrivals: list[tuple[int, Place, Arrived]] = []
        for record, arm, run in entries:
            observed = [list(entry) for entry in record["observed"]]
            if run is not None:
                if not record["over"] and not run.trial.is_finished():
                    _excuse(run, observed)
                run.reached = record["reached"]
                self._observed[run.trial.trial_id] = observed
            places = [Place(*place) for place in record["places"][: len(observed)]]
            if run is not None:
                self._places[run.trial.trial_id] = places
            for (number, fidelity, value, cost), place in zip(observed, places, strict=True):
                self._n_observed = max(self._n_observed, number)
                arrived = Arrived(run, Pull(arm, fidelity), Observation(value, cost))
                arrivals.append((number, place, arrived))
        over = {run.trial.trial_id for record, _, run in entries if run and record["over"]}
        runs = {run.trial.trial_id: run for run in self._runs if not run.trial.is_finished()}
        alive = {name: run for name, run in runs.items() if name not in over}
        for arrived in self._in_order.restore(arrivals, alive):
            self._learn(arrived.pull, arrived.observation)
        for _, _, run in entries:
            if run is not None:
                self._ladder.put(run)
        for run in self._busy.values():  # what a search algorithm suggested before the race began
            is_in = run.arm in self._active and not self._in_order.has_ticket(run)
            if run.granted is not None and is_in:
                self._in_order.send(run, run.granted)
        self._sweep()
        if not self._over:
            self._lost = self._lost_trials(alive)

    def _lost_trials(self, alive: Collection[str]) -> set[str]:
        """The trials that had not come to a level, and that Ray does not run again.

        Those that Ray has ended, of arms that have left, were stopped for that.
        """
        known: set[str] = set()
        awaited: set[tuple[str, int]] = set()
        there: set[tuple[str, int]] = set()
        for name, record in self._records.items():
            if record["lost"]:
                known.add(name)
            for entry, place in zip(record["observed"], record["places"], strict=True):
                there.add((name, entry[1]))
                awaited.update((other, entry[1]) for other in Place(*place).awaited)
        stopped = {run.trial.trial_id for run in self._runs if run.arm not in self._active}
        missing = {name for name, _ in awaited - there}
        return (known | (missing - stopped)).difference(alive)

    @property
    def _over(self) -> bool:
        return self._policy is not None and self._policy.finished

    def _is_out(self, arm: int) -> bool:
        return arm not in self._active

    def _grant_first(self, run: Run) -> None:
        run.granted = 0
        if not self._is_out(run.arm):
            self._ladder.put(run)
            if self._policy is not None:
                self._in_order.send(run, 0)

    def _next(self) -> Run | None:
        again = self._in_order.next_to_be_sent_again()
        order = self._order(None) if again is None else Order(*again)
        if order is None:
            return None
        if again is None:
            self._in_order.send(order.run, order.level)
        order.run.granted = order.level
        order.run.began_at = None
        return order.run

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        if run.granted is None:
            return str(TrialScheduler.CONTINUE)
        self._note_time(run, result)
        if run.shown < self._levels[run.granted]:
            return str(TrialScheduler.CONTINUE)
        passed = bisect_right(self._levels, run.shown) - 1
        failed = self._observe(run, result, passed)
        complete = run.reached == len(self._levels) - 1
        if failed or complete or self._over:
            return str(TrialScheduler.STOP)
        if run.arm not in self._active:
            # The arm may come back, if bounds that were declared are contradicted.
            return str(TrialScheduler.PAUSE)
        # A run goes on when its value counts: else the quick ones would be the first at the next
        # level, too.
        order = None if run.held else self._order(run)
        if order is None or order.run is not run:
            return str(TrialScheduler.PAUSE)
        self._in_order.send(run, order.level)
        run.granted = order.level
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
        # There will be no other value of it, at any level.
        self._observe(run, result, len(self._levels) - 1)

    def _on_retry(self, run: Run) -> None:
        # Not the arm's fault as long as Ray tries: a node that dies takes many trials with it.
        if run.granted is not None:
            run.owed = self._paid(run)
            if not run.trial.should_recover() and not self._over:
                self._lost.add(run.trial.trial_id)
                self._note(run, is_over=False)
        self._drop(run)

    def _on_failure(self, run: Run) -> None:
        granted, run.granted = run.granted, None
        if granted is not None and self._policy is not None:
            failure = Observation(None, self._paid(run))
            self._tell(run, Pull(run.arm, granted), failure, is_over=False)

    def _leave(self, run: Run) -> None:
        self._runs.retire(run)
        self._drop(run)
        if self._complete and self._nothing_is_left():
            # Ray may end the experiment without another step of its loop.
            self._stop_measuring()
        super()._leave(run)

    def _close(self, tune_controller: TuneController) -> None:
        if not self._closed:
            self._stop_measuring()
        super()._close(tune_controller)

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
            run.began_at, run.began_with = _left_off(run.trial, name, shown)
        run.shown = shown
        run.seconds = float(result.get("time_total_s", 0.0))

    def _observe(self, run: Run, result: Mapping[str, Any], last: int) -> bool:
        """Tell the policy of a run at its level; return whether it gave no value.

        Where results are so far apart that several levels lie between them, up to `last`, all of
        these have the same value, whatever way a run has come there.
        """
        assert run.granted is not None
        first, run.granted = run.granted, None
        for fidelity in range(first, max(first, last) + 1):
            observation = Observation(self._value(result), self._paid(run))
            run.reached = fidelity
            is_over = fidelity == len(self._levels) - 1 or observation.failed
            self._tell(run, Pull(run.arm, fidelity), observation, is_over=is_over)
            if observation.failed:
                break
        return observation.failed

    def _tell(self, run: Run, pull: Pull, observation: Observation, *, is_over: bool) -> None:
        """Take in an observation; a trial that `is_over` has nothing more to say if it is run."""
        name = run.trial.trial_id
        self._n_observed += 1
        entry = [self._n_observed, pull.fidelity, observation.value, observation.cost]
        place = self._in_order.place(run, pull)
        self._observed.setdefault(name, []).append(entry)
        self._places.setdefault(name, []).append(place)
        self._learn_from(self._in_order.arrive(place, Arrived(run, pull, observation)))
        self._note(run, is_over=is_over)
        self._sweep()

    def _note(self, run: Run, *, is_over: bool) -> None:
        """Write down what is known of a run."""
        name = run.trial.trial_id
        record = {
            "observed": self._observed.get(name, []),
            "places": self._places.get(name, []),
            "reached": run.reached,
            "shown": run.shown,
            "over": is_over,
            "lost": name in self._lost,
        }
        self._write(run, record)

    def _drop(self, run: Run) -> None:
        """Wait no longer for a run: its process has died, or Ray has stopped it."""
        self._learn_from(self._in_order.drop(run))

    def _learn_from(self, released: Sequence[Arrived]) -> None:
        if self._closed:
            return
        self._may_find_one = True
        for arrived in released:
            self._learn(arrived.pull, arrived.observation)
            if arrived.run is not None:
                self._ladder.put(arrived.run)

    def _learn(self, pull: Pull, observation: Observation) -> None:
        assert self._policy is not None
        self._policy.tell(pull, observation)
        self._seen[pull.arm, pull.fidelity] += observation.has_value

    def _stop_measuring(self) -> None:
        if self._policy is not None:
            self._policy.stop_measuring()

    def _sweep(self) -> None:
        """Have the runs stopped that are under way for arms that have left the race.

        Those that wait do so until the end: an arm that is put back needs them.
        """
        policy = self._policy
        assert policy is not None
        arms = policy.active
        if not np.array_equal(arms, self._arms):
            left = self._active.difference(arms.tolist())
            self._arms, self._active = arms, set(arms.tolist())
            for arm in left:
                for run in self._in_order.cut(arm):
                    self._doom(run)
            for run in self._busy.values():
                if run.granted is not None and run.arm not in self._active:
                    self._doom(run)
        if policy.finished:
            self._note_answer()

    def _order(self, at_rest: Run | None) -> Order | None:
        """What the policy wants next, and the run that it falls to; None if none can.

        A run that has just come to its level, and is not paused yet, is among those that can.
        """
        policy = self._policy
        assert policy is not None
        under_way = self._under_way()
        absent: list[Pull] = []
        passed_over: list[Pull] = []
        while len(absent) < _MOST_CHOICES:
            pulls = policy.ask(1, [*under_way, *passed_over, *absent])
            if not pulls:
                return None
            wanted = pulls[0]
            if self._is_full(wanted.arm, wanted.fidelity):
                if passed_over.count(wanted) >= MOST_PASSED_OVER:
                    break
                passed_over.append(wanted)
                continue
            # The run that has come furthest has the least left to pay.
            run = self._ladder.furthest_below(wanted.arm, wanted.fidelity, at_rest)
            if run is not None:
                return Order(run, wanted.fidelity)
            if wanted in absent:
                break  # it would ask for nothing else
            absent.append(wanted)
        if not absent or policy.winner is not None:
            return None  # a winner is evaluated more often, and others cannot help with that
        return self._substitute(absent[0].fidelity, under_way, at_rest)

    def _is_full(self, arm: int, level: int) -> bool:
        """Whether so many of an arm wait at a level for an earlier run that no more should go."""
        return self._in_order.is_full(Pull(arm, level), len(self._busy))

    def _substitute(
        self, level: int, under_way: Sequence[Pull], at_rest: Run | None
    ) -> Order | None:
        """What to run where no trials are left for what the policy asks: the next best level.

        Of all arms in the race the one that was seen least often there, so that they stay alike.
        """
        coming = self._seen.copy()
        for pull in under_way:
            coming[pull.arm, pull.fidelity] += 1
        for send_to in range(level, len(self._levels)):
            arms = self._ladder.with_runs_below(self._arms, send_to)
            for arm in arms[np.argsort(coming[arms, send_to], kind="stable")].tolist():
                if self._is_full(arm, send_to):
                    continue
                run = self._ladder.furthest_below(arm, send_to, at_rest)
                if run is not None:
                    return Order(run, send_to)
        return None

    def _under_way(self) -> list[Pull]:
        busy = [
            Pull(run.arm, run.granted) for run in self._busy.values() if run.granted is not None
        ]
        return [*busy, *self._in_order.held]

    def _waiting_in_words(self) -> str:
        """Which runs hold back others that have come to their level."""
        assert self._policy is not None
        labels = self._policy.labels
        waits = sorted(self._in_order.waited_for, key=lambda waits: -waits.n_held)
        parts = [
            f"trial {each.run.trial.trial_id} of {labels.arm(each.pull.arm)} on its way to "
            f"{labels.fidelity(each.pull.fidelity)} ({each.n_held} later ones are there)"
            for each in waits[:_MOST_NAMED]
        ]
        if len(waits) > _MOST_NAMED:
            parts.append(f"and {len(waits) - _MOST_NAMED} more")
        return ", ".join(parts)

    def _nothing_is_left(self) -> bool:
        """Whether all trials of all arms in the race are over."""
        return not any(self._runs.of(arm) for arm in self._active)

    # Costs, and what is shown.

    def _paid(self, run: Run) -> float:
        """What a run has cost since it was last paid for, as far as it has reported."""
        owed, run.owed = run.owed, 0.0
        if run.began_at is None:
            return owed
        before, seconds_before = run.began_at, run.began_with
        run.began_at, run.began_with = run.shown, run.seconds
        if self._costs is None:
            seconds = max(0.0, run.seconds - seconds_before)
            return owed + seconds * self._prices.per_second(run.trial)
        return owed + max(0.0, self._cost_at(run.shown) - self._cost_at(before))

    def _cost_at(self, time: float) -> float:
        """The declared cost of a trial up to a time, linear between the levels."""
        assert self._costs is not None
        return float(np.interp(time, (0.0, *self._levels), (0.0, *self._costs)))

    def _config(self, arm: int) -> dict[str, Any]:
        return self._runs.configs[arm] if arm < self._runs.n_arms else {}


def _excuse(run: Run, observed: list[list[Any]]) -> None:
    """Forget that a trial has failed which Ray tries again; what was paid for it is owed."""
    while observed and observed[-1][2] is None:
        run.owed += observed.pop()[3]


def _left_off(trial: Trial, name: str, shown: float) -> tuple[float, float]:
    """Where a trial set out whose first result is this: its time, and its seconds by then."""
    saved = trial.latest_checkpoint_result
    metrics = flatten_dict(saved.metrics) if saved and saved.metrics else {}
    time = float(metrics.get(name, 0.0))
    # A trial may begin anew though it has a checkpoint.
    return (time, float(metrics.get("time_total_s", 0.0))) if 0.0 < time < shown else (0.0, 0.0)


def levels_of(
    levels: Sequence[float] | None,
    max_t: int | None,
    grace_period: int,
    reduction_factor: float,
) -> tuple[float, ...]:
    """The levels of a time attribute: as given, or geometric up to `max_t`.

    Raises
    ------
    ValueError
        If both or none of `levels` and `max_t` are given, or nothing lies between them.
    TypeError
        If `max_t` or `grace_period` is no whole number.

    Examples
    --------
    >>> levels_of(None, 81, 3, 3)
    (3, 9, 27, 81)
    """
    if max_t is None and levels is not None:
        return tuple(levels)
    if max_t is None or levels is not None:
        raise ValueError(
            f"give either max_t, the time at which a trial is complete, or levels, got "
            f"max_t={max_t!r} and levels={levels!r}."
        )
    last = check_count("max_t", max_t, 1)
    first = check_count("grace_period", grace_period, 1)
    if not check_number("reduction_factor", reduction_factor) > 1.0:
        raise ValueError(f"reduction_factor must be above 1, got {reduction_factor!r}; try 3.")
    if first > last:
        raise ValueError(f"grace_period={first} must not be above max_t={last}.")
    return check_steps(last, reduction_factor, first)
