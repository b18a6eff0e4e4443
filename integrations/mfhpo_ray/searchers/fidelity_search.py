"""Searchers that choose an arm and a level of a fidelity for every trial."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ray.tune.utils import flatten_dict

from mfhpo import Labels, Observation, Policy, Problem, Pull
from mfhpo.certification.certification import MakeCertifier
from mfhpo.certification.choice import check_blocks, make_block_elimination
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike, as_fidelity
from mfhpo.racing.options import with_defaults
from mfhpo.search import BudgetedSearch, Replicate
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    makes_shortlist,
    shortlisting_race,
)
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.losses import with_losses
from mfhpo_ray.experiment.open_pulls import is_spent, with_waiting
from mfhpo_ray.experiment.prices import Prices
from mfhpo_ray.experiment.pulls import Ended, UnderWay, replicate_seed
from mfhpo_ray.experiment.recommendation import TuneRecommendation, TuneSearchRecommendation
from mfhpo_ray.experiment.space import Config, levels_of, replicates_of
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.options import FidelitySearchOptions, SearchOptions
from mfhpo_ray.searchers.policy_search import PolicySearch

if TYPE_CHECKING:
    from typing_extensions import Unpack

_logger = logging.getLogger("mfhpo_ray")

# Seeds differ between so many arms of a `BudgetedSearch`, whose number may grow.
_MOST_ARMS = 1 << 16


class FidelitySearch(PolicySearch[Policy]):
    """Runs a policy that chooses arms and levels of a fidelity.

    Declarations have the unit and direction of the metric, and are mirrored for one that is
    minimised. Options are tried at once, so that wrong ones raise here.
    """

    def __init__(
        self,
        *,
        fidelity: str | Fidelity,
        arms: ArmsLike,
        sigma: SigmaLike,
        bias: BiasLike,
        prices: Mapping[str, float] | None,
        options: Mapping[str, Any],
        kind: Kind = "max",
        replicate: str | None = None,
        **host: Unpack[SearchOptions],
    ) -> None:
        self._declaration = Declaration.of(fidelity, sigma, bias, kind)
        self._fidelity = self._declaration.fidelity
        super().__init__(arms=arms, owned=self._fidelity.name, replicate=replicate, **host)
        self._prices = Prices(prices, self._fidelity.costs)
        self._has_prices = prices is not None
        self._levels = tuple(self._fidelity.levels or ())
        self._options = dict(options)
        self._n_stopped = 0
        signs = (1.0, -1.0) if self._mode is None else (self._sign,)
        self._declaration.rehearse(self._make, self._options, self._levels, signs)
        self._check_budget()

    @abc.abstractmethod
    def _make(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Make the policy; `sign` is -1 for a metric that is minimised: values are mirrored."""

    def recommendation(self) -> TuneRecommendation:
        """Return the best answer so far; ValueError before the race has begun.

        Of a `BudgetedSearch` it is a `TuneSearchRecommendation`.
        """
        return self._answer(self._made_policy())

    # What the base asks.

    def _make_policy(self, n_arms: int, sign: float) -> Policy:
        problem = self._declaration.problem(n_arms, self._levels, sign)
        policy = self._make(problem, sign, self._options | {"seed": self._seed})
        policy.most_blocks = self._most_blocks
        return policy

    @property
    def _most_blocks(self) -> int | None:
        return None if self._replicate is None else len(self._replicates)

    def _settings(self, pull: Pull) -> Any:
        return self._levels[pull.fidelity]

    def _params(self, arm: int) -> Config:
        return dict(self._arms.shown(arm))

    def _wanted_pull(self, policy: Policy, pending: Sequence[Pull]) -> Pull | None:
        if isinstance(policy, BudgetedSearch):
            pull = super()._wanted_pull(policy, pending)
            # With nothing under way that may change it, that is the end.
            self._over = self._over or (pull is None and not pending)
            return pull
        held = self._open.held
        if held and is_spent(policy, sum(map(self._cost_of, held))):
            return None
        return super()._wanted_pull(policy, pending)

    def _seed_of(self, pull: Pull, replicate: int) -> int:
        if not isinstance(self._policy, BudgetedSearch):
            return super()._seed_of(pull, replicate)
        # Replicates for the certificate are numbered apart from the search's evaluations.
        n_levels = len(self._levels)
        fidelity = n_levels if isinstance(pull, Replicate) else pull.fidelity
        return replicate_seed(
            self._seed, pull.arm, fidelity, replicate, n_arms=_MOST_ARMS, n_fidelities=n_levels + 1
        )

    def _is_of_a_mean(self, pull: Pull) -> bool:
        return isinstance(pull, Replicate) or not isinstance(self._policy, BudgetedSearch)

    def _cost_of(self, ended: Ended) -> float:
        costs = self._fidelity.costs_of(self._levels)
        declared = 0.0 if costs is None else costs[ended.pull.fidelity]
        return declared if ended.observation.cost is None else ended.observation.cost

    def _observed(
        self, trial_id: str, begun: UnderWay, value: float | None, seconds: float, stopped_at: Any
    ) -> Observation:
        cost = None
        if self._fidelity.costs == "measured":
            cost = (seconds + begun.owed) * self._prices.of(begun.resources or {})
        if stopped_at is not None:
            return Observation(None, cost, float(stopped_at))
        return Observation(value, cost)

    def _answer(self, policy: Policy) -> TuneRecommendation:
        answer = policy.recommend()
        params = {} if answer.arm is None else self._params(answer.arm)
        certifies = policy.certifies
        level = self._levels[answer.fidelity]
        if self._n_stopped:
            assumption = (
                f"trials that end in time: {self._n_stopped} were stopped at a time limit, and "
                f"means are those of the others"
            )
            answer = replace(answer, assumptions=(*answer.assumptions, assumption))
        answer = with_losses(answer, self._n_lost)
        answer = with_waiting(answer, self._open.waited_for, self._labels())
        found = TuneRecommendation.of(answer, self._sign, params, level, certifies)
        return _with_findings(policy, found) if isinstance(policy, BudgetedSearch) else found

    def _tell(self, policy: Policy, ended: Ended) -> None:
        is_stopped = ended.observation.censored_at is not None
        self._n_stopped += is_stopped and self._is_of_a_mean(ended.pull)
        super()._tell(policy, ended)

    def _look_up_levels(self, space: Mapping[str, Any]) -> None:
        levels = levels_of(self._fidelity, space)
        self._fidelity.costs_of(levels)  # raises where costs are left to levels that are no numbers
        self._levels = levels
        self._look_up_replicates(space)
        self._check_budget()

    def _look_up_replicates(self, space: Mapping[str, Any]) -> None:
        if self._replicate is not None:
            self._replicates = replicates_of(self._replicate, space)

    def _while_drawing(self) -> Any:
        return self._levels[-1]

    def _labels(self) -> Labels:
        name = self._fidelity.name
        return replace(super()._labels(), fidelity=lambda m: f"{name}={self._levels[m]!r}")

    def _details(self) -> dict[str, Any]:
        return {
            "levels": encode(self._levels),
            "declared": self._declared_of_levels,
            "replicates": encode(self._replicates),
            "stopped": self._n_stopped,
        }

    @property
    def _declared_of_levels(self) -> str:
        return f"{self._fidelity.costs_of(self._levels)} and {self._declaration.bias}"

    def _load_details(self, state: Mapping[str, Any]) -> None:
        levels = tuple(decode(state["levels"]))
        if self._fidelity.levels is not None and levels != tuple(self._fidelity.levels):
            raise ValueError(
                f"levels of the fidelity {self._fidelity.name!r} are {list(self._fidelity.levels)},"
                f" but {list(levels)} in the saved race; restore it with those."
            )
        self._levels = levels
        if state["declared"] != self._declared_of_levels:
            raise ValueError(
                f"costs and bias are {self._declared_of_levels}, but {state['declared']} in the "
                f"saved race; restore it with those."
            )
        self._replicates = decode(state["replicates"])
        self._n_stopped = int(state["stopped"])

    def _check_companion(self) -> None:
        if self._has_prices and not self._has_companion:
            raise RuntimeError(
                "prices=... need to know which resources a trial holds, which only the search's "
                "own scheduler tells: TuneConfig(search_alg=search, scheduler=search.scheduler())."
            )

    def _check_budget(self) -> None:
        """Warn once of a budget that pays for nothing, if the levels tell."""
        objection = self._declaration.objection_to(self._options["budget"], self._levels)
        if objection is not None:
            self._warn_once("budget", objection, stacklevel=5)


def _with_findings(race: BudgetedSearch, answer: TuneRecommendation) -> TuneSearchRecommendation:
    """Return an answer with what a search says beyond it."""
    found = race.findings()
    if found["certificate"] is not None:  # whose text is shown
        found["certificate"] = replace(
            found["certificate"],
            reason=answer.reason,
            assumptions=answer.assumptions,
            conditions=answer.conditions,
        )
    return TuneSearchRecommendation(**vars(answer), **found)


class DeclaredSearch(FidelitySearch):
    """Runs the policy that `mfhpo.racing.options.runs` names.

    Where cheaper levels have no declared bias, a budget may not pay for comparing all arms at the
    target. Then it runs a `BudgetedSearch`, and the policy compares the finalists.

    Parameters
    ----------
    fidelity
        The key of the configuration that the search is to set: its name, or a `mfhpo.Fidelity`
        that also declares levels, costs or bias. Else levels come from the search space: geometric
        ones of a range, or the categories of a choice in their order. Measured costs are
        ``time_total_s`` of a trial's last result. Here and in the search space ``"train/epochs"``
        is the key ``epochs`` of the dictionary ``train``.
    arms
        The configurations to compare: how many to draw from the search space; or a list of
        configurations. A finite space with fewer configurations is raced whole.
    """

    _policy_class: Callable[..., Policy]
    _options_type: type
    _defaults: dict[str, Any]
    _announced = False  # whether the log has what cheap levels are used for

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike, options: Mapping[str, Any]
    ) -> None:
        own = with_defaults(type(self), options)
        host = {name: own.pop(name) for name in FidelitySearchOptions.__annotations__}
        replicate = own.pop("replicate", None)
        if replicate is not None:
            declared = as_fidelity(fidelity)
            given = {name: options[name] for name in options.keys() - host.keys()}
            check_blocks(replicate, declared.name, {"bias": declared.bias} | given)
        super().__init__(
            fidelity=fidelity,
            arms=arms,
            sigma=own.pop("sigma"),
            bias=own.pop("bias"),
            kind="order" if own.get("variant") == "order" else "max",
            options=own,
            replicate=replicate,
            **host,
        )

    def _make_policy(self, n_arms: int, sign: float) -> Policy:
        words = self._on_cheap_levels(n_arms)
        if words and not self._announced:
            self._announced = True
            _logger.info("%s: %s.", type(self).__name__, words)
        return super()._make_policy(n_arms, sign)

    def _make(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        if self._makes_shortlist(problem.n_arms):
            return shortlisting_race(
                self._declaration,
                self._options,
                self._described_arms(),
                self._levels,
                seed=options["seed"],
                sign=sign,
                params=self._params,
                replicate=self._replicate,
                certifier=self._certifier(sign),
            )
        if self._replicate is None:
            return self._policy_for(problem, sign, options)
        return make_block_elimination(problem, options)

    def _makes_shortlist(self, n_arms: int) -> bool:
        costs = self._fidelity.costs_of(self._levels)
        return makes_shortlist(self._with_bias, n_arms, costs)

    def _on_cheap_levels(self, n_arms: int) -> str:
        """Return what cheap levels are used for, in words; empty where users have declared that."""
        looks = self._replicate is not None or self._certifier(1.0) is None
        certifier = "" if looks else self._policy_class.__name__
        costs = self._fidelity.costs_of(self._levels)
        return cheap_levels_in_words(self._with_bias, n_arms, costs, certifier)

    @property
    def _with_bias(self) -> dict[str, Any]:
        return {**self._options, "bias": self._declaration.bias, "sigma": self._declaration.noise}

    def _described_arms(self) -> list[Config]:
        """Return what a model may learn from: the arms' scalars by key, or nothing but names."""
        arms = [flatten_dict(self._arms.config(arm)) for arm in range(len(self._arms))]
        values = [native(value) for arm in arms for value in arm.values()]
        if all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
            return arms
        name = "/".join(["arm", *self._keys])  # unlike any key that the search sets
        return [{name: str(arm)} for arm in range(len(arms))]

    def _certifier(self, sign: float) -> MakeCertifier | None:
        """Return what makes the policy that compares finalists; None for a few planned looks."""
        return certifier_of(self._policy_for, self._options, sign)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        return self._policy_class(problem, **options)
