"""An Optuna pruner that stops trials which cannot win, by bounds that the user declares."""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from optuna.trial import FrozenTrial

from mfhpo._validation import check_count, check_nonnegative
from mfhpo.identification.curves.curves import PhasedCurves
from mfhpo.identification.curves.declared_bounds import (
    Bound,
    BoundedCurves,
    checked_bounds,
    gains_of,
)
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.bias import BiasContradictedWarning
from mfhpo_optuna.pruners.curve_pruner import CurveHistory, CurvePruner, last_check

# Stands for the final step while it is not known: no report reaches it.
_NEVER = sys.maxsize


class MFEliminationPruner(CurvePruner):
    """Stop a trial when another one is surely better, by bounds on what curves still gain.

    A trial is one arm, trained through its fidelities with ``trial.report(value, step)``. The idea
    is from "Multi-Fidelity Multi-Armed Bandits Revisited" (NeurIPS 2023); Algorithm 3 of that
    paper, which compares values at the target, is `MFEliminationSampler`.

    **With declared bounds it is safe.** ``bias={step: bound}`` says that, from this step on, no
    reported value is farther than the bound from what the trial ends with. A trial stops when its
    value plus the bound plus `noise` is below another trial's value minus that one's bound minus
    `noise`, each at the steps where that says most. While the bounds are true, no trial is stopped
    that would have ended above all the others, whatever the sampler or the shape of the curves.

    **Without them it is a heuristic.** At the checked step with index p = 0, 1, ... a trial stops
    when its value plus ``2^(1-p) W`` does not exceed the best value of another trial at the same
    step. W is the spread of the values at the first checked step (of their middle 80 %). The
    paper's guarantee does not carry over. The rule is right where, from check p on, no two trials
    gain amounts that differ by more than ``2^(1-p) W``; late bloomers break that.

    Samplers and workers are as described for `IISEPruner`.

    Parameters
    ----------
    bias
        Bounds on what is still gained, in the unit of the objective: ``{step: bound}``, whose steps
        are then the checked ones, or a function of the step, which is asked at a geometric grid.
        A bound is a number b >= 0, the largest distance between a value at this step or later and
        the final one. Or it is a pair (least, largest) for the final value minus the value. Use
        ``(0.0, 0.1)`` for an accuracy that never falls, and ``(-0.1, 0.0)`` for a loss that never
        rises. Bounds must not grow with the step. None: the heuristic.
    noise
        Largest distance of a reported value from the mean of its trial's arm at that step, at
        least 0. For Gaussian noise of standard deviation s, 4 s is exceeded by one value in 16,000.
        It has no part in the heuristic.
    n_startup_trials
        Nothing is stopped before this many trials have ended past the first checked step. None: 0
        with bounds, 10 without.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range or no number, the bounds grow with the step, no step is
        left to check before `final_step`, or the study has several objectives.

    Notes
    -----
    COMPLETE trials that reported the final step count against a trial, and RUNNING ones by what
    they have shown so far, even if their worker has died: give the storage a
    ``heartbeat_interval``. PRUNED trials count for the spread W alone. Trials that end while `bias`
    lets them gain or lose are not finished.

    Where a finished curve contradicts a bound beyond the noise, a `mfhpo.BiasContradictedWarning`
    says so once for each checked step, and the bound is widened as far as the curves need.
    """

    def __init__(
        self,
        *,
        bias: Mapping[int, Bound] | Callable[[int], Bound] | None = None,
        noise: float = 0.0,
        n_startup_trials: int | None = None,
        n_warmup_steps: int = 0,
        reduction_factor: float = 3.0,
        final_step: int | None = None,
        replicate_params: Iterable[str] = (),
    ) -> None:
        if bias is not None and not callable(bias):
            bias = checked_bounds(bias, lambda step: check_count("bias: step", step, 0))
        self._bias = bias
        self._noise = check_nonnegative("noise", noise)
        if n_startup_trials is None:
            n_startup_trials = 10 if bias is None else 0
        super().__init__(
            n_startup_trials, n_warmup_steps, reduction_factor, final_step, replicate_params
        )
        if isinstance(bias, Mapping) and max(bias) < self._n_warmup_steps:
            raise ValueError(self._nothing_to_check(_NEVER))

    def _new_race(self, steps: Sequence[int], sign: float) -> BoundedCurves | PhasedCurves:
        if self._bias is None:
            return PhasedCurves(len(steps))
        return BoundedCurves(gains_of(self._bias, steps, sign), self._noise)

    def _stops(self, history: CurveHistory, trial: FrozenTrial, curve: FloatArray) -> bool:
        shown = last_check(curve) if self._bias is None else (curve,)
        return bool(history.race.stops(self._arm(trial), *shown, history.others(trial)))

    def _add(self, history: CurveHistory, trial: FrozenTrial, curve: FloatArray) -> None:
        contradicted = history.race.add(self._arm(trial), curve)
        for fidelity in () if self._bias is None else contradicted:
            step = history.steps[fidelity]
            if step in history.warned:
                continue
            history.warned.add(step)
            low, high = sorted(history.sign * history.race.gains[fidelity])
            warnings.warn(
                f"bias[{step}] is contradicted by trial {trial.number}: it had "
                f"{history.sign * curve[fidelity]:.5g} there and ended with "
                f"{history.sign * curve[-1]:.5g}. The bound is widened to gains in "
                f"[{low:.5g}, {high:.5g}], and further as trials need; what was stopped by the "
                f"declared one may have been stopped in error. Declare a wider bound, or larger "
                f"noise.",
                BiasContradictedWarning,
                stacklevel=5,
            )

    def _steps(self, final_step: int) -> tuple[int, ...]:
        last = final_step or _NEVER
        if isinstance(self._bias, Mapping):
            first = self._n_warmup_steps
            return (*(step for step in self._bias if first <= step < last), last)
        return super()._steps(final_step) if final_step else (last,)

    def _least_final_step(self) -> int:
        if not isinstance(self._bias, Mapping):
            return 1
        over = [step for step, bound in self._bias.items() if not np.any(bound)]
        return max(1, over[0] if over else max(self._bias) + 1)

    def _nothing_to_check(self, final_step: int) -> str:
        if not isinstance(self._bias, Mapping):
            return super()._nothing_to_check(final_step)
        before = "" if final_step == _NEVER else f" and before the final step {final_step}"
        return (
            f"nothing is ever stopped: bias has steps {list(self._bias)}, none of them from "
            f"n_warmup_steps={self._n_warmup_steps} on{before}. Declare a bound at such a step."
        )
