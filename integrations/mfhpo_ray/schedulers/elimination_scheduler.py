"""`MFEliminationScheduler`: stops trials that cannot win, by bounds that the user declares."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.tune.experiment import Trial

from mfhpo._validation import check_increasing, check_name, check_nonnegative, check_number
from mfhpo.experiment import Answer, Begun, Configurations
from mfhpo.experiment.answer import losses_in_words
from mfhpo.experiment.kinds.blind import BlindRunner
from mfhpo.experiment.kinds.runner import Settings, Wanted
from mfhpo.experiment.ledger import Result
from mfhpo.identification.curves.declared_bounds import (
    Bound,
    BoundedElimination,
    checked_bounds,
    gains_of,
)
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Pull
from mfhpo.racing.options import runs, with_defaults
from mfhpo_ray.experiment.configurations import described
from mfhpo_ray.experiment.options import LevelOptions
from mfhpo_ray.experiment.processes import CENSORED_KEY, MEMORY_KEY, loses_nothing_by_a_pause
from mfhpo_ray.experiment.results import in_terms_of_tune
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Config
from mfhpo_ray.schedulers.level_race import LevelRace, Meter, levels_of
from mfhpo_ray.schedulers.runs import Run, Slots

if TYPE_CHECKING:
    from typing_extensions import Unpack


@runs(BoundedElimination, LevelOptions, replicate="seed")
class MFEliminationScheduler(ArmScheduler):
    """Stops a trial when another one is surely better, by bounds on what curves still gain.

    The counterpart of `mfhpo_optuna.MFEliminationPruner`. With declared bounds, it stops no trial
    that would have ended above all the others. The race ends when no other arm's bounds reach the
    best one. One trial of each configuration will do. With replicates, an arm is the configuration
    without their key, and loses all its trials at once.

    Without bounds it promotes trials by a model, and evaluates the finalists again: it is
    `mfhpo_ray.IISEScheduler` on trials of one seed each.

    Parameters
    ----------
    time_attr, max_t
        See `mfhpo_ray.IISEScheduler`.
    bias
        Bounds on what is still gained, as for the pruner: ``{level: bound}``, whose levels are then
        the ones at which trials are judged, below `max_t`; or a function of the level. A bound is a
        largest distance from the final value, or a pair (least, largest) for the final value minus
        the value. None: trials are promoted.
    noise
        Largest distance of a reported value from the mean of its trial's arm at that level, at
        least 0. It has no part where trials are promoted.

    Notes
    -----
    All trials come to the first level. From there on, the one that may get highest goes first. A
    trial that would begin anew after a pause runs on until it is stopped. An arm's second trial
    starts only if its first has ended and the arm may still be the best.

    An arm whose every trial failed counts against no other. Where a trial contradicts the bounds
    beyond the noise, a `mfhpo.BiasContradictedWarning` says so. The bound is widened as far as
    needed, and nothing is certified any more.

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
        bias: Mapping[int, Bound] | Mapping[float, Bound] | Callable[[float], Bound] | None = None,
        noise: float = 0.0,
        **options: Unpack[LevelOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(own)
        check_name("time_attr", time_attr, "the key of a result")
        bounds: dict[float, Bound] | None = None
        if bias is not None and not callable(bias):
            bounds = checked_bounds(bias, lambda level: check_number("bias: level", level))
        self._bias = bias if callable(bias) else bounds
        levels = levels_of(max_t, own, bounds)
        self._levels = list(map(float, levels))
        check_increasing("levels", self._levels)
        if self._levels[0] <= 0.0 or len(self._levels) < 2:
            raise ValueError(
                f"levels must be at least two, and above 0, got {self._levels}: else nothing would "
                f"ever be stopped. Lower grace_period or reduction_factor."
            )
        self._noise = check_nonnegative("noise", noise)
        self._fidelity = Fidelity(time_attr, levels, self._levels)
        self._meter = Meter(self._fidelity)
        if bias is not None:
            self._make_judge(1.0)  # raises for what is wrong before any trial runs

    def recommendation(self) -> Answer:
        """Return the best answer so far; ValueError before any trial."""
        if not isinstance(self._course, _CurveRace):
            return super().recommendation()
        all_over = self._all_known and all(run.is_over for run in self._runs)
        finished = self._closed or self._over or all_over
        experiment = self._course.experiment
        cost = experiment.answer().cost
        answer = self._course.judge.recommend(cost, finished, self._all_known)
        lost = losses_in_words(len(experiment.ledger.lost), None, may_have_worker=False)
        answer = replace(answer, conditions=(*answer.conditions, *lost))
        level = self._levels[answer.fidelity]
        level = int(level) if level == int(level) else level
        config = {} if answer.arm is None else self._runs.configurations[answer.arm]
        return in_terms_of_tune(Answer.of(answer, self._sign, dict(config), level), dict)

    # What `ArmScheduler` asks.

    def _settings(self, candidates: Sequence[Config], n_arms: int) -> Settings:
        if self._bias is None:
            if len(candidates) < n_arms:
                raise ValueError(
                    f"{type(self).__name__} has no bias=..., and promotes trials that are all "
                    f"known, but the search algorithm suggests them one at a time; declare bias, "
                    f"leave search_alg out, or take mfhpo_ray.SpaceSearch as search_alg."
                )
            return self._promoted(candidates, self._fidelity)
        return _CurveSettings(
            candidates=candidates, n_levels=len(self._levels), sign=self._sign, describe=described
        )

    def _make_course(self, *parts: Any) -> LevelRace:
        if self._promotion is not None:
            return super()._make_course(*parts)
        judge = self._make_judge(self._sign)
        return _CurveRace(*parts, judge=judge, slots=self._slots, sign=self._sign)

    @property
    def _over(self) -> bool:
        """True if the answer is certain."""
        if super()._over:
            return True
        if not isinstance(self._course, _CurveRace) or not self._all_known:
            return False
        judge = self._course.judge
        return len(judge.active) == 1 and judge.n_finished(min(judge.active)) > 0

    @property
    def _all_known(self) -> bool:
        """Whether no other arms will come."""
        return self._complete or self._runs.n_arms >= self._n_raced

    def _make_judge(self, sign: float) -> BoundedElimination:
        assert self._bias is not None
        return BoundedElimination(gains_of(self._bias, self._levels, sign), self._noise)


@dataclass(frozen=True, kw_only=True)
class _CurveSettings(Settings):
    candidates: Sequence[Mapping[str, Any]]
    n_levels: int

    def runner(self) -> _CurveRunner:
        return _CurveRunner(self)


class _CurveRunner(BlindRunner):
    """Takes what runs show, in the order in which it comes; the host knows what is next."""

    finished = False

    def __init__(self, settings: _CurveSettings) -> None:
        arms = Configurations(settings.candidates, settings.describe)
        super().__init__(arms, "level", in_blocks=False)
        self.n_levels, self.sign = settings.n_levels, settings.sign

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        return None

    def adopt(self, begun: Begun) -> Pull | None:
        self.configurations.add(begun.configuration)
        return super().adopt(begun)


class _CurveRace(LevelRace):
    """Runs whose curves are judged: those that may get highest go first, the hopeless are stopped.

    To the `judge`, larger values are better.
    """

    keeps_those_out = False

    def __init__(self, *args: Any, judge: BoundedElimination, slots: Slots, sign: float) -> None:
        super().__init__(*args)
        self.judge, self._slots, self._sign = judge, slots, sign
        self._curves: dict[str, FloatArray] = {}  # by the trial's name, its values at the levels
        self._n_learned = 0
        self._warned: set[str] = set()  # what is contradicted
        with warnings.catch_warnings():  # given before a restart
            warnings.simplefilter("ignore", BiasContradictedWarning)
            self._catch_up()

    @property
    def out(self) -> set[int]:
        return self.judge.out

    def to_stop(self) -> list[Run]:
        self._catch_up()
        return super().to_stop()

    def send_first(self, run: Run) -> None:
        super().send_first(run)
        self._catch_up()  # its arm may be a new one

    def next(self) -> Run | None:
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
        return n_ahead, -self.judge.reach(run.arm)

    def _goes_first(self, run: Run) -> bool:
        """Return whether a run that has just come to its level goes on before all that wait."""
        if run.arm not in self.judge.active or self._first_of(run.arm, run) is not run:
            return False
        first, busy = self._first(), self._slots.busy.values()
        others = [] if first is None else [first]
        if busy and len(busy) > self._slots.number():
            others += [other for other in busy if other.trial.status == Trial.PENDING]
        own = self._turn(run)
        return all(own <= self._turn(other) for other in others)

    # What runs have shown.

    def _catch_up(self) -> None:
        """Learn what was told since the last time, or before a restart."""
        for arm in range(min(self._n_arms, self._runs.n_arms)):
            is_in = arm in self.judge.active
            if not is_in and (self._runs.of(arm) or arm not in self.judge.failed):
                self.judge.enter(arm)
        history = self.experiment.history()
        for result in history[self._n_learned :]:
            if result.observation.has_value:
                self._learn(result)
        self._n_learned = len(history)
        for arm in list(self.judge.active):
            if not self.judge.n_finished(arm) and self._has_failed(arm):
                self.judge.fail(arm)

    def _learn(self, result: Result) -> None:
        """Learn a value, and let go of arms; warn of bounds that it contradicts."""
        arm, stage = result.pull.arm, result.pull.fidelity
        name = result.id.partition(":")[0]
        curve = self._curves.setdefault(name, np.full(self._last + 1, np.nan))
        curve[stage] = result.observation.value
        contradicted = self.judge.observe(arm, curve, stage)
        self.judge.let_go()
        if arm in self.judge.contradicting:
            self._warn_of_contradiction(name, contradicted)

    def _has_failed(self, arm: int) -> bool:
        """Return whether an arm has nothing left to run, and no trial that was cut short."""
        if self._runs.of(arm):
            return False
        runs = [run for run in self._runs if run.arm == arm]
        return bool(runs) and all(map(_has_failed, runs))

    def _warn_of_contradiction(self, name: str, contradicted: Sequence[int]) -> None:
        levels, values = self._meter.levels, self._sign * self._curves[name]
        pairs = zip(levels, values, strict=True)
        shown = [f"{value:.5g} at {level:g}" for level, value in pairs if math.isfinite(value)]
        told = {f"bias[{levels[stage]:g}]" for stage in contradicted} or {"what was declared"}
        for what in sorted(told - self._warned):
            self._warned.add(what)
            warnings.warn(
                f"{what} is contradicted by trial {name} ({', '.join(shown)}), at least together "
                f"with other replicates. Bounds are widened as far as trials need; what was "
                f"stopped may have been stopped in error. Declare wider bounds, or larger noise.",
                BiasContradictedWarning,
                stacklevel=2,
            )


def _has_failed(run: Run) -> bool:
    by_limit = {CENSORED_KEY, MEMORY_KEY} & run.trial.run_metadata.last_result.keys()
    return run.has_failed or run.trial.status == Trial.ERROR or bool(by_limit)
