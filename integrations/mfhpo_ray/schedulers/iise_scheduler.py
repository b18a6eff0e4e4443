"""`IISEScheduler`: IISE over trials that report their progress."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ray.tune.search import Repeater
from ray.tune.utils import flatten_dict

from mfhpo import IISE, MaximumFidelityExploit, SuccessiveElimination
from mfhpo._validation import check_count
from mfhpo.identification.best_arm import BestArmPolicy, EstimatedBias
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import EstimatedNoise
from mfhpo.racing.declaration import (
    BiasLike,
    Declaration,
    SigmaLike,
    check_options,
    mirrored_radius,
)
from mfhpo_ray.schedulers.level_scheduler import LevelScheduler, levels_of

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

__all__ = ["IISEScheduler"]

_VARIANTS = (None, "max", "order", "se", "mfe")


class IISEScheduler(LevelScheduler):
    """Races configurations over replicates, short runs first, and certifies the best.

    A trial is one replicate of an arm: the arm is the configuration without the replicate's key.
    Trials run to a level of `time_attr`, pause there, and go on only if their arm is still in the
    race and more of it is wanted: IISE (paper 003) decides which trial to start, to resume or to
    stop. When an arm cannot be the best any more, its trials that run are stopped at once, and
    those that wait do not go on; they wait until the race ends, for the case that values contradict
    the bounds on the bias and the arm is put back. The race ends when one arm is left, or the
    leader is within `epsilon` of all others, or no replicates are left to tell; what the answer
    is, and how sure it is, says `recommendation`.

    With probability at least 1 - `delta`, the certified arm is at most `epsilon` worse than the
    best one, provided that what was declared is true. Where no bias is declared, only values at the
    last level are evidence. Noise that is not declared is estimated from the first trials, and the
    certificate names it.

    Parameters
    ----------
    time_attr
        What the levels are of, in every result: a number that grows while a trial trains.
    max_t
        The time at which a trial is complete; the levels are then geometric.
    grace_period
        Least level that is made from `max_t`.
    reduction_factor
        How many times longer a level is than the one before.
    levels
        The levels themselves, increasing, in place of `max_t`.
    costs
        Cost of a trial up to each level; "measured" for seconds; None for proportional to the
        level. A trial that goes on from a checkpoint is charged with the increment.
    prices
        With measured costs, what a second of each resource that a trial holds costs, such as
        ``{"CPU": 1, "GPU": 20}``; None: a second costs 1.
    replicate
        The keys of the configuration in which the replicates of an arm differ, "a/b" for nested
        ones.
    arms
        Number of arms, where a search algorithm suggests them one at a time; None: its number of
        samples. The search ends with the first suggestion beyond them. Not needed with random
        search and grids.
    metric, mode
        What to optimise, "max" or "min"; None: as ``TuneConfig`` says.
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the metric; None: one standard deviation of its noise at the last
        level.
    sigma
        What is known of the noise among replicates: a sub-Gaussian scale, or one for each level,
        or `mfhpo.Bounded` with the bounds of the metric, or `mfhpo.Gaussian`. None: estimated,
        from at least `pilot_pulls` replicates.
    bias
        Bounds on how far a level's mean may be from the last one's, one for each level and the
        last one 0: numbers, or `mfhpo.Bias`. None: nothing is known of it, and only values at the
        last level are evidence; see `estimated_bias`.
    budget
        Largest total cost, in the unit of the costs.
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated. "se"
        ignores the cheaper levels, "mfe" explores them as far as they go. None: what `bias`
        declares; of bounds that are estimated, "order".
    radius
        Confidence radius from `mfhpo.knowledge.confidence`. None: the tightest one for the noise.
    measure
        Number of replicates of the winner that are run to the last level; None: ten, or as many
        as each arm has.
    max_failures
        An arm without any value leaves after so many of its trials crashed or gave no number. One
        with values leaves once more than half of its trials surely fail at a level. A trial that
        Ray tries again (``FailureConfig``, or ``Tuner.restore(resume_errored=True)``) counts when
        Ray gives it up.
    limit
        Seconds that a trial may run from one start or resumption on; one that is stopped there,
        also if it hangs, counts as one that crashed. None: without limit, so that a trial which
        hangs holds its slot, and the race, for ever.
    pilot_arms, pilot_pulls
        Size of the pilot: arms, and replicates of each.
    estimated_bias
        What a level below the last one is good for where no bias is declared. "steer": it is no
        evidence, and trials are run to the last level at once. "eliminate": bounds are estimated by
        a pilot, which runs `pilot_pulls` replicates of some arms to their end, and configurations
        leave by them; those that are unlike the pilot's, such as late bloomers, may be lost, and
        the answer says so.
    seed
        Chooses the pilot's arms.

    Raises
    ------
    ValueError
        For arguments out of range; when the trials are known, if an arm has too few replicates to
        estimate what was not declared. Where a search algorithm suggests them, that is known when
        it has ended; it warns before, if nothing seems to repeat its suggestions.
    TypeError
        For arguments of another kind.

    Notes
    -----
    Replicates are what an answer is made of: ``{"seed": tune.grid_search(list(range(20)))}`` gives
    each configuration twenty. Where the noise is estimated, nothing is certified before the winner
    has 17 values (at ``delta=0.05``). Where `sigma` is declared, it is audited by some 8 repeats
    at each level that has values. Give none and there is no telling luck from quality.

    Trials that save checkpoints go on where they paused. Those that do not begin anew at each
    level, which costs more, and is counted.

    No more trials are started than the cluster has room for: one that grows on demand is not asked
    to, so begin with the nodes that you want.

    Values of an arm at a level count in the order in which its trials were sent there, those that
    fail too. A trial that ends before an earlier one pauses until that one is there; without a
    checkpoint it then begins anew. The race never gives up on a slow trial: once ten wait for it,
    or three for each busy trial, no more of that arm are sent to that level. `recommendation` names
    the trial that is waited for. A trial whose process dies, and that Ray does not run again, is
    left out, which is right if its value had nothing to do with that.

    Everything observed is written to the experiment's storage at once: after a crash of the
    driver, ``Tuner.restore`` goes on with all of it. Trials that others waited for keep their
    places if Ray runs them again.

    Examples
    --------
    >>> from mfhpo_ray import IISEScheduler
    >>> scheduler = IISEScheduler(max_t=81, metric="accuracy", mode="max", delta=0.05)

    and, with a function ``train`` that reports ``accuracy`` after every epoch::

        tuner = tune.Tuner(
            train,
            param_space={
                "lr": tune.loguniform(1e-4, 1e-1),
                "seed": tune.grid_search(list(range(20))),
            },
            tune_config=tune.TuneConfig(
                num_samples=20,
                scheduler=scheduler,
                search_alg=BasicVariantGenerator(constant_grid_search=True),
            ),
        )
        print(mfhpo_ray.recommendation(tuner.fit()))

    ``constant_grid_search`` keeps a sampled configuration for all seeds of the grid; without it
    every trial would be an arm of its own.
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        max_t: int | None = None,
        *,
        grace_period: int = 1,
        reduction_factor: float = 3,
        levels: Sequence[float] | None = None,
        costs: Sequence[float] | Literal["measured"] | None = None,
        prices: Mapping[str, float] | None = None,
        replicate: str | Collection[str] = "seed",
        arms: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        bias: BiasLike = None,
        budget: float | None = None,
        variant: Literal["max", "order", "se", "mfe"] | None = None,
        radius: Radius | None = None,
        measure: int | None = None,
        max_failures: int = 3,
        limit: float | None = None,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        estimated_bias: EstimatedBias = "steer",
        seed: int = 0,
    ) -> None:
        if variant not in _VARIANTS:
            raise ValueError(f"variant must be 'max', 'order', 'se' or 'mfe', got {variant!r}.")
        fidelity = Fidelity(
            time_attr, levels_of(levels, max_t, grace_period, reduction_factor), costs
        )
        super().__init__(
            fidelity,
            prices=prices,
            metric=metric,
            mode=mode,
            replicate=replicate,
            arms=arms,
            limit=limit,
        )
        self._variant = variant
        kind: Kind = "order" if variant == "order" else "max"
        self._declaration = Declaration.of(fidelity, sigma, bias, kind)
        self._measure = None if measure is None else check_count("measure", measure, 1)
        self._radius = radius
        self._options: dict[str, Any] = {
            "delta": delta,
            "epsilon": epsilon,
            "budget": budget,
            "max_failures": max_failures,
            "pilot_arms": pilot_arms,
            "pilot_pulls": pilot_pulls,
            "estimated_bias": estimated_bias,
            "seed": seed,
        }
        check_options(self._options)
        self._make_policy(2, None)  # raises for what is wrong before any trial runs

    def _make_policy(self, n_arms: int, replicates: int | None) -> BestArmPolicy:
        if replicates is not None:
            self._check_replicates(n_arms, replicates)
        problem = self._declaration.problem(n_arms, self._levels, self._sign)
        measure = self._measure
        if measure is None:
            measure = 10 if replicates is None else min(10, replicates)
        options = {
            **self._options,
            "measure": measure,
            "radius": self._radius if self._sign > 0.0 else mirrored_radius(self._radius),
        }
        if self._variant == "se":
            return SuccessiveElimination(problem, **options)
        if self._variant == "mfe":
            return MaximumFidelityExploit(problem, **options)
        return IISE(problem, variant=self._variant, **options)

    def _open_if_ready(self, tune_controller: TuneController) -> bool:
        is_open = super()._open_if_ready(tune_controller)
        search = tune_controller.search_alg
        names = self._undeclared()
        if is_open and names and not search.is_finished() and not self._are_repeated(search):
            warnings.warn(
                f"{' and '.join(names)} will be estimated from replicates, but nothing seems to "
                f"repeat what the search algorithm suggests; wrap it in "
                f"ray.tune.search.Repeater(..., repeat=20), or declare {'=..., '.join(names)}=...",
                stacklevel=2,
            )
        return is_open

    def _all_are_there(self) -> None:
        super()._all_are_there()
        if self._policy is not None and self._policy.piloting and not self._closed:
            numbers = Counter(run.arm for run in self._runs)
            fewest = min((numbers[arm] for arm in self._active), default=None)
            if fewest is not None:
                self._check_replicates(len(self._active), fewest)

    def _undeclared(self) -> list[str]:
        """What has to be estimated from replicates."""
        needs_bias = self._variant not in ("se", "mfe")
        missing = {
            "sigma": isinstance(self._declaration.noise, EstimatedNoise),
            "bias": needs_bias and self._declaration.bias is None,
        }
        return [name for name, is_missing in missing.items() if is_missing]

    def _are_repeated(self, search: Any) -> bool:
        """Whether a search algorithm seems to suggest replicates."""
        first = next(iter(self._runs), None)
        if first is None or not flatten_dict(first.trial.config).keys().isdisjoint(
            self._replicate_keys
        ):
            return True
        searcher = getattr(search, "searcher", None)
        while searcher is not None and not isinstance(searcher, Repeater):
            searcher = getattr(searcher, "searcher", None)
        return searcher is not None

    def _check_replicates(self, n_arms: int, replicates: int) -> None:
        needed = self._options["pilot_pulls"]
        names = self._undeclared()
        if names and replicates < needed:
            key = self._replicate_keys[0]
            raise ValueError(
                f"{' and '.join(names)} cannot be estimated: some of the {n_arms} configurations "
                f"have only {replicates} replicate{'s' if replicates > 1 else ''}, and "
                f"pilot_pulls={needed} are needed. Give {key!r}: tune.grid_search(list(range(20))) "
                f"in param_space, with search_alg=BasicVariantGenerator("
                f"constant_grid_search=True), or wrap a search algorithm in "
                f"ray.tune.search.Repeater(..., repeat=20); or declare {'=..., '.join(names)}=..."
            )
