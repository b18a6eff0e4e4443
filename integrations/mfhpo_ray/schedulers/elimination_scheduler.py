"""`MFEliminationScheduler`: stops trials that cannot win, by bounds that the user declares."""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
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
from mfhpo.experiment import Ended, Lost
from mfhpo.experiment.answer import losses_in_words
from mfhpo.identification.curves.gains import Bound, checked_bounds, gains_of
from mfhpo.identification.curves.staged_elimination import (
    BoundedElimination,
    PhasedElimination,
    StagedElimination,
)
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo_ray.experiment.checkpoints import loses_nothing_by_a_pause
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.recommendation import TuneRecommendation
from mfhpo_ray.experiment.time_limits import CENSORED_KEY
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler
from mfhpo_ray.schedulers.curves import CurveSettings
from mfhpo_ray.schedulers.levels import levels_of, levels_with_bounds, set_out_with, time_in
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
    * What decides. The scheduler judges curves by itself, and chooses who goes on. The engine of
      the other schedulers and searches (`mfhpo.experiment`) has no part in that. It keeps what
      happened, in the experiment's storage; says which configurations are equal; and leaves out
      evaluations that were lost, under a condition of the answer.
    * It is not Algorithm 3 of "Multi-Fidelity Multi-Armed Bandits Revisited" (NeurIPS 2023), which
      `mfhpo_optuna.MFEliminationSampler` runs.
    * The order. Where trials pause at no cost, all come to the first level. From there on, the one
      that may get highest goes first; in the heuristic, all trials come to a level before any goes
      on. A trial that would begin anew after a pause runs on until it is stopped.
    * Replicates. With bounds, an arm's second trial starts only if its first has ended and the arm
      may still be the best. The heuristic compares means of replicates, at the last level to which
      all that have begun have come.
    * Failures. A trial fails that crashes for good, runs into its `limit`, or reports a value that
      is no finite number. An arm whose every trial failed counts against no other. If its trials
      were lost with their processes, the answer has the condition that they were like the others.
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
    ) -> None:
        super().__init__(metric=metric, mode=mode, replicate=replicate, arms=arms, limit=limit)
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
        self._race: StagedElimination  # from `_on_open` on
        self._turns: TurnQueue  # likewise
        self._n_levels = len(self._levels)
        self._last = self._n_levels - 1
        self._curves: dict[str, FloatArray] = {}  # by the trial's name, its values at the levels
        # Runs that are to wait, once Ray has put them to rest.
        self._resting: list[Run] = []
        self._make_race(1.0)  # raises for what is wrong before any trial runs

    def recommendation(self) -> TuneRecommendation:
        """Return the best answer so far; ValueError before any trial."""
        self._check_open()
        nothing_is_left = self._all_known and self._runs.all_over
        finished = self._closed or self._over or nothing_is_left
        answer = self._race.recommend(self._cost, finished, self._all_known)
        n_lost = len(self._experiment.ledger.lost)
        lost = losses_in_words(n_lost, None, may_have_worker=False)
        answer = replace(answer, conditions=(*answer.conditions, *lost))
        level = self._levels[answer.fidelity]
        level = int(level) if level == int(level) else level
        config = {} if answer.arm is None else self._runs.configurations[answer.arm]
        return TuneRecommendation.of(answer, self._sign, config, level, self._bias is not None)

    @property
    def _cost(self) -> float:
        """The time trained, with what is in no event yet."""
        events = self._experiment.events
        told = sum(event.cost or 0.0 for event in events if isinstance(event, Ended | Lost))
        return told + sum(run.owed for run in self._runs)

    # What `ArmScheduler` asks.

    def _settings(
        self, candidates: Sequence[Mapping[str, Any]], n_arms: int, search: Any
    ) -> CurveSettings:
        return CurveSettings(
            candidates=candidates, n_levels=self._n_levels, sign=self._sign, describe=described
        )

    def _on_open(self) -> None:
        self._race = self._make_race(self._sign)
        self._turns = TurnQueue(self._race, self._runs, self._last)
        for arm in range(min(self._n_raced, self._runs.n_arms)):
            self._race.enter(arm)
        for run in self._runs:
            run.reached = -1
        ended = set()
        for result in self._experiment.history():
            name, value = result.id.partition(":")[0], result.observation.value
            known, stage = self._runs.find(name), result.pull.fidelity
            if value is None or not math.isfinite(value) or stage == self._last:
                ended.add(name)
            if value is not None and math.isfinite(value):
                if known is not None:
                    known.reached = stage
                self._learn(name, result.pull.arm, stage, value)
        # What a time budget or a stopper of Tune has ended says nothing against its arm, nor does
        # it that Ray has no trial of an arm any more.
        with_runs = {run.arm for run in self._runs}
        cut_short = {run.arm for run in self._runs if self._was_cut_short(run, ended)}
        for arm in with_runs - cut_short:
            self._fail_without(arm, None)
        self._turns.renew()

    @property
    def _over(self) -> bool:
        """Whether the answer is certain; what is left to run without bounds is for the mean."""
        if super()._over:
            return True
        if not self._is_open or self._bias is None or not self._all_known:
            return False
        active = self._race.active
        return len(active) == 1 and self._race.n_finished(next(iter(active))) > 0

    def _is_out(self, arm: int) -> bool:
        return self._is_open and (arm >= self._n_raced or arm in self._race.out)

    def _send_first(self, run: Run) -> None:
        self._race.enter(run.arm)
        self._send(run)

    def _send(self, run: Run) -> None:
        self._claims.send(run, range(run.reached + 1, self._n_levels))

    def _next(self) -> Run | None:
        self._take_in_resting()
        run = self._turns.first()
        if run is not None:
            self._send(run)
            self._turns.add(run.arm)
        return run

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        self._note_time(run, result)
        stage = bisect_right(self._levels, run.shown) - 1
        if stage <= run.reached or self._metric not in result:
            return str(TrialScheduler.CONTINUE)
        if not self._observe(run, stage, self._value(result)):
            return str(TrialScheduler.STOP)
        if run.doomed or stage == self._last or self._over:
            return str(TrialScheduler.STOP)
        goes_first = self._turns.goes_first(run, self._without_slot())
        if goes_first or not loses_nothing_by_a_pause(run.trial, result):
            self._send(run)
            return str(TrialScheduler.CONTINUE)
        self._resting.append(run)
        return str(TrialScheduler.PAUSE)

    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        if result.get(self._time_attr) != run.shown:
            self._note_time(run, result)
        value = self._value(result)
        if run.shown < self._levels[-1] and math.isfinite(value):
            self._warn_once(
                "length",
                f"trial {run.trial.trial_id} ended at {self._time_attr}={run.shown:g}, before the "
                f"last level {self._levels[-1]:g}: its last value counts as its final one, and so "
                f"will others. Give max_t={run.shown:g}, or levels that trials reach.",
            )
        self._observe(run, self._last, value)

    def _on_failure(self, run: Run) -> None:
        self._fail_without(run.arm, run)
        self._turns.add(run.arm)

    def _cost_of(self, run: Run) -> float:
        owed, run.owed = run.owed, 0.0
        return owed

    def _leave(self, run: Run) -> None:
        super()._leave(run)
        self._resting = [other for other in self._resting if other is not run]

    @property
    def _all_known(self) -> bool:
        """Whether no other arms will come."""
        return self._complete or self._runs.n_arms >= self._n_raced

    def _make_race(self, sign: float) -> StagedElimination:
        if self._bias is None:
            return PhasedElimination(len(self._levels), self._n_startup_trials)
        gains = gains_of(self._bias, self._levels, sign)
        return BoundedElimination(gains, self._noise, self._n_startup_trials)

    def _note_time(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and what that has cost."""
        shown = time_in(result, self._time_attr)
        trained = shown - run.shown
        if trained < 0.0 or run.began_at is None:  # it has begun anew, or from a checkpoint
            run.began_at, _ = set_out_with(run, result, self._time_attr)
            trained = shown - run.began_at
        run.owed += trained
        run.shown = shown

    def _observe(self, run: Run, stage: int, value: float) -> bool:
        """Tell what a run has shown at a level; return False if that is no finite number."""
        self._claims.end(run, value, level=stage)
        self._may_find_one = True
        if not math.isfinite(value):
            self._on_failure(run)
            return False
        race, name = self._race, run.trial.trial_id
        contradicted = self._learn(name, run.arm, stage, self._sign * value)
        if run.arm in race.contradicting:
            self._warn_of_contradiction(run, contradicted)
        if contradicted:  # all upper ends have changed
            self._turns.renew()
        else:
            self._turns.add(run.arm)
        return True

    def _learn(self, name: str, arm: int, stage: int, value: float) -> list[int]:
        """Learn a value, and let go of arms; return the stages whose bounds it contradicts."""
        curve = self._curves.setdefault(name, np.full(self._n_levels, np.nan))
        curve[stage] = value
        contradicted = self._race.observe(arm, curve, stage, self._standing(arm))
        for gone, _ in self._race.let_go():
            self._doom_arm(gone)
        return contradicted

    def _standing(self, arm: int) -> int:
        """Return the level that all runs of an arm that have begun have come to."""
        begun = [run.reached for run in self._runs.of(arm) if run.reached >= 0]
        return min(begun, default=self._last)

    def _fail_without(self, arm: int, run: Run | None) -> None:
        """Take an arm out that never came to its end, and has nothing left to run."""
        race = self._race
        left = any(other is not run for other in self._runs.of(arm))
        if not left and arm not in race.out and not race.n_finished(arm):
            race.fail(arm)

    def _was_cut_short(self, run: Run, ended: Collection[str]) -> bool:
        trial = run.trial
        if trial.status != Trial.TERMINATED or CENSORED_KEY in trial.run_metadata.last_result:
            return False
        return trial.trial_id not in ended

    def _take_in_resting(self) -> None:
        resting, self._resting = self._resting, []
        for run in resting:
            if run.waits:
                self._turns.add(run.arm)
            elif not run.doomed and not run.trial.is_finished():
                self._resting.append(run)

    def _without_slot(self) -> list[Run]:
        """Return the chosen runs that wait for another one to leave its slot."""
        if not self._slots.busy or len(self._slots.busy) <= self._slots.number() < math.inf:
            return []
        return [run for run in self._slots.busy.values() if run.trial.status == Trial.PENDING]

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
