"""`IISEScheduler`: IISE over trials that report progress, pause at levels, and go on later."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ray.tune.search import Repeater
from ray.tune.utils import flatten_dict

from mfhpo import IISE
from mfhpo._validation import check_count, check_name
from mfhpo.certification.choice import make_elimination
from mfhpo.experiment import RaceSettings, SearchSettings
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import EstimatedNoise
from mfhpo.racing.declaration import Declaration
from mfhpo.racing.options import IISEOptions, runs, with_defaults
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.recommendation import TuneRecommendation
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler
from mfhpo_ray.schedulers.levels import Meter, levels_of
from mfhpo_ray.schedulers.promotion import Promotion
from mfhpo_ray.schedulers.room import searchers_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@runs(IISE, IISEOptions, epsilon=None, measure=None)
class IISEScheduler(ArmScheduler[TuneRecommendation]):
    """Races configurations over replicates, short runs first, and certifies the best.

    A trial is one replicate of an arm: the arm is the configuration without the replicate's key.
    Trials run to a level of `time_attr` and pause there; `mfhpo.IISE` decides which one to start,
    to resume or to stop. When an arm leaves the race, its running trials are stopped. Those that
    wait stay until the end, in case that values contradict the declared bias. The race ends when
    one arm is left, the leader is within `epsilon` of all others, or no replicates are left. What
    `recommendation` guarantees is what `IISESearch` does.

    Parameters
    ----------
    time_attr
        What the levels are of, in every result: a number that grows while a trial trains.
    max_t
        The time at which a trial is complete; the levels are then geometric. None: 100, as for
        Ray's ASHA, if no `levels` are given.
    grace_period
        The least level that is made from `max_t`. None: 1.
    reduction_factor
        How many times longer each level made from `max_t` is than the one before. None: 3.
    levels
        The levels themselves, increasing, the last one complete, in place of `max_t`.
    costs
        Cost of a trial up to each level; "measured" for seconds; None for proportional to the
        level. A trial that goes on from a checkpoint is charged with the increment.
    prices
        See `mfhpo_ray.searchers.options.FidelitySearchOptions`. No other scheduler is needed.
    seed
        Of the pilot.
    **options
        See `mfhpo.racing.options.IISEOptions`. A level is a fidelity there, and a
        replicate's value an evaluation. Without `measure`, the winner gets ten values at the last
        level, or as many as each arm has.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments; when the trials are known, if an arm has too few replicates to estimate
        what was not declared.

    Notes
    -----
    Each configuration needs replicates: ``{"seed": tune.grid_search(list(range(20)))}`` gives it
    twenty. Where the noise is estimated, the certificate needs 17 values of the winner (at
    ``delta=0.05``). Trials that save checkpoints go on where they paused. The others begin anew at
    each level, which costs more, and is counted. A cluster that grows on demand is not asked to.

    Values of an arm at a level count in the order in which its trials were sent there, as in
    `IISESearch`. After a crash of the driver, ``Tuner.restore`` goes on with everything observed.

    Examples
    --------
    ``constant_grid_search`` keeps a sampled configuration for all seeds of the grid::

        tune_config = tune.TuneConfig(
            metric="accuracy", mode="max", num_samples=20, scheduler=IISEScheduler(max_t=81),
            search_alg=BasicVariantGenerator(constant_grid_search=True),
        )
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        max_t: int | None = None,
        *,
        grace_period: int | None = None,
        reduction_factor: float | None = None,
        levels: Sequence[float] | None = None,
        costs: Sequence[float] | Literal["measured"] | None = None,
        prices: Mapping[str, float] | None = None,
        replicate: str | Collection[str] = "seed",
        arms: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        limit: float | None = None,
        memory_limit: float | None = None,
        seed: int = 0,
        **options: Unpack[IISEOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(
            metric=metric,
            mode=mode,
            replicate=replicate,
            arms=arms,
            limit=limit,
            memory_limit=memory_limit,
        )
        given = levels_of(levels, max_t, grace_period, reduction_factor)
        check_name("time_attr", time_attr, "the key of a result")
        self._fidelity = Fidelity(time_attr, given, costs)
        self._meter = Meter(self._fidelity, prices)
        self._levels: tuple[Any, ...] = tuple(self._fidelity.levels or ())
        kind: Kind = "order" if own["variant"] == "order" else "max"
        self._declaration = Declaration.of(self._fidelity, own.pop("sigma"), own.pop("bias"), kind)
        if own["measure"] is not None:
            check_count("measure", own["measure"], 1)
        self._options = {**own, "seed": seed}
        self._settings_for([], 2, None).runner()  # raises for what is wrong before any trial runs

    def _settings_for(
        self, candidates: Sequence[Mapping[str, Any]], n_arms: int, replicates: int | None
    ) -> RaceSettings:
        options = dict(self._options)
        if options["measure"] is None:
            options["measure"] = 10 if replicates is None else min(10, replicates)
        return RaceSettings(
            candidates=candidates,
            fidelity=self._fidelity,
            declaration=self._declaration,
            options=options,
            make=make_elimination,
            n_arms=n_arms,
            sign=self._sign,
            describe=described,
        )

    def _undeclared(self) -> list[str]:
        """Return the names of what has to be estimated from replicates."""
        needs_bias = self._options["variant"] not in ("se", "mfe")
        missing = {
            "sigma": isinstance(self._declaration.noise, EstimatedNoise),
            "bias": needs_bias and self._declaration.bias is None,
        }
        return [name for name, is_missing in missing.items() if is_missing]

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

    def _warn_if_not_repeated(self, search: Any) -> None:
        names = self._undeclared()
        if not names or search.is_finished():
            return
        first = next(iter(self._runs), None)
        config = flatten_dict(first.trial.config) if first else {}
        repeater = any(isinstance(each, Repeater) for each in searchers_of(search))
        if first is not None and config.keys().isdisjoint(self._replicate_keys) and not repeater:
            warnings.warn(
                f"{' and '.join(names)} will be estimated from replicates, but nothing seems to "
                f"repeat what the search algorithm suggests; wrap it in "
                f"ray.tune.search.Repeater(..., repeat=20), or declare {'=..., '.join(names)}=...",
                stacklevel=2,
            )

    # What `ArmScheduler` asks.

    def _settings(
        self, candidates: Sequence[Mapping[str, Any]], n_arms: int, search: Any
    ) -> RaceSettings | SearchSettings:
        self._warn_if_not_repeated(search)
        if len(candidates) < n_arms:
            return self._settings_for(candidates, n_arms, None)
        replicates = list(filter(None, self._runs.n_replicates[:n_arms]))
        if n_arms > 1 and max(replicates) == 1 and "bias" in self._undeclared():
            self._promotion = Promotion(
                self._runs,
                self._add_trial,
                self._replicate_keys,
                self._fidelity,
                self._declaration.noise,
                **self._options,
            )
            return self._promotion.settings(candidates, self._sign)
        self._check_replicates(n_arms, min(replicates))
        return self._settings_for(candidates, n_arms, min(replicates))

    def _on_complete_search(self) -> None:
        super()._on_complete_search()
        if self._promotion is not None:
            return
        runner: Any = self._experiment.runner
        active = runner.policy.active.tolist()
        if runner.policy.piloting and active and not self._closed:
            numbers = self._runs.n_replicates
            self._check_replicates(len(active), min(numbers[arm] for arm in active))
