"""`IISESearch`: the race for the best configuration, as a searcher of Ray Tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ray.tune.search import Searcher

from mfhpo import IISE, MaximumFidelityExploit, Policy, Problem, Radius, SuccessiveElimination
from mfhpo.identification.best_arm import EstimatedBias
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import BiasLike, SigmaLike, mirrored_radius
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.fidelity_search import FidelitySearch

__all__ = ["IISESearch"]

Variant = Literal["max", "order", "se", "mfe"]


class IISESearch(FidelitySearch):
    """Finds the best of a set of configurations, cheap fidelities first, and certifies it.

    Every trial is one noisy evaluation of one configuration (arm) at one level of the fidelity,
    with a seed of its own. Configurations that cannot be the best any more are not evaluated again;
    the run ends by itself when one is left, or when the leader is within `epsilon` of all others::

        search = IISESearch("epochs", arms=32, metric="accuracy", mode="max", delta=0.05)
        tuner = tune.Tuner(
            train,
            param_space={"lr": tune.loguniform(1e-5, 1e-1), "epochs": tune.randint(1, 82)},
            tune_config=tune.TuneConfig(
                search_alg=search, scheduler=search.scheduler(), num_samples=-1,
                max_concurrent_trials=8,
            ),
        )
        results = tuner.fit()
        print(mfhpo_ray.recommendation(results))

    With probability at least 1 - `delta`, the certified configuration is at most `epsilon` worse
    than the best arm, provided that what was declared is true. Where no bias is declared, only
    values at the target level are evidence. Noise that is not declared is estimated from the first
    trials, and the certificate names it.

    Trials must be noisy in the way that matters: draw a new split and initial state from
    ``config["seed"]`` in each.

    Parameters
    ----------
    fidelity
        The key of the configuration that the search is to set: its name, or a `mfhpo.Fidelity`
        that also declares levels, costs or bias. Levels that are not declared come from the domain
        of that name in the search space: geometric between the bounds of a range (the upper one of
        ``tune.randint`` is excluded, as in Tune), or the categories of a choice in their order.
        Measured costs are ``time_total_s`` of a trial's last result, in seconds. Here and in the
        search space ``"train/epochs"`` is the key ``epochs`` of the dictionary ``train``.
    arms
        The configurations to compare: how many to draw from the search space; or a list of
        configurations. A finite space with fewer configurations is raced whole.
    metric, mode
        The metric, of which a trial's last result counts, and whether to maximise it, "max", or to
        minimise it, "min". None: those of ``TuneConfig``, which reach a search only together with
        a ``param_space``.
    space
        Search space of the arms, in Tune's terms. None: the ``param_space`` of the Tuner, whose
        constants are part of each trial anyway. A ``tune.sample_from`` of the ``param_space`` is
        drawn by Tune anew in each trial; in `space`, it is drawn once for each arm.
    arm_search
        A searcher such as ``OptunaSearch(space, metric=..., mode=...)`` that draws the arms, when
        they are first evaluated. It is told the first value of each. None: independent draws.
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the metric. 0 asks for the very best arm, which may never be
        certain. None: one standard deviation of the noise at the target level.
    sigma
        What is known of the noise: a sub-Gaussian scale, or one for each level, or
        `mfhpo.Bounded` with the bounds of the metric, or `mfhpo.Gaussian`. None: estimated.
    bias
        Bounds on the levels' bias, one for each level and the last one 0: numbers, or
        `mfhpo.Bias`. None: nothing is known of it, and only values at the target are evidence; see
        `estimated_bias`.
    budget
        Largest total cost, in the unit of the fidelity's costs. When it is spent, the run ends
        with the best answer so far, marked as not certified. Trials under way are not counted, nor
        are those that wait for an earlier one to end: n concurrent ones may overspend by n - 1
        trials, and each trial that hangs by ten, or by 3 n.
    prices
        What a second of a trial costs for each unit of a resource that it holds, such as
        ``{"CPU": 1, "GPU": 20}``, where costs are measured; what is not named is free. It needs
        ``scheduler=search.scheduler()``. None: a second costs 1.
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated
        (IISE or IISE-gamma of paper 003). "se" ignores the cheaper levels, "mfe" explores them as
        far as they go: baselines for comparison. None: what `bias` declares; of bounds that are
        estimated, "order".
    radius
        Confidence radius from `mfhpo.knowledge.confidence`. None: the tightest one for the noise.
    measure
        Number of evaluations that the winner gets at the target level, so that its value is known
        there also when cheaper levels decided.
    max_failures
        An arm without any value leaves the race, with a warning, after so many trials that fail
        (raise, report NaN, infinity or no metric, are stopped for their time). One with values
        leaves once more than half of its evaluations at a level surely fail. Before, it is
        evaluated again.
    pilot_arms, pilot_pulls
        Size of the pilot: arms, and evaluations of each at every level.
    estimated_bias
        What a level below the target is good for where no bias is declared. "steer": it is no
        evidence. `IISESearch` and `MFLUCBSearch` evaluate at the target alone. `MFSearch` and
        `MFGradSearch` look once at each configuration at the cheapest level, if its declared cost
        is at most a tenth of the target's, to choose the order at the target. "eliminate": bounds
        are estimated by a pilot, and configurations leave by them; those that are unlike the
        pilot's, such as late bloomers, may be lost, and the answer says so.
    seed_key
        The key of the configuration that gets a seed from 0 to 2**31 - 1, no two trials of a race
        the same. None: no seed is set, and trials have to draw their own.
    seed
        Makes arms, pilot and seeds repeatable. None: drawn, and saved with the experiment.

    Raises
    ------
    ValueError, TypeError
        For arguments out of range, or of another kind; for what depends on the search space, when
        the Tuner hands that over, or in the first suggestion.
    RuntimeError
        In the second suggestion, if `prices` are given without the search's scheduler.

    Notes
    -----
    ``num_samples=-1`` lets the race go on until it is over; a number ends it earlier, and
    `recommendation` answers all the same. Trials that still run at the end are stopped by
    ``search.scheduler()``, and are not part of the answer or its cost; with any other scheduler
    they run to their ends. Schedulers that stop trials early, such as ASHA, falsify the values.

    Evaluations of one configuration at one level count in the order in which they were begun, those
    that fail too. With several workers the quick ones end first, and where they are not like the
    slow ones, their mean would be biased. The race never gives up on a slow one: once ten have
    ended after it, or three for each concurrent trial, no more of that configuration and level are
    begun, and slots may stay free until it ends. A trial that hangs stops the race in this way.
    `recommendation` and a warning in the log name it; the answer is not certified by values that
    wait for it. Give trials a limit, ``search.scheduler(limit=...)``: one that is stopped there
    counts in its turn. A trial whose process or node dies is left out, as is one that is under way
    when the driver dies and that Ray does not run again. That is right if their values had nothing
    to do with it.

    With its scheduler, nothing is lost when the driver dies: ``Tuner.restore(...).fit()`` goes on
    where it stopped. Ray's own results lack trials that were begun after its last snapshot; the
    answer counts them. With another scheduler, what was observed since then, about ten seconds, is
    evaluated again.

    Examples
    --------
    A searcher is a plain object, so that a race needs no cluster to be looked at:

    >>> import numpy as np
    >>> from ray import tune
    >>> from mfhpo_ray import IISESearch
    >>> space = {"x": tune.uniform(-1, 1), "epochs": tune.randint(1, 28)}
    >>> search = IISESearch(
    ...     "epochs", arms=8, metric="loss", mode="min", space=space, epsilon=0.05, seed=0
    ... )
    >>> for number in range(2000):
    ...     config = search.suggest(f"trial_{number}")
    ...     if config == search.FINISHED:
    ...         break
    ...     noise = 0.05 * np.random.default_rng(config["seed"]).normal()
    ...     loss = config["x"] ** 2 + 0.2 / config["epochs"] + noise
    ...     search.on_trial_complete(f"trial_{number}", {"loss": loss})
    >>> answer = search.recommendation()
    >>> answer.certified, abs(answer.config["x"]) < 0.3
    (True, True)
    """

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike = 32,
        *,
        metric: str | None = None,
        mode: str | None = None,
        space: Mapping[str, Any] | None = None,
        arm_search: Searcher | None = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        prices: Mapping[str, float] | None = None,
        variant: Variant | None = None,
        radius: Radius | Sequence[Radius] | None = None,
        measure: int = 10,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        seed_key: str | None = "seed",
        seed: int | None = None,
    ) -> None:
        if variant not in (None, "max", "order", "se", "mfe"):
            raise ValueError(f"variant must be 'max', 'order', 'se' or 'mfe', got {variant!r}.")
        self._variant = variant
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            metric=metric,
            mode=mode,
            space=space,
            arm_search=arm_search,
            sigma=sigma,
            bias=bias,
            kind="order" if variant == "order" else "max",
            prices=prices,
            seed_key=seed_key,
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
