"""An Optuna pruner that stops trials which the order bounds of IISE-gamma call hopeless."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import optuna
from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_probability
from mfhpo.identification.curves import CurveRace, check_steps, read_curve

__all__ = ["IISEPruner"]

# Below "optuna.", so that optuna.logging.set_verbosity governs it.
_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class IISEPruner(BasePruner):
    """Stop a trial when, by what finished curves still gained, it cannot beat the incumbent.

    A trial is one arm, trained through its fidelities with ``trial.report(value, step)``. At a few
    steps, a geometric grid below the final one, the pruner asks how much a curve may still gain
    from there. The answer is learned from the finished curves: bounds that a new curve respects at
    all these steps together with probability `coverage`. A trial stops when even its value plus
    the bound does not exceed the final value of the incumbent. This is the elimination rule of
    IISE-gamma (Multi-Fidelity Best-Arm Identification, NeurIPS 2022, Section 5) with conformal
    order bounds; `mfhpo.identification.curves` has the details.

    The incumbent is the arm with the best final mean, not the luckiest trial: trials whose
    parameters are equal, those in `replicate_params` aside, are repeats of one arm, and their
    curves are averaged. Repeats also tell how noisy the values are, and every comparison then gets
    a margin for it. Without any repeats there is no margin; the noise of single trials is then
    inside the bounds, but a lucky incumbent sets the bar.

    Works with any sampler, save those that run a race themselves, such as `IISESampler`: there a
    pruned trial is one without a value. Needs no state but the study's trials: a new process or
    another worker decides the same. Repeats of arms other than the incumbent that were stopped
    leave the better ones behind, and so flatter those arms' means.

    Parameters
    ----------
    coverage
        Probability with which a new curve's gains respect the bounds at all checked steps, not at
        each; strictly between 0 and 1. Higher is safer and needs more finished curves before
        anything is stopped: with 3 checked steps 9 to 14 at 0.8, 19 to 29 at 0.9, 39 to 59 at
        0.95.
    n_startup_trials
        Nothing is stopped before this many curves have finished.
    n_warmup_steps
        Nothing is stopped, and nothing is learned, at earlier steps. The lowest steps often order
        the arms wrongly; when they do, their bounds are wide, but they still cost confidence.
    reduction_factor
        The checked steps are the final step divided by this factor once, twice and so on, down to
        1; above 1. A trial is checked at its first report at or after such a step.
    final_step
        The step at which a curve is finished. None: the largest step that any COMPLETE trial has
        reported. Declare it when trials may report beyond it, or end earlier.
    replicate_params
        Names of parameters that distinguish repeats of the same arm, such as a seed or a fold.
    noise_level
        Probability with which one mean may lie beyond its noise margin, between 0 and 0.5.
    explore
        Share of trials, chosen by `seed` and the trial's number, that are never stopped.
    seed
        Seed of that choice, a non-negative integer.

    Raises
    ------
    ValueError
        If an argument is out of its range, or the study has several objectives.

    Notes
    -----
    What the coverage means, and what it does not:

    * It is exact while all trials finish and their curves are exchangeable (random search). A
      stopped trial never shows what it would have gained, so that later on the finished curves
      are a selected sample, and a sampler that learns shifts it further. In simulations with
      random search the bounds kept their coverage after 200 trials without any exploration, which
      is why `explore` is 0 by default: each explored trial costs a whole curve.
      ``explore=0.05`` is the insurance against bounds that an unlucky start made too tight.
    * It is about all trials, not about those that would have won. When late bloomers win, the
      share of would-be winners that are stopped can be far above 1 - coverage: about one half at
      coverage 0.8 in a simulation where slow learners end higher, 3-5% in one where
      the curves differ by noise alone. If late bloomers matter, raise `coverage` or
      `n_warmup_steps`.
    * With several workers a trial is judged again when others finish; each time by bounds with
      this coverage.

    What counts: a COMPLETE trial that reported the final step is a finished curve, and the value
    reported there is its final value. The value that the objective returned is not used, because
    it need not be comparable with the reports: if it is the best value so far, report the best
    value so far. COMPLETE trials that ended earlier, PRUNED and FAIL trials, and curves that end
    with NaN or an infinite value are left out. A trial is not stopped while its latest report is
    NaN. All trials should report at the same steps. Trials without any parameters are arms of
    their own.

    Examples
    --------
    >>> import optuna
    >>> from mfhpo_optuna import IISEPruner
    >>> def objective(trial):
    ...     height = trial.suggest_float("height", 0, 1)
    ...     for epoch in range(1, 28):
    ...         accuracy = height * (1 - 0.5 / epoch)
    ...         trial.report(accuracy, epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return accuracy
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> sampler = optuna.samplers.RandomSampler(seed=0)
    >>> study = optuna.create_study(direction="maximize", sampler=sampler, pruner=IISEPruner())
    >>> study.optimize(objective, n_trials=40)
    >>> pruned = study.get_trials(states=[optuna.trial.TrialState.PRUNED])
    >>> len(pruned) > 10 and study.best_value > 0.9
    True
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
        noise_level: float = 0.05,
        explore: float = 0.0,
        seed: int = 0,
    ) -> None:
        if isinstance(replicate_params, str):
            raise ValueError(
                f"replicate_params must be a collection of names, got {replicate_params!r}; "
                f"write ({replicate_params!r},)."
            )
        if not (reduction_factor > 1.0 and math.isfinite(reduction_factor)):
            raise ValueError(f"reduction_factor must be above 1, got {reduction_factor!r}; try 3.")
        if final_step is not None and final_step < 1:
            raise ValueError(f"final_step must be at least 1 or None, got {final_step!r}.")
        if not 0.0 <= explore <= 1.0:
            raise ValueError(f"explore must be between 0 and 1, got {explore!r}; try 0.05.")
        for name, value in (
            ("n_startup_trials", n_startup_trials),
            ("n_warmup_steps", n_warmup_steps),
            ("seed", seed),
        ):
            if value < 0:
                raise ValueError(f"{name} must be an integer of at least 0, got {value!r}.")
        self._coverage = check_probability("coverage", coverage)
        self._noise_level = check_probability("noise_level", noise_level)
        if noise_level >= 0.5:
            raise ValueError(f"noise_level must be below 0.5, got {noise_level!r}; try 0.05.")
        self._n_startup_trials = n_startup_trials
        self._n_warmup_steps = n_warmup_steps
        self._reduction_factor = reduction_factor
        self._final_step = final_step
        self._replicate_params = frozenset(replicate_params)
        self._explore = explore
        self._seed = seed
        self._forget()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Judge a trial by what it has reported; called by ``trial.should_prune()``.

        Parameters
        ----------
        study
            The study, with one objective.
        trial
            The running trial.

        Returns
        -------
        bool
            Whether to stop it.

        Raises
        ------
        ValueError
            If the study has several objectives.
        """
        if len(study.directions) > 1:
            raise ValueError(
                f"IISEPruner needs a study with one objective, but {study.study_name!r} has "
                f"{len(study.directions)}; use optuna.pruners.NopPruner there."
            )
        reports = trial.intermediate_values
        if not reports or math.isnan(reports[max(reports)]):
            return False
        sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        with self._lock:
            history = self._histories.get(study)
            if history is None:
                history = self._histories[study] = _History(self, sign)
            history.update(study.get_trials(deepcopy=False))
            return history.is_hopeless(trial) and not self._explored(trial.number)

    def _explored(self, number: int) -> bool:
        if self._explore == 0.0:
            return False
        return bool(np.random.default_rng((self._seed, number)).random() < self._explore)

    def _arm(self, trial: FrozenTrial) -> Hashable:
        if not trial.params:
            return trial.number
        # repr, because choices may be unhashable and because 1 == True.
        return tuple(
            sorted(
                (name, repr(value))
                for name, value in trial.params.items()
                if name not in self._replicate_params
            )
        )

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._histories: WeakKeyDictionary[Study, _History] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is rebuilt from the study: a copy starts with an empty memory."""
        state = self.__dict__.copy()
        del state["_lock"], state["_histories"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with an empty memory."""
        self.__dict__.update(state)
        self._forget()


class _History:
    """One study's trials, read once each and turned into a race of curves."""

    def __init__(self, pruner: IISEPruner, sign: float) -> None:
        self._pruner = pruner
        self._sign = sign
        self._n_read = 0
        self._unfinished: set[int] = set()
        self._restart(pruner._final_step or 0)

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Read the trials that have finished since the last call."""
        news = [trials[number] for number in sorted(self._unfinished)] + list(
            trials[self._n_read :]
        )
        self._n_read = len(trials)
        self._unfinished = {trial.number for trial in news if not trial.state.is_finished()}
        complete = [trial for trial in news if _is_complete(trial)]
        if not complete:
            return
        if self._pruner._final_step is None:
            longest = max(max(trial.intermediate_values) for trial in complete)
            if longest > self._steps[-1]:
                self._restart(longest)
                complete = [trial for trial in trials if _is_complete(trial)]
        for trial in complete:
            curve = self._sign * read_curve(trial.intermediate_values, self._steps)
            if math.isfinite(curve[-1]):
                self._race.add(self._pruner._arm(trial), curve)

    def is_hopeless(self, trial: FrozenTrial) -> bool:
        """Whether the race would stop the trial at the last check that it has passed."""
        pruner, race = self._pruner, self._race
        if race.n_curves < pruner._n_startup_trials:
            return False
        curve = self._sign * read_curve(trial.intermediate_values, self._steps)
        checked = np.flatnonzero(~np.isnan(curve))
        if not checked.size or checked[-1] == len(self._steps) - 1:
            return False
        fidelity = int(checked[-1])
        verdict = race.judge(pruner._arm(trial), fidelity, float(curve[fidelity]))
        if verdict.stop:
            _logger.debug(
                "Trial %d is hopeless at step %d: from %.6g it gets to %.6g at best, and the "
                "incumbent %s ends at %.6g (noise margins included, coverage %g, %d curves).",
                trial.number,
                self._steps[fidelity],
                self._sign * curve[fidelity],
                self._sign * verdict.reach,
                verdict.incumbent,
                self._sign * verdict.bar,
                pruner._coverage,
                race.n_curves,
            )
        return verdict.stop

    def _restart(self, final_step: int) -> None:
        pruner = self._pruner
        self._steps = check_steps(final_step, pruner._reduction_factor, pruner._n_warmup_steps)
        self._race = CurveRace(len(self._steps), pruner._coverage, pruner._noise_level)


def _is_complete(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.COMPLETE and bool(trial.intermediate_values)
