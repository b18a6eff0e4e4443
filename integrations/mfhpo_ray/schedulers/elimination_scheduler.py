"""`MFEliminationScheduler`: stops trials that cannot win, by bounds that the user declares."""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from mfhpo._validation import (
    check_count,
    check_increasing,
    check_name,
    check_nonnegative,
    check_number,
)
from mfhpo.identification.curves.gains import Bound, checked_bounds, gains_of
from mfhpo.identification.curves.staged_elimination import (
    BoundedElimination,
    PhasedElimination,
    StagedElimination,
)
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo_ray.experiment.checkpoints import loses_nothing_by_a_pause, saved_metrics
from mfhpo_ray.experiment.losses import is_tried_again
from mfhpo_ray.experiment.recommendation import TuneRecommendation
from mfhpo_ray.experiment.time_limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Entry
from mfhpo_ray.schedulers.levels import levels_of, levels_with_bounds, time_in
from mfhpo_ray.schedulers.runs import Run
from mfhpo_ray.schedulers.turn_queue import TurnQueue


class MFEliminationScheduler(ArmScheduler):
    """Stops a trial when another one is surely better, by bounds on what curves still gain.

    The counterpart of `mfhpo_optuna.MFEliminationPruner`. With declared bounds, it stops no trial
    that would have ended above all the others. The race ends when no other arm's bounds reach the
    best one. Without bounds it is a heuristic, and never certifies. One trial of each configuration
    will do. With replicates, an arm is the configuration without their key. It loses all its trials
    at once, and those that were waiting never start.

    Parameters
    ----------
    time_attr, max_t, grace_period, reduction_factor, levels
        See `mfhpo_ray.IISEScheduler`.
    bias
        Bounds on what is still gained, as for the pruner: ``{level: bound}``, whose levels are then
        the ones at which trials are judged, below `max_t`; or a function of the level. A bound is a
        largest distance from the final value, or a pair (least, largest) for the final value minus
        the value. None: the heuristic.
    noise
        Largest distance of a reported value from the mean of its trial's arm at that level, at
        least 0. It has no part in the heuristic, which compares the means of an arm's replicates.
    n_startup_trials
        Nothing is stopped before this many trials have come to a level. None: 0 with bounds, 10
        without.

    Notes
    -----
    * It is not Algorithm 3 of "Multi-Fidelity Multi-Armed Bandits Revisited" (NeurIPS 2023), which
      `MFEliminationSearch` runs.
    * The order. Where trials pause at no cost, all come to the first level. From there on, the one
      that may get highest goes first; in the heuristic, all trials come to a level before any goes
      on. A trial that would begin anew after a pause runs on until it is stopped.
    * Replicates. With bounds, an arm's second trial starts only if its first has ended and the arm
      may still be the best. The heuristic compares means of replicates, at the last level to which
      all that have begun have come.
    * Failures. A trial fails that crashes for good, runs into a limit, or reports a value that
      is no finite number. An arm whose every trial failed counts against no other.
    * Contradictions. Where a trial that has ended contradicts the bounds beyond the noise, a
      `mfhpo.BiasContradictedWarning` says so. The bound is widened as far as needed, and nothing is
      certified any more.
    * After a crash of the driver, ``Tuner.restore`` goes on with everything observed. The cost of
      the answer is the time trained in the unit of `time_attr`, repeats included.

    Examples
    --------
    Accuracies that never fall, and gain at most 0.5, 0.2 and 0.1 after epochs 1, 3 and 9:

    >>> from mfhpo_ray import MFEliminationScheduler
    >>> scheduler = MFEliminationScheduler(
    ...     max_t=27, bias={1: (0.0, 0.5), 3: (0.0, 0.2), 9: (0.0, 0.1)}
    ... )
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        max_t: int | None = None,
        *,
        grace_period: int | None = None,
        reduction_factor: float | None = None,
        levels: Sequence[float] | None = None,
        bias: Mapping[int, Bound] | Mapping[float, Bound] | Callable[[float], Bound] | None = None,
        noise: float = 0.0,
        n_startup_trials: int | None = None,
        replicate: str | Collection[str] = "seed",
        arms: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(
            metric=metric,
            mode=mode,
            replicate=replicate,
            arms=arms,
            limit=limit,
            memory_limit=memory_limit,
        )
        self._time_attr = check_name("time_attr", time_attr, "the key of a result")
        self._bias: Mapping[float, Bound] | Callable[[float], Bound] | None
        if bias is None or callable(bias):
            self._bias = bias
            levels = levels_of(levels, max_t, grace_period, reduction_factor)
        else:
            self._bias = checked_bounds(bias, lambda level: check_number("bias: level", level))
            levels = levels_with_bounds(self._bias, levels, max_t, grace_period, reduction_factor)
        self._levels = [check_number("levels", level) for level in levels]
        check_increasing("levels", self._levels)
        if self._levels[0] <= 0.0 or len(self._levels) < 2:
            raise ValueError(
                f"nothing would ever be stopped with levels {self._levels}: they must be above 0, "
                f"with at least one before the last. Lower grace_period or reduction_factor, or "
                f"give levels=..."
            )
        self._noise = check_nonnegative("noise", noise)
        if n_startup_trials is None:
            n_startup_trials = 10 if bias is None else 0
        self._n_startup_trials = check_count("n_startup_trials", n_startup_trials, 0)
        self._race: StagedElimination  # from `_open` on
        self._turns: TurnQueue  # likewise
        self._n_expected = 0
        self._cost = 0.0
        self._last_number = 0
        self._last = len(self._levels) - 1
        # By the trial's name: its values at the levels, and what is written of it.
        self._curves: dict[str, FloatArray] = {}
        self._written: dict[str, dict[str, Any]] = {}
        # Runs that are to wait, once Ray has put them to rest.
        self._resting: list[Run] = []
        self._make_race(1.0)  # raises for what is wrong before any trial runs

    def recommendation(self) -> TuneRecommendation:
        """Return the best answer so far; ValueError before any trial."""
        self._check_open()
        nothing_is_left = self._all_known and self._runs.all_over
        finished = self._closed or self._over or nothing_is_left
        answer = self._race.recommend(self._cost, finished, self._all_known)
        level = self._levels[answer.fidelity]
        level = int(level) if level == int(level) else level
        config = self._runs.config(answer.arm)
        return TuneRecommendation.of(answer, self._sign, config, level, self._bias is not None)

    # What `ArmScheduler` asks.

    def _open(self, n_arms: int, search: Any) -> None:
        self._race = self._make_race(self._sign)
        self._turns = TurnQueue(self._race, self._runs, self._last)
        self._n_expected = n_arms
        for arm in range(min(n_arms, self._runs.n_arms)):
            self._race.enter(arm)

    def _recover(self, entries: Sequence[Entry]) -> None:
        race = self._race
        # Arms that Ray has no trial of any more take part with what they have shown. They come on
        # top of those that are expected, as the search does not know of them either.
        forgotten = {arm for _, arm, _ in entries if arm not in race.active}
        for arm in forgotten:
            race.enter(arm)
        self._n_expected += len(forgotten)
        told: list[tuple[int, int, int, float]] = []
        for index, (record, _, run) in enumerate(entries):
            self._cost += record["cost"]
            told += [(number, index, stage, value) for number, stage, value in record["observed"]]
            if run is not None:
                run.reached, run.shown = record["reached"], record["shown"]
                self._written[run.trial.trial_id] = dict(record)
        curves = [self._new_curve() for _ in entries]
        for number, index, stage, value in sorted(told):
            arm = entries[index].arm
            curves[index][stage] = value
            race.observe(arm, curves[index], stage, self._standing(arm))
            self._last_number = number
        for (record, arm, run), curve in zip(entries, curves, strict=True):
            if run is not None:
                self._curves[run.trial.trial_id] = curve
            if record["out"] and arm not in race.out:
                race.drop(arm)
                self._doom_arm(arm)
        open_ended = forgotten | {run.arm for run in self._runs if self._was_cut_short(run)}
        for arm in set(range(self._runs.n_arms)) - open_ended:
            self._fail_without(arm, None)
        self._let_go()
        self._turns.renew()

    @property
    def _over(self) -> bool:
        """Whether the answer is certain; what is left to run without bounds is for the mean."""
        if not self._is_open or self._bias is None or not self._all_known:
            return False
        active = self._race.active
        return len(active) == 1 and self._race.n_finished(next(iter(active))) > 0

    def _is_out(self, arm: int) -> bool:
        return self._is_open and (arm >= self._n_expected or arm in self._race.out)

    def _grant_first(self, run: Run) -> None:
        run.granted = 0
        if self._is_open and not self._is_out(run.arm):
            self._race.enter(run.arm)

    def _next(self) -> Run | None:
        self._take_in_resting()
        run = self._turns.first()
        if run is not None:
            run.granted = run.reached + 1
            run.began_at = None
            self._turns.add(run.arm)
        return run

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        self._note_time(run, result)
        stage = bisect_right(self._levels, run.shown) - 1
        if stage <= run.reached or self._metric not in result:
            return str(TrialScheduler.CONTINUE)
        run.granted = None
        value = self._finite_value(result)
        if value is None:
            self._give_up(run)
            return str(TrialScheduler.STOP)
        self._observe(run, stage, value)
        if run.doomed or stage == self._last or self._over:
            return str(TrialScheduler.STOP)
        goes_first = self._turns.goes_first(run, self._without_slot())
        if goes_first or not loses_nothing_by_a_pause(run.trial, result):
            run.granted = stage + 1
            return str(TrialScheduler.CONTINUE)
        self._resting.append(run)
        return str(TrialScheduler.PAUSE)

    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        if run.granted is None:
            return
        run.granted = None
        value = self._finite_value(result)
        if value is None:
            self._give_up(run)
            return
        if result.get(self._time_attr) != run.shown:
            self._note_time(run, result)
        if run.shown < self._levels[-1]:
            self._warn_once(
                "length",
                f"trial {run.trial.trial_id} ended at {self._time_attr}={run.shown:g}, before the "
                f"last level {self._levels[-1]:g}: its last value counts as its final one, and so "
                f"will others. Give max_t={run.shown:g}, or levels that trials reach.",
            )
        self._observe(run, self._last, value)

    def _on_retry(self, run: Run) -> None:
        if not is_tried_again(run.trial):  # it was lost, and is not begun again
            self._on_failure(run)
            return
        run.granted = None
        self._resting.append(run)
        self._queue(run.arm)

    def _on_failure(self, run: Run) -> None:
        run.granted = None
        self._fail_without(run.arm, run)
        self._queue(run.arm)

    def _leave(self, run: Run) -> None:
        super()._leave(run)
        self._resting = [other for other in self._resting if other is not run]

    @property
    def _all_known(self) -> bool:
        """Whether no other arms will come."""
        return self._complete or self._runs.n_arms >= self._n_expected

    def _make_race(self, sign: float) -> StagedElimination:
        if self._bias is None:
            return PhasedElimination(len(self._levels), self._n_startup_trials)
        gains = gains_of(self._bias, self._levels, sign)
        return BoundedElimination(gains, self._noise, self._n_startup_trials)

    def _new_curve(self) -> FloatArray:
        return np.full(len(self._levels), np.nan)

    def _finite_value(self, result: Mapping[str, Any]) -> float | None:
        value = self._value(result)
        return value if value is not None and math.isfinite(value) else None

    def _note_time(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and what that has cost."""
        shown = time_in(result, self._time_attr)
        trained = shown - run.shown
        if trained < 0.0 or run.began_at is None:  # it has begun anew, or from a checkpoint
            before = float(saved_metrics(run.trial).get(self._time_attr, 0.0))
            run.began_at = before if before < shown else 0.0
            trained = shown - run.began_at
        self._cost += trained
        run.shown = shown
        record = self._record(run)
        record["cost"] += trained
        record["shown"] = shown

    def _observe(self, run: Run, stage: int, value: float) -> None:
        race = self._race
        run.reached = stage
        curve = self._curves.setdefault(run.trial.trial_id, self._new_curve())
        curve[stage] = value
        self._last_number += 1
        record = self._record(run)
        record["observed"].append([self._last_number, stage, value])
        record["reached"], record["over"] = stage, stage == self._last
        self._write(run, record)
        contradicted = race.observe(run.arm, curve, stage, self._standing(run.arm))
        if run.arm in race.contradicting:
            self._warn_of_contradiction(run, contradicted)
        self._let_go()
        if contradicted:  # all upper ends have changed
            self._turns.renew()
        else:
            self._queue(run.arm)
        self._may_find_one = True

    def _record(self, run: Run) -> dict[str, Any]:
        empty = {"reached": -1, "shown": 0.0, "cost": 0.0, "over": False, "out": False}
        return self._written.setdefault(run.trial.trial_id, {"observed": [], **empty})

    def _standing(self, arm: int) -> int:
        """Return the level that all runs of an arm that have begun have come to."""
        begun = [run.reached for run in self._runs.of(arm) if run.reached >= 0]
        return min(begun, default=self._last)

    def _give_up(self, run: Run) -> None:
        """Take a run out whose value is no finite number."""
        record = self._record(run)
        record["over"] = True
        self._write(run, record)
        self._on_failure(run)

    def _fail_without(self, arm: int, run: Run | None) -> None:
        """Take an arm out that never came to its end, and has nothing left to run."""
        race = self._race
        left = any(other is not run for other in self._runs.of(arm))
        if not left and arm not in race.out and not race.n_finished(arm):
            race.fail(arm)

    def _was_cut_short(self, run: Run) -> bool:
        """Return whether a time budget or a stopper of Tune ended a trial before a restart.

        That says nothing against its arm.
        """
        trial = run.trial
        by_limit = {CENSORED_KEY, MEMORY_KEY} & trial.run_metadata.last_result.keys()
        if trial.status != Trial.TERMINATED or by_limit:
            return False
        return not self._written.get(trial.trial_id, {}).get("over")

    def _let_go(self) -> None:
        for arm, _ in self._race.let_go():
            for run in self._runs.of(arm):
                record = self._record(run)
                if record["observed"]:
                    record["out"] = True
                    self._write(run, record)
            self._doom_arm(arm)

    def _queue(self, arm: int) -> None:
        if self._is_open:
            self._turns.add(arm)

    def _take_in_resting(self) -> None:
        resting, self._resting = self._resting, []
        for run in resting:
            if run.waits:
                self._queue(run.arm)
            elif not run.doomed and not run.trial.is_finished():
                self._resting.append(run)

    def _without_slot(self) -> list[Run]:
        """Return the chosen runs that wait for another one to leave its slot."""
        if not self._busy or len(self._busy) <= self._room() < math.inf:
            return []
        return [run for run in self._busy.values() if run.trial.status == Trial.PENDING]

    def _warn_of_contradiction(self, run: Run, contradicted: Sequence[int]) -> None:
        curve = self._sign * self._curves[run.trial.trial_id]
        values = zip(self._levels, curve, strict=True)
        shown = [f"{value:.5g} at {level:g}" for level, value in values if math.isfinite(value)]
        whose = f"trial {run.trial.trial_id} ({', '.join(shown)})"
        stopped = "what was stopped by it may have been stopped in error"
        for stage in contradicted:
            assert isinstance(self._race, BoundedElimination)
            low, high = sorted(self._sign * self._race.gains[stage])
            self._warn_once(
                stage,
                f"bias[{self._levels[stage]:g}] is contradicted by {whose}. The bound is widened "
                f"to gains in [{low:.5g}, {high:.5g}], and further as trials need; {stopped}. "
                f"Declare a wider bound, or larger noise.",
                BiasContradictedWarning,
            )
        if not contradicted:
            self._warn_once(
                "interval",
                f"no final value agrees with what was declared and with what {whose} and other "
                f"replicates have shown; {stopped}. Declare wider bounds, or larger noise.",
                BiasContradictedWarning,
            )
