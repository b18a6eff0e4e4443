"""`IISESampler`: the race for the best configuration, as an Optuna sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from optuna.samplers import BaseSampler

from mfhpo import (
    IISE,
    Bias,
    MaximumFidelityExploit,
    Noise,
    Policy,
    Problem,
    Radius,
    SuccessiveElimination,
)
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import mirrored_radius
from mfhpo_optuna.samplers.declared import DeclaredSampler
from mfhpo_optuna.study.arms import ArmsLike

__all__ = ["IISESampler"]

Variant = Literal["max", "order", "se", "mfe"]


class IISESampler(DeclaredSampler):
    """Finds the best of a set of configurations and certifies it, by elimination.

    Every trial is one noisy evaluation of one configuration (arm) at one level of the fidelity.
    Configurations that cannot be the best any more are not evaluated again; the study stops by
    itself when one is left, or when the leader is within `epsilon` of all others. Then
    ``study.best_trial`` is a trial that the sampler adds: the certified configuration with its
    estimated mean. The single evaluations are marked as infeasible, so that none of them, however
    lucky, is ever the best trial.

    With probability at least 1 - `delta`, the certified configuration is at most `epsilon` worse
    than the best arm, provided that what was declared is true. Noise that was not declared is
    estimated, and the certificate says so. Without bounds on the bias, only values at the target
    are evidence (see `estimated_bias`).

    The objective must be noisy in the way that matters: draw a new split or seed in every
    evaluation. With a fixed one, the certificate is about that split alone.

    Parameters
    ----------
    fidelity
        The parameter that the sampler is to choose: its name, or a `Fidelity` that also declares
        levels, costs or bias. The objective asks for it with an ordinary ``trial.suggest_*``.
    arms
        The configurations to compare: how many to draw from what the objective suggests; or a list
        of parameter dictionaries; or ``{name: distribution}`` to draw 32 from (all of them, if
        there are no more; see `draw_arms` for another number).
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the objective. 0 asks for the very best arm, which may never be
        certain. None: one standard deviation of the noise at the target level.
    sigma
        What is known of the noise: a sub-Gaussian scale, or one for each level, or
        `mfhpo.Bounded` with the bounds of the objective's values, or `mfhpo.Gaussian`. None:
        estimated.
    bias
        Bounds on the levels' bias, one for each level and the last one 0: numbers, or
        `mfhpo.Bias`. None: see `estimated_bias`.
    budget
        Largest total cost, in the unit of the fidelity's costs. When it is spent, the study stops
        with the best answer so far, marked as not certified. Trials under way are not counted:
        n workers may overspend by n - 1 trials.
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated by
        ``estimated_bias="eliminate"`` (IISE or IISE-gamma of paper 003). "se" ignores the cheaper
        levels, "mfe" explores them as far as they go: baselines for comparison. None: what `bias`
        declares, else "order".
    arm_sampler
        An Optuna sampler that draws the arms; it sees one trial per arm. In a study that is
        resumed, its draws are not those of an uninterrupted one. None: a Latin hypercube.
    radius
        Confidence radius from `mfhpo.knowledge.confidence`. None: the tightest one for the noise.
    measure
        Number of evaluations that the winner gets at the target level, so that its value is known
        there also when cheaper levels decided.
    max_failures
        An arm without any value leaves the race with a warning after so many trials that fail
        (raise, return NaN or infinity, are pruned); one with values, once more than half of its
        trials surely fail. It is not compared then, and nothing is certified if it had led. As in
        any study, an exception ends ``optimize`` unless it
        is caught: ``study.optimize(objective, catch=(Exception,))``.
    pilot_arms, pilot_pulls
        Size of the pilot, which finds out what the race needs and nobody declared: arms, and
        evaluations of each at every level that is evidence.
    estimated_bias
        What a level below the target is good for where no bias is declared.

        - "steer": nothing is estimated, and only values at the target are evidence. `IISESampler`
          and `MFLUCBSampler` evaluate at the target alone then. `MFTopTwoSampler` and
          `MFGradSampler` look once at each configuration at the cheapest level, if its declared
          cost is at most a tenth of the target's, and try the best of them first.
        - "eliminate": a pilot estimates bounds, and configurations leave by them. Those that are
          unlike the pilot's, such as late bloomers, may be lost, and the answer says so.
    lease
        Seconds after which a running trial is not waited for. That its worker is dead then is a
        condition of the claim. None: ten times what the slowest trial so far would have taken at
        its level, and at least a minute; then nothing is certified until the trial ends or is told
        as failed.
    progress
        Whether to write a line of progress to standard error. None: if it is a terminal.
    seed
        Makes arms and pilot repeatable. None: derived from the study's name, so that all workers
        of a study agree.

    Raises
    ------
    ValueError
        For arguments out of range, when the sampler is made or, for what depends on the
        objective's distributions, in the first trial. A multi-objective study raises in its first
        suggestion.

    Notes
    -----
    Several workers, threads or processes, may run one study. A study in a database goes on where
    it stopped, whatever stopped it: run the same code again.

    Values count in the order in which their trials began. If a trial under way is the only reason
    why nothing can be certified yet, workers wait for it, at most until its lease is over. Then the
    study stops without a certificate; if the trial ends later, the answer is brought up to date. A
    worker that has waited ends its trial as pruned, and begins another one.

    Ending ``optimize`` early (``n_trials``, ``timeout``, Ctrl-C) leaves a study without a best
    trial; `recommendation` answers at any time. The value of an uncertified best trial, after a
    budget ran out, is the pessimistic end of its interval (infinite while nothing is certain), so
    that a later answer, with a larger budget, takes its place. If an earlier answer still looks
    better, a warning says so, and `recommendation` has the right one. A trial that was interrupted
    counts as failed.

    Under ``study.ask`` and ``study.tell`` nothing stops by itself: ask until
    ``sampler.recommendation(study).finished``.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return x**2 + 0.2 / epochs + 0.05 * rng.normal()
    >>> sampler = IISESampler("epochs", arms=8, epsilon=0.05, seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective)
    >>> sampler.recommendation(study).certified, abs(study.best_params["x"]) < 0.3
    (True, True)
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: float | Sequence[float] | Noise | None = None,
        bias: Bias | Sequence[float] | None = None,
        budget: float | None = None,
        variant: Variant | None = None,
        arm_sampler: BaseSampler | None = None,
        radius: Radius | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        if variant not in (None, "max", "order", "se", "mfe"):
            raise ValueError(f"variant must be 'max', 'order', 'se' or 'mfe', got {variant!r}.")
        self._variant = variant
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            sigma=sigma,
            bias=bias,
            kind="order" if variant == "order" else "max",
            arm_sampler=arm_sampler,
            lease=lease,
            progress=progress,
            seed=seed,
            options={
                "delta": delta,
                "epsilon": epsilon,
                "radius": radius,
                "budget": budget,
                "measure": measure,
                "max_failures": max_failures,
                "pilot_arms": pilot_arms,
                "pilot_pulls": pilot_pulls,
                "estimated_bias": estimated_bias,
            },
        )

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        if sign < 0.0:
            options = {**options, "radius": mirrored_radius(options["radius"])}
        if self._variant == "se":
            return SuccessiveElimination(problem, **options)
        if self._variant == "mfe":
            return MaximumFidelityExploit(problem, **options)
        return IISE(problem, variant=self._variant, **options)
