"""Learning curves: an experiment that keeps what runs show, and who judges them and goes first."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ray.tune.experiment import Trial

from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.blind import BlindRunner
from mfhpo.experiment.kinds.runner import Wanted
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.experiment.ledger import Result
from mfhpo.identification.curves.staged_elimination import BoundedElimination
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo.problem import LARGEST, Pull
from mfhpo_ray.experiment.checkpoints import loses_nothing_by_a_pause
from mfhpo_ray.experiment.limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.schedulers.level_race import LevelRace
from mfhpo_ray.schedulers.room import Slots
from mfhpo_ray.schedulers.runs import Run


@dataclass(frozen=True, kw_only=True)
class CurveSettings(Settings):
    """Settings of an experiment whose host decides what to do next, and may add configurations."""

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
        self.sign = sign

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


class CurveRace(LevelRace):
    """Runs whose curves are judged: those that may get highest go first, the hopeless are stopped.

    Its parameters are those of `LevelRace`, a `judge` of curves whose larger values are better, the
    `slots` in which runs are, and the `sign`, -1 where the metric is minimised.
    """

    keeps_those_out = False

    def __init__(self, *args: Any, judge: BoundedElimination, slots: Slots, sign: float) -> None:
        super().__init__(*args)
        self.judge = judge
        self._slots = slots
        self._sign = sign
        self._curves: dict[str, FloatArray] = {}  # by the trial's name, its values at the levels
        self._n_learned = 0
        self._warned: set[int | None] = set()  # the levels whose bounds are contradicted
        with warnings.catch_warnings():  # given before a restart
            warnings.simplefilter("ignore", BiasContradictedWarning)
            self._catch_up()

    @property
    def out(self) -> set[int]:
        """The arms that were let go."""
        return self.judge.out

    def to_stop(self) -> list[Run]:
        """Judge all that was told by now, and return the runs of arms that were let go."""
        self._catch_up()
        return super().to_stop()

    def send_first(self, run: Run) -> None:
        """Send a new run to the first level; its arm may be a new one."""
        super().send_first(run)
        self._catch_up()

    def next(self) -> Run | None:
        """Send the run that goes first to the next level; None if none waits."""
        first = self._first()
        if first is not None:
            self._send(first)
        return first

    def goes_on(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Send a run on if it goes first, or would lose something by a pause."""
        goes_on = self._goes_first(run) or not loses_nothing_by_a_pause(run.trial, result)
        if goes_on:
            self._send(run)
        return goes_on

    def _tell(self, run: Run, value: float, last: int) -> None:
        self.end(run, value, level=last)

    # Who goes first.

    def _first(self) -> Run | None:
        """Return the run that waits, and that the race wants to go on first."""
        firsts = (self._first_of(arm) for arm in sorted(self.judge.active))
        return min((run for run in firsts if run is not None), key=self._turn, default=None)

    def _first_of(self, arm: int, at_rest: Run | None = None) -> Run | None:
        """Return an arm's run that is the furthest of those that wait, maybe the one `at_rest`."""
        runs = (run for run in self._runs.of(arm) if run.waits or run is at_rest)
        waiting = (run for run in runs if run.reached < self._last)
        return max(waiting, key=lambda run: run.reached, default=None)

    def _turn(self, run: Run) -> tuple[float, ...]:
        """Return the place of a run: the smallest goes first."""
        n_ahead = self.judge.n_finished(run.arm) + sum(
            other is not run and (other.is_sent or other.reached > run.reached)
            for other in self._runs.of(run.arm)
        )
        return self.judge.turn(run.arm, n_ahead)

    def _goes_first(self, run: Run) -> bool:
        """Return whether a run that has just come to its level goes on before all that wait.

        Those that were chosen, and wait for another one to leave its slot, come first if they are
        equals.
        """
        if run.arm not in self.judge.active or self._first_of(run.arm, run) is not run:
            return False
        first, busy = self._first(), self._slots.busy.values()
        others = [] if first is None else [first]
        if busy and len(busy) > self._slots.number():
            others += [other for other in busy if other.trial.status == Trial.PENDING]
        return all(self._turn(run) <= self._turn(other) for other in others)

    # What runs have shown.

    def _catch_up(self) -> None:
        """Learn what was told since the last time, or before a restart."""
        for arm in range(min(self._n_arms, self._runs.n_arms)):
            if self._runs.of(arm) or arm not in self.judge.failed:
                self.judge.enter(arm)
        history = self.experiment.history()
        for result in history[self._n_learned :]:
            self._learn(result)
        self._n_learned = len(history)
        for arm in list(self.judge.active):
            if not self.judge.n_finished(arm) and self._has_failed(arm):
                self.judge.fail(arm)

    def _learn(self, result: Result) -> None:
        """Learn a value, and let go of arms; warn of bounds that it contradicts."""
        value, arm, stage = result.observation.value, result.pull.arm, result.pull.fidelity
        if value is None or not abs(value) <= LARGEST:
            return
        name = result.id.partition(":")[0]
        curve = self._curves.setdefault(name, np.full(self._last + 1, np.nan))
        curve[stage] = value
        contradicted = self.judge.observe(arm, curve, stage)
        self.judge.let_go()
        if arm in self.judge.contradicting:
            self._warn_of_contradiction(name, contradicted)

    def _has_failed(self, arm: int) -> bool:
        """Return whether an arm has nothing left to run, and no trial that was cut short.

        A time budget or a stopper of Tune that ends a trial says nothing against its arm.
        """
        if self._runs.of(arm):
            return False
        runs = [run for run in self._runs if run.arm == arm]
        return bool(runs) and all(map(_has_failed, runs))

    def _warn_of_contradiction(self, name: str, contradicted: Sequence[int]) -> None:
        levels, values = self._meter.levels, self._sign * self._curves[name]
        pairs = zip(levels, values, strict=True)
        shown = [f"{value:.5g} at {level:g}" for level, value in pairs if math.isfinite(value)]
        whose = f"trial {name} ({', '.join(shown)})"
        stopped = "what was stopped by it may have been stopped in error"
        stages: list[int | None] = [*contradicted]
        for stage in set(stages or [None]) - self._warned:
            self._warned.add(stage)
            if stage is None:
                what = f"no final value agrees with what was declared, and with what {whose} and "
                what += "other replicates have shown"
            else:
                low, high = sorted(self._sign * self.judge.gains[stage])
                what = f"bias[{levels[stage]:g}] is contradicted by {whose}. The bound is widened "
                what += f"to gains in [{low:.5g}, {high:.5g}], and further as trials need"
            message = f"{what}; {stopped}. Declare wider bounds, or larger noise."
            warnings.warn(message, BiasContradictedWarning, stacklevel=2)


def _has_failed(run: Run) -> bool:
    by_limit = {CENSORED_KEY, MEMORY_KEY} & run.trial.run_metadata.last_result.keys()
    return run.has_failed or run.trial.status == Trial.ERROR or bool(by_limit)
