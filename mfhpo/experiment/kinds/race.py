"""A race as a kind of experiment: given configurations are compared until one is certified."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mfhpo._validation import check_baseline, check_limit, check_probability
from mfhpo.certification import choice as policies
from mfhpo.certification.baseline import AgainstBaseline, delta_of_race
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Candidates, Configurations, arm_of_baseline, described
from mfhpo.experiment.events import Found
from mfhpo.experiment.kinds.blind import LateSettings
from mfhpo.experiment.kinds.runner import (
    Runner,
    Settings,
    Wanted,
    is_worst,
    levels_in_words,
    numbered,
    shown_value,
)
from mfhpo.experiment.kinds.search import SearchSettings
from mfhpo.knowledge.bias import Kind as BiasKind
from mfhpo.knowledge.candidates import CandidatesLike
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import EstimatedNoise, SubGaussian
from mfhpo.problem import Labels, Observation, Policy, Problem, Pull
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike, as_fidelity
from mfhpo.racing.options import EstimatedBias
from mfhpo.racing.race import Race
from mfhpo.search.budgeted import BudgetedSearch
from mfhpo.search.declared import DeclaredSearch, cheap_levels_in_words, cost_of_all

MakePolicy = Callable[..., Policy]  # of a problem, with options

_ONE_LEVEL = Fidelity("level", levels=("full evaluation",), costs=(1.0,))
_REPLICATE = "number of the replicate"
_CERTIFY_SHARE = 0.5  # where a search sees one replicate alone


@dataclass(frozen=True, kw_only=True)
class RaceSettings(Settings):
    """A race among given configurations; `of` takes what users declare.

    Parameters
    ----------
    declared, levels
        What its user declares, and the values of the fidelity.
    candidates
        The configurations; equal ones are one arm. Or how many a host draws.
    n_arms
        How many configurations there will be, where some become known when they are begun; None:
        the candidates.
    """

    declared: DeclaredRace
    levels: Sequence[Any]
    candidates: Candidates
    n_arms: int | None = None

    @classmethod
    def of(
        cls,
        candidates: Candidates,
        *,
        fidelity: Fidelity | None = None,
        maximise: bool = True,
        bias: BiasLike = None,
        estimated_bias: EstimatedBias = "steer",
        sigma: SigmaLike = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        budget: float | None = None,
        measure: int = 10,
        max_failures: int = 3,
        seed: int = 0,
        shares_replicates: bool = False,
        make: MakePolicy | None = None,
        baseline: Mapping[str, Any] | int | None = None,
        **others: Any,
    ) -> Settings:
        """Return the settings that suit what is declared about given configurations.

        Parameters
        ----------
        candidates, fidelity, seed
            See `RaceSettings`. A fidelity of None: every evaluation is a full one.
        maximise
            Whether larger values are better.
        bias, estimated_bias, sigma, delta, epsilon, budget, measure, max_failures, baseline
            See `mfhpo.racing.options`.
        shares_replicates
            Whether evaluations may share replicates. They do where nothing is declared.
        make
            Makes the policy, also for finalists. None: what suits the problem, and planned looks.
        **others
            Of `RaceSettings`.
        """
        known, sign = fidelity or _ONE_LEVEL, 1.0 if maximise else -1.0
        check_limit("budget", budget, "")
        options: dict[str, Any] = {"delta": delta, "epsilon": epsilon, "budget": budget}
        options |= {"measure": measure, "max_failures": max_failures}
        options |= {"estimated_bias": estimated_bias, **({} if make else {"aim": "best arm"})}
        declares = bias is not None or sigma is not None or estimated_bias != "steer"
        declared = DeclaredRace(
            Declaration.of(known, sigma, bias),
            options,
            make or policies.make_best_policy,
            replicate=_REPLICATE if shares_replicates and not declares else None,
            compares="" if make is None else "the policy",
            certify_share=_CERTIFY_SHARE,
            baseline=check_baseline(baseline),
        )
        others |= {"seed": seed, "sign": sign}

        def of_levels(levels: Sequence[Any]) -> Settings:
            return declared.settings(candidates, levels, **others)

        if known.levels is None:
            declared.rehearse(())
            return LateSettings(
                fidelity=known.name,
                make=of_levels,
                candidates=candidates,
                in_blocks=declared.replicate is not None,
                **{name: others[name] for name in others.keys() - {"n_arms"}},
            )
        settings = of_levels(known.levels)
        settings.runner()  # raises for wrong options
        return settings

    def runner(self) -> _RaceRunner:
        """Return a race to which nothing was told."""
        return _RaceRunner(self)


class _RaceRunner(Runner):
    """Asks a policy which arm to evaluate at which level, in blocks on the same replicates."""

    policy: Race

    def __init__(self, settings: RaceSettings) -> None:
        self.sign, self.in_blocks = settings.sign, settings.declared.replicate is not None
        self.configurations = Configurations(settings.candidates, settings.describe)
        self._levels, declared = tuple(settings.levels), settings.declared
        self.n_levels = len(self._levels)
        fidelity = replace(declared.fidelity, levels=self._levels, bias=None)
        n_arms = max(len(self.configurations), settings.n_arms or 0)
        problem = declared.declaration.problem(n_arms, self._levels, self.sign)
        options = {**declared.options, "seed": settings.seed}
        baseline = arm_of_baseline(self.configurations, declared.baseline)
        options["delta"] = delta_of_race(check_probability("delta", options["delta"]), baseline)
        policy = declared.policy(problem, **options)
        assert isinstance(policy, Race)
        self.policy = policy
        self._baseline = None if baseline is None else AgainstBaseline(policy, baseline)
        levels = levels_in_words(fidelity, self._levels)
        self.labels = Labels(self.configurations.label, levels, shown_value(self.sign))
        policy.labels = self.labels
        self.of_means = frozenset({"given"})
        self._costs = fidelity.costs_of(self._levels)
        budget = declared.options.get("budget")
        self._budget = math.inf if budget is None else float(budget)
        self.n_arms: int = policy.problem.n_arms
        self._paid: dict[int, tuple[int, float]] = {}  # by level, how many have cost how much
        self._n_worst = 0  # evaluations that gave -inf, of which the policy was not told

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        is_ahead = getattr(self.policy, "is_ahead", None)
        if pending and is_ahead is not None and is_ahead(pending):
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls or (pending and not self.fits(pulls[0], pending)):
            return None
        [pull] = pulls
        known = self.configurations
        configuration = known[pull.arm] if pull.arm < len(known) else None
        return Wanted(pull, configuration, "given", draw=known.draw_of(pull.arm))

    def find(self, found: Found) -> None:
        if found.arms is not None:
            for arm in range(found.arms, self.n_arms):
                if arm in self.policy.active:
                    self.policy.withdraw(arm, duplicate_of=0)
            self.n_arms = found.arms
        if found.is_exhausted:
            self.policy.stop_measuring()

    def open_block(self, arm: int, pending: Sequence[Pull]) -> int | None:
        policy: Any = self.policy
        block: int | None = policy.open_block(arm, pending) if self.in_blocks else None
        return block

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Tell whether a pull fits beside what is open, and what was paid."""
        if math.isinf(self._budget):
            return True
        open_pulls = (Counter(pending) - Counter(self.held)).elements()
        promised = sum(self._price(each.fidelity) for each in [*open_pulls, pull])
        return self.cost + self.unlearned_cost + promised <= self._budget

    def _price(self, level: int) -> float:
        """Return the cost of a level: declared, or the mean of what was paid, 0 at first."""
        if self._costs is not None:
            return self._costs[level]
        n, total = self._paid.get(level, (1, 0.0))
        return total / n

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        if self._costs is None and observation.cost is None and observation.has_value:
            observation = replace(observation, cost=self._price(pull.fidelity))
        elif self._costs is None and observation.cost is not None:
            n, total = self._paid.get(pull.fidelity, (0, 0.0))
            self._paid[pull.fidelity] = n + 1, total + observation.cost
        if is_worst(observation) and pull.fidelity == self.n_levels - 1:
            self._n_worst += 1
            self.apart_cost += self.cost_of(pull, observation)
            self.policy.rule_out(pull.arm)
        else:
            self.policy.tell(pull, observation)
        if self._baseline is not None:
            self._baseline.arm = self.configurations.owner(self._baseline.arm)
            self._baseline.look()

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        return self._price(pull.fidelity) if observation.cost is None else observation.cost

    def charge(self, lost: float, held: float) -> None:
        super().charge(lost, held)
        self.policy.held_cost = self.unlearned_cost + self.apart_cost

    def answer(self) -> Answer:
        self.policy.provisos = self.conditions
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        more: dict[str, Any] = {"certifies": self.policy.certifies}
        more["cost"], more["pulls"] = self.cost + self.unlearned_cost, answer.pulls + self._n_worst
        if self._baseline is not None:
            more["delta"] = self._baseline.delta
            if answer.arm is not None and not math.isnan(answer.mean):
                most = answer.epsilon if answer.certified else None
                params = self.configurations[self._baseline.arm]
                more["baseline"] = self._baseline.compared(answer.arm, most, params)
        return Answer.of(answer, self.sign, configuration, self._levels[answer.fidelity], **more)


@dataclass(frozen=True)
class DeclaredRace:
    """A race in which cheap levels may choose which configurations are compared.

    They do where nothing is declared about their bias, and the budget does not pay for comparing
    all configurations at the target. `compares` names the policy that compares finalists, "" for a
    few planned looks.
    """

    declaration: Declaration
    options: Mapping[str, Any]
    make: MakePolicy
    replicate: str | None
    compares: str
    certify_share: float | None = None
    baseline: Mapping[str, Any] | int | None = None

    @classmethod
    def of(
        cls,
        fidelity: str | Fidelity,
        options: Mapping[str, Any],
        given: Mapping[str, Any],
        make: MakePolicy,
        compares: str,
    ) -> DeclaredRace:
        """Take all options of a policy, and those that its user has `given`."""
        own = dict(options)
        replicate, named = own.pop("replicate", None), as_fidelity(fidelity)
        baseline = check_baseline(own.pop("baseline", None))
        if replicate is not None:
            policies.check_blocks(
                replicate, named.name, {"bias": named.bias, **given, "baseline": None}
            )
        kind: BiasKind = "order" if own.get("variant") == "order" else "max"
        declared = Declaration.of(named, own.pop("sigma"), own.pop("bias", None), kind)
        compares = "" if replicate is not None else compares
        return cls(declared, own, make, replicate, compares, baseline=baseline)

    @property
    def fidelity(self) -> Fidelity:
        """The parameter that sets the level."""
        return self.declaration.fidelity

    def rehearse(self, levels: Sequence[Any]) -> str | None:
        """Try the options, so that wrong ones raise; return what is wrong with the budget."""
        self.declaration.rehearse(self.policy, self.options, levels)
        return self.declaration.objection_to(self.options["budget"], levels)

    def settings(
        self,
        candidates: Candidates,
        levels: Sequence[Any],
        *,
        known: CandidatesLike = None,
        races: bool = False,
        **common: Any,
    ) -> Settings:
        """Return the settings over these levels; with `races`, cheap levels choose no finalists.

        `known` are the candidates as a model sees them; None: as they are.
        """
        arms = Configurations(candidates, common.get("describe", described))
        budget, costs = self.options.get("budget"), self.fidelity.costs_of(levels)
        pays = budget is None or budget >= cost_of_all(self._whole, len(arms), costs)
        if not (races or pays):  # cheap levels choose which configurations are compared
            given = () if isinstance(candidates, int) else candidates
            if known is None:
                known = numbered(arms) if given else candidates
            certifier = partial(self.make, **{**self.options, "budget": None})
            return SearchSettings(
                declared=self.search(known, levels),
                levels=levels,
                candidates=given,
                make_certifier=certifier if self.compares else None,
                **common,
            )
        return RaceSettings(declared=self, levels=levels, candidates=candidates, **common)

    def search(self, candidates: CandidatesLike, levels: Sequence[Any]) -> DeclaredSearch:
        """Return the search in which cheap levels choose the finalists."""
        sigma: SigmaLike = self.declaration.noise
        if isinstance(sigma, SubGaussian):
            sigma = sigma.at(len(levels) - 1, len(levels))
        return DeclaredSearch.of(
            replace(self.fidelity, bias=None),
            replicate=self.replicate,
            candidates=candidates,
            certify_share=self.certify_share,
            baseline=self.baseline,
            sigma=None if isinstance(sigma, EstimatedNoise) else sigma,
            **{name: self.options[name] for name in ("budget", "delta", "epsilon", "max_failures")},
        )

    def in_words(self, n_arms: int, levels: Sequence[Any]) -> str:
        """Say what cheap levels are used for; empty where users have declared that."""
        costs = self.fidelity.costs_of(levels)
        return cheap_levels_in_words(self._whole, n_arms, costs, self.compares)

    def choice(
        self, n_arms: int, levels: Sequence[Any], sign: float, *, searches: bool
    ) -> policies.PolicyChoice:
        """Return which policy suits the race, and why; in one that `searches`, for finalists."""
        if searches:
            return policies.PolicyChoice(BudgetedSearch, self.in_words(n_arms, levels))
        if self.replicate is not None:
            return policies.choose_blocks()
        return policies.recommend_policy(
            self.declaration.problem(n_arms, levels, sign), self.options["aim"]
        )

    def policy(self, problem: Problem, **options: Any) -> Policy:
        """Return the policy that compares configurations."""
        if self.replicate is None:
            return self.make(problem, **options)
        return policies.make_block_elimination(problem, options)

    @property
    def _whole(self) -> dict[str, Any]:
        return {**self.options, "bias": self.declaration.bias, "sigma": self.declaration.noise}
