"""`IISEPruner`, and what it shares with other pruners of learning curves."""

from __future__ import annotations

import abc
import math
import threading
import warnings
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_count, check_names, check_probability
from mfhpo.identification.curves.curves import (
    CurveRace,
    PhasedCurves,
    check_reduction_factor,
    check_steps,
    read_curve,
)
from mfhpo.knowledge.arrays import FloatArray
from mfhpo_optuna.study.distributions import signs_of
from mfhpo_optuna.study.trials.under_way import TrialNews

# COMPLETE trials that show how long curves are, and how many of them are long.
_ENOUGH, _MANY = 3, 20


class CurvePruner(BasePruner):
    """Judges trials by their reports at a few steps, with no state but the study's trials.

    Parameters
    ----------
    n_warmup_steps
        Nothing is stopped, and nothing is learned, at earlier steps.
    reduction_factor
        The checked steps are the final step divided by this factor once, twice and so on, down to
        1; above 1. A report counts for the last checked step before it.
    final_step
        The step at which a curve is finished. None: the largest step that any COMPLETE trial has
        reported. Declare it when trials may report beyond it, or end earlier by themselves, as with
        patience: the curves that end before do not count. A warning says which step would do.
    replicate_params
        Names of parameters that distinguish repeats of one arm, such as a seed or a fold.
    """

    def __init__(
        self,
        n_startup_trials: int,
        n_warmup_steps: int,
        reduction_factor: float,
        final_step: int | None,
        replicate_params: Iterable[str],
    ) -> None:
        right = "a collection of names such as ('seed',)"
        self._replicate_params = frozenset(check_names("replicate_params", replicate_params, right))
        self._n_startup_trials = check_count("n_startup_trials", n_startup_trials, 0)
        self._n_warmup_steps = check_count("n_warmup_steps", n_warmup_steps, 0)
        self._reduction_factor = check_reduction_factor(reduction_factor)
        self._final_step = None if final_step is None else check_count("final_step", final_step, 1)
        self._forget()
        if self._final_step is not None and len(self._steps(self._final_step)) == 1:
            raise ValueError(self._nothing_to_check(self._final_step))

    @abc.abstractmethod
    def _new_race(self, steps: Sequence[int], sign: float) -> Any:
        """Begin a race of curves with these steps; `sign` is -1 where the study minimises."""

    def _stops(self, history: CurveHistory, trial: FrozenTrial, curve: FloatArray) -> bool:
        """Return whether the race stops a curve, by the last check that it has passed."""
        return bool(history.race.stops(self._arm(trial), *last_check(curve)))

    def _add(self, history: CurveHistory, trial: FrozenTrial, curve: FloatArray) -> None:
        """Add a finished curve."""
        history.race.add(self._arm(trial), curve)

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether to stop a trial, by its reports; see `optuna.pruners.BasePruner.prune`.

        Raises ValueError if the study has several objectives.
        """
        if len(study.directions) > 1:
            raise ValueError(
                f"{type(self).__name__} needs a study with one objective, but "
                f"{study.study_name!r} has {len(study.directions)}; use optuna.pruners.NopPruner "
                f"there."
            )
        reports = trial.intermediate_values
        if not reports or math.isnan(reports[max(reports)]):
            return False
        with self._lock:
            history = self._histories.get(study)
            if history is None:
                history = self._histories[study] = CurveHistory(self, signs_of(study)[0])
            history.update(study)
            curve = history.curve(trial)
            race = history.race
            n_startup = race.n_curves if isinstance(race, CurveRace) else history.n_begun
            is_early = n_startup < self._n_startup_trials
            if is_early or np.isnan(curve).all() or not np.isnan(curve[-1]):
                return False
            return self._stops(history, trial, curve)

    def _steps(self, final_step: int) -> tuple[int, ...]:
        """Return the checked steps and the final one; `final_step` is 0 while it is unknown."""
        return check_steps(final_step, self._reduction_factor, self._n_warmup_steps)

    def _least_final_step(self) -> int:
        """Return the least step at which a curve can be finished; others were cut short."""
        return 1

    def _nothing_to_check(self, final_step: int) -> str:
        """Return what is wrong where no step is checked before the final one, and what helps."""
        return (
            f"nothing is ever stopped: no step is checked from n_warmup_steps="
            f"{self._n_warmup_steps} on and before final_step={final_step}, with reduction_factor="
            f"{self._reduction_factor:g}. Report more steps, or lower n_warmup_steps or "
            f"reduction_factor."
        )

    def _arm(self, trial: FrozenTrial) -> Hashable:
        if not trial.params:
            return trial.number
        names = sorted(trial.params.keys() - self._replicate_params)
        # repr, because choices may be unhashable and because 1 == True.
        return tuple((name, repr(trial.params[name])) for name in names)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._histories: WeakKeyDictionary[Study, CurveHistory] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is rebuilt from the study: a copy starts with an empty memory."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_histories")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


class IISEPruner(CurvePruner):
    """Stop a trial when, by what finished curves still gained, it cannot beat the incumbent.

    A trial is one arm, trained through its fidelities with ``trial.report(value, step)``. At a few
    steps, a geometric grid below the final one, the pruner asks how much a curve may still gain
    from there. Bounds learned from the finished curves say that: a new curve respects them at all
    these steps together with probability `coverage`. A trial stops when even its value plus the
    bound does not exceed the final value of the incumbent. This is the elimination rule of
    IISE-gamma (Multi-Fidelity Best-Arm Identification, NeurIPS 2022, Section 5) with conformal
    order bounds; `mfhpo.identification.curves.curves` has the details.

    The incumbent is the arm with the best final mean: trials whose parameters are equal, those in
    `replicate_params` aside, are repeats of one arm, and their curves are averaged. Repeats also
    tell how noisy the values are, and every comparison then gets a margin for it.

    Where bounds on what curves still gain are known, `MFEliminationPruner` takes them. Works with
    any sampler, save those that run a race themselves, such as `IISESampler`.

    Parameters
    ----------
    coverage
        Probability with which a new curve's gains respect the bounds at all checked steps, not at
        each; strictly between 0 and 1. Higher is safer and needs more finished curves before
        anything is stopped: with 3 checked steps 9 to 14 at 0.8, 19 to 29 at 0.9, 39 to 59 at
        0.95.
    n_startup_trials
        Nothing is stopped before this many curves have finished.

    Notes
    -----
    The coverage is exact while all trials finish and their curves are exchangeable (random search).
    Stopped trials and samplers that learn shift it. It is about all trials, not about those that
    would have won: where slow learners end higher, about half of the would-be winners were stopped
    at coverage 0.8 in a simulation. If late bloomers matter, raise `coverage` or `n_warmup_steps`.
    """

    def __init__(
        self,
        *,
        coverage: float = 0.8,
        n_startup_trials: int = 10,
        n_warmup_steps: int = 0,
        reduction_factor: float = 3.0,
        final_step: int | None = None,
        replicate_params: Iterable[str] = (),
    ) -> None:
        super().__init__(
            n_startup_trials, n_warmup_steps, reduction_factor, final_step, replicate_params
        )
        self._coverage = check_probability("coverage", coverage)

    def _new_race(self, steps: Sequence[int], sign: float) -> CurveRace:
        return CurveRace(len(steps), self._coverage)


class CurveHistory:
    """One study's trials, each read once when it has finished and turned into a race of curves."""

    def __init__(self, pruner: CurvePruner, sign: float) -> None:
        self._pruner = pruner
        self.sign = sign
        self.warned: set[int] = set()  # steps whose declared bounds were contradicted
        self._lengths: list[int] = []  # of COMPLETE trials, sorted
        self._warned_of_steps = False
        self._running: list[FrozenTrial] = []  # those that have reported something
        self._begin(pruner._final_step or 0)

    def others(self, trial: FrozenTrial) -> list[tuple[Hashable, FloatArray]]:
        """Return the arms and curves of the other trials that run."""
        running = (other for other in self._running if other.number != trial.number)
        return [(self._pruner._arm(other), self.curve(other)) for other in running]

    def update(self, study: Study) -> None:
        """Read the trials that have finished since the last call."""
        news = self._news.read(study)
        if news is None:  # a study that was made again
            self._begin(self._pruner._final_step or 0)
            news = self._news.read(study) or []
        lengths = _lengths(news)
        self._warn_of_steps(lengths)
        least = self._pruner._least_final_step()
        while self._pruner._final_step is None and max(lengths, default=0) >= max(
            self._final_step + 1, least
        ):
            self._begin(max(lengths))
            news = self._news.read(study) or []
            lengths = _lengths(news)
        reporting = [trial for trial in news if trial.intermediate_values]
        self._running = [trial for trial in reporting if trial.state == TrialState.RUNNING]
        for trial in reporting:
            if not trial.state.is_finished():
                continue
            curve = self.curve(trial)
            if trial.state != TrialState.FAIL and not np.isnan(curve).all():
                self.n_begun += 1
                if isinstance(self.race, PhasedCurves):
                    self.race.begin(curve)
            if trial.state == TrialState.COMPLETE and np.isfinite(curve[-1]):
                self._pruner._add(self, trial, curve)

    def curve(self, trial: FrozenTrial) -> FloatArray:
        """Return values at the fidelities, larger is better, shape (M,), NaN where none."""
        return self.sign * read_curve(trial.intermediate_values, self.steps)

    def _warn_of_steps(self, lengths: Sequence[int]) -> None:
        """Warn once of curves that end before there is a step to check, or mostly too early."""
        self._lengths = sorted([*self._lengths, *lengths])
        n, pruner = len(self._lengths), self._pruner
        if n < _ENOUGH or self._warned_of_steps:
            return
        longest, middle = self._lengths[-1], self._lengths[(n - 1) // 2]
        final = pruner._final_step or max(longest, pruner._least_final_step())
        n_finished = n - bisect_left(self._lengths, final)
        message = ""
        if longest < pruner._steps(final)[0] or len(pruner._steps(final)) == 1:
            message = pruner._nothing_to_check(longest)
        elif n >= _MANY and 2 * n_finished < n:
            message = (
                f"little is stopped: {n_finished} of {n} COMPLETE trials have reported step "
                f"{final}, and only such curves count as finished. Where trials end early by "
                f"themselves, give {type(pruner).__name__} final_step={middle}, which half of them "
                f"reach."
            )
        if message:
            self._warned_of_steps = True
            warnings.warn(message, stacklevel=5)

    def _begin(self, final_step: int) -> None:
        self._final_step = final_step
        self._news = TrialNews()
        self.n_begun = 0
        self.steps = self._pruner._steps(final_step)
        self.race = self._pruner._new_race(self.steps, self.sign)


def last_check(curve: FloatArray) -> tuple[int, float]:
    """Return the last check at which a curve has a value, and that value."""
    fidelity = int(np.flatnonzero(~np.isnan(curve))[-1])
    return fidelity, float(curve[fidelity])


def _lengths(trials: Sequence[FrozenTrial]) -> list[int]:
    return [
        max(trial.intermediate_values)
        for trial in trials
        if trial.state == TrialState.COMPLETE and trial.intermediate_values
    ]
