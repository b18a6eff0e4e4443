"""Learning curves: an experiment that keeps what runs show, and who judges them and goes first."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from ray.tune.experiment import Trial

from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.blind import BlindRunner
from mfhpo.experiment.kinds.runner import Wanted, maximised
from mfhpo.experiment.settings import Settings
from mfhpo.identification.curves.staged_elimination import BoundedElimination
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo.problem import Pull
from mfhpo_ray.experiment.checkpoints import loses_nothing_by_a_pause
from mfhpo_ray.experiment.time_limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.schedulers.claims import Claims, Course, ValueOf
from mfhpo_ray.schedulers.levels import Meter
from mfhpo_ray.schedulers.room import Slots
from mfhpo_ray.schedulers.runs import Run, Runs
from mfhpo_ray.schedulers.turn_queue import TurnQueue


@dataclass(frozen=True, kw_only=True)
class CurveSettings(Settings):
    """Settings of an experiment whose host decides what to do next.

    Parameters
    ----------
    candidates
        The configurations that are known; others may be suggested.
    n_levels
        Number of levels.
    """

    candidates: Sequence[Mapping[str, Any]]
    n_levels: int

    def runner(self) -> CurveRunner:
        """Return an experiment to which nothing was told."""
        configurations = Configurations(self.candidates, self.describe)
        return CurveRunner(configurations, self.n_levels, self.sign)


class CurveRunner(BlindRunner):
    """Takes what runs show, in the order in which it comes; it wants nothing by itself."""

    def __init__(self, configurations: Configurations, n_levels: int, sign: float) -> None:
        super().__init__(configurations, "level", in_blocks=False)
        self.n_levels = n_levels
        self.observe = partial(maximised, sign=sign)

    @property
    def finished(self) -> bool:
        """False: the host knows when it is over."""
        return False

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return nothing: the host knows what is next."""
        return None

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim, whose configuration may be a new one."""
        self.configurations.add(begun.configuration)
        return super().adopt(begun)


class CurveRace(Course):
    """Runs whose curves are judged: those that may get highest go first, the hopeless are stopped.

    Parameters
    ----------
    claims, runs, value_of, meter, n_arms
        See `mfhpo_ray.schedulers.level_race.LevelRace`.
    race
        Judges the curves; larger values are better.
    slots
        Where runs are.
    sign
        -1 where the metric is minimised.
    """

    def __init__(
        self,
        claims: Claims,
        runs: Runs,
        value_of: ValueOf,
        meter: Meter,
        n_arms: int,
        *,
        race: BoundedElimination,
        slots: Slots,
        sign: float,
    ) -> None:
        super().__init__(claims, runs, value_of)
        self.race = race
        self._meter = meter
        self._slots = slots
        self._sign = sign
        self._n_levels = len(meter.levels)
        self._last = self._n_levels - 1
        self._turns = TurnQueue(race, runs, self._last)
        self._curves: dict[str, FloatArray] = {}  # by the trial's name, its values at the levels
        # Runs that are to wait, once Ray has put them to rest.
        self._resting: list[Run] = []
        self._warned: set[int | None] = set()  # the levels whose bounds are contradicted
        for arm in range(min(n_arms, runs.n_arms)):
            race.enter(arm)
        self._learn_what_was_told()

    def is_out(self, arm: int) -> bool:
        """Return whether an arm was let go."""
        return arm in self.race.out

    def to_stop(self) -> list[Run]:
        """Return the runs of arms that were let go."""
        return [run for arm in sorted(self.race.out) for run in self._runs.of(arm)]

    def next(self) -> Run | None:
        """Send the run that goes first to the next level; None if none waits."""
        resting, self._resting = self._resting, []
        for run in resting:
            if run.waits:
                self._turns.add(run.arm)
            elif not run.doomed and not run.trial.is_finished():
                self._resting.append(run)
        first = self._turns.first()
        if first is not None:
            self._send(first)
            self._turns.add(first.arm)
        return first

    def send_first(self, run: Run) -> None:
        """Send a run to the first level, which a search algorithm has suggested."""
        self.race.enter(run.arm)
        self._send(run)

    def take(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Take a result in; return whether the run has come to a level."""
        self._meter.note(run, result)
        stage, value = self._meter.stage(run), self._value_of(result)
        if stage <= run.reached or value is None:
            return False
        self._observe(run, stage, value)
        return True

    def goes_on(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Send a run on if it goes first, or would lose something by a pause."""
        goes_first = self._turns.goes_first(run, self._without_slot())
        if goes_first or not loses_nothing_by_a_pause(run.trial, result):
            self._send(run)
            return True
        self._resting.append(run)
        return False

    def take_last(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in the last result of a trial: it counts as its final one."""
        self._meter.note(run, result)
        self._meter.warn_if_short(run)
        value = self._value_of(result)
        self._observe(run, self._last, math.nan if value is None else value)

    def fail(self, run: Run) -> None:
        """Take an arm out that never came to its end, and has nothing left to run."""
        self._fail_without(run.arm, run)
        self._turns.add(run.arm)

    def cost_of(self, run: Run) -> float:
        """Return what a run has cost since that was asked for last."""
        return self._meter.pay(run)

    def _send(self, run: Run) -> None:
        self._claims.send(run, range(run.reached + 1, self._n_levels))

    def _learn_what_was_told(self) -> None:
        """Learn what was told before a restart."""
        for run in self._runs:
            run.reached = -1
        ended = set()
        for result in self._claims.experiment.history():
            name, stage = result.id.partition(":")[0], result.pull.fidelity
            value, known = result.observation.value, self._runs.find(name)
            if value is None or not math.isfinite(value):
                ended.add(name)
                continue
            if stage == self._last:
                ended.add(name)
            if known is not None:
                known.reached = stage
            self._learn(name, result.pull.arm, stage, value)
        # What a time budget or a stopper of Tune has ended says nothing against its arm, nor does
        # it that Ray has no trial of an arm any more.
        cut_short = {run.arm for run in self._runs if _was_cut_short(run.trial, ended)}
        for arm in {run.arm for run in self._runs} - cut_short:
            self._fail_without(arm, None)
        self._turns.renew()

    def _observe(self, run: Run, stage: int, value: float) -> None:
        """Tell what a run has shown at a level, and learn it."""
        self._claims.end(run, value, level=stage)
        if run.has_failed:
            self.fail(run)
            return
        name = run.trial.trial_id
        contradicted = self._learn(name, run.arm, stage, self._sign * value)
        if run.arm in self.race.contradicting:
            self._warn_of_contradiction(name, contradicted)
        if contradicted:  # all upper ends have changed
            self._turns.renew()
        else:
            self._turns.add(run.arm)

    def _learn(self, name: str, arm: int, stage: int, value: float) -> list[int]:
        """Learn a value, and let go of arms; return the stages whose bounds it contradicts."""
        curve = self._curves.setdefault(name, np.full(self._n_levels, np.nan))
        curve[stage] = value
        contradicted = self.race.observe(arm, curve, stage)
        self.race.let_go()
        return contradicted

    def _fail_without(self, arm: int, run: Run | None) -> None:
        race = self.race
        left = any(other is not run for other in self._runs.of(arm))
        if not left and arm not in race.out and not race.n_finished(arm):
            race.fail(arm)

    def _without_slot(self) -> list[Run]:
        """Return the chosen runs that wait for another one to leave its slot."""
        busy = self._slots.busy
        if not busy or len(busy) <= self._slots.number() < math.inf:
            return []
        return [run for run in busy.values() if run.trial.status == Trial.PENDING]

    def _warn_of_contradiction(self, name: str, contradicted: Sequence[int]) -> None:
        levels, values = self._meter.levels, self._sign * self._curves[name]
        pairs = zip(levels, values, strict=True)
        shown = [f"{value:.5g} at {level:g}" for level, value in pairs if math.isfinite(value)]
        whose = f"trial {name} ({', '.join(shown)})"
        stopped = "what was stopped by it may have been stopped in error"
        for stage in {*contradicted} - self._warned:
            low, high = sorted(self._sign * self.race.gains[stage])
            self._warn(
                stage,
                f"bias[{levels[stage]:g}] is contradicted by {whose}. The bound is widened "
                f"to gains in [{low:.5g}, {high:.5g}], and further as trials need; {stopped}. "
                f"Declare a wider bound, or larger noise.",
            )
        if not contradicted:
            self._warn(
                None,
                f"no final value agrees with what was declared and with what {whose} and other "
                f"replicates have shown; {stopped}. Declare wider bounds, or larger noise.",
            )

    def _warn(self, about: int | None, message: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(message, BiasContradictedWarning, stacklevel=3)


def _was_cut_short(trial: Trial, ended: Collection[str]) -> bool:
    by_limit = {CENSORED_KEY, MEMORY_KEY} & trial.run_metadata.last_result.keys()
    if trial.status != Trial.TERMINATED or by_limit:
        return False
    return trial.trial_id not in ended
