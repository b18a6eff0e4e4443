"""An Optuna pruner that stops trials which the order bounds of IISE-gamma call hopeless."""

from collections.abc import Iterable, Sequence

from mfhpo._validation import check_probability
from mfhpo.identification.curves.curves import CurveRace
from mfhpo_optuna.pruners.curve_pruner import CurveHistory, CurvePruner


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
    tell how noisy the values are, and every comparison then gets a margin for it. Without repeats
    there is none, and a lucky incumbent sets the bar.

    Where bounds on what curves still gain are known, `MFEliminationPruner` takes them, and is then
    never wrong. Works with any sampler, save those that run a race themselves, such as
    `IISESampler`: there a pruned trial is one without a value.

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

    A trial is not stopped while its latest report is NaN. All should report at the same steps.
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

    def _n_startup(self, history: CurveHistory) -> int:
        n_finished: int = history.race.n_curves
        return n_finished
