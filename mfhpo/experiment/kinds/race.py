"""A race as a kind of experiment: given configurations are compared until one is certified."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mfhpo._validation import check_limit
from mfhpo.certification.choice import make_best_policy, make_block_elimination
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import described
from mfhpo.experiment.events import Begun, Found
from mfhpo.experiment.kinds.blind import LateSettings
from mfhpo.experiment.kinds.runner import Runner, Wanted, is_worst, maximised, pull_of
from mfhpo.experiment.kinds.search import SearchSettings
from mfhpo.experiment.kinds.settings import Candidates, Settings, known_of, labels_of, numbered
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Observation, Policy, Problem, Pull
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike
from mfhpo.racing.options import EstimatedBias
from mfhpo.racing.race import Race
from mfhpo.search.declared import DeclaredSearch, certifier_of, makes_shortlist

MakePolicy = Callable[[Problem, float, Mapping[str, Any]], Policy]

_ONE_LEVEL = Fidelity("level", levels=("full evaluation",), costs=(1.0,))
_REPLICATE = "number of the replicate"
_CERTIFY_SHARE = 0.5  # where a search sees one replicate alone


@dataclass(frozen=True, kw_only=True)
class RaceSettings(Settings):
    """A race among given configurations; `of` takes what users declare.

    Parameters
    ----------
    candidates
        The configurations; equal ones are one arm. Or how many a host draws.
    fidelity
        The parameter that sets what an evaluation costs, with its levels.
    declaration
        What is known about it, the bias and the noise.
    options
        Options of the policy.
    make
        Makes the policy.
    in_blocks
        Whether evaluations share replicates.
    n_arms
        How many configurations there will be, where some become known when they are begun; None:
        the candidates.
    """

    candidates: Candidates
    fidelity: Fidelity
    declaration: Declaration
    options: Mapping[str, Any]
    make: MakePolicy
    in_blocks: bool = False
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
        **others: Any,
    ) -> RaceSettings | SearchSettings | LateSettings:
        """Return the settings that suit what is declared about given configurations.

        Where nothing is declared about cheap levels, and the budget does not pay for comparing all
        configurations at the target, cheap levels choose finalists: that is a search. Where the
        levels are not known, they tell later whether it is.

        Parameters
        ----------
        candidates, fidelity, seed
            See `RaceSettings`. A fidelity of None: every evaluation is a full one.
        maximise
            Whether larger values are better.
        bias, estimated_bias, sigma, delta, epsilon, budget, measure, max_failures
            See `mfhpo.racing.options.BestArmOptions`.
        shares_replicates
            Whether evaluations may share replicates. They do where nothing is declared.
        make
            Makes the policy where levels are evidence, and for finalists. None: the one that suits
            the problem, and planned looks.
        **others
            Of `RaceSettings`.
        """
        known = _ONE_LEVEL if fidelity is None else fidelity
        levels, sign = tuple(known.levels or ()), 1.0 if maximise else -1.0
        check_limit("budget", budget, "")
        declaration = Declaration.of(known, sigma, bias)
        steers = estimated_bias == "steer"
        in_blocks = shares_replicates and bias is None and sigma is None and steers
        options: dict[str, Any] = {
            "delta": delta,
            "epsilon": epsilon,
            "budget": budget,
            "measure": measure,
            "max_failures": max_failures,
            "seed": seed,
        }
        whole = {**options, "bias": bias, "estimated_bias": estimated_bias}
        policy = _in_blocks if in_blocks else make or _best_arm
        options |= {} if in_blocks else {"estimated_bias": estimated_bias}
        if known.levels is None:
            declaration.rehearse(policy, options, (), (sign,))

            def of_levels(levels: tuple[Any, ...]) -> RaceSettings | SearchSettings | LateSettings:
                return cls.of(
                    candidates,
                    fidelity=replace(known, levels=levels),
                    maximise=maximise,
                    sigma=sigma,
                    shares_replicates=shares_replicates,
                    make=make,
                    **whole,
                    **others,
                )

            return LateSettings(
                fidelity=known.name,
                make=of_levels,
                candidates=candidates,
                in_blocks=in_blocks,
                seed=seed,
                sign=sign,
                **{name: others[name] for name in others.keys() - {"n_arms"}},
            )
        arms = known_of(candidates, others.get("describe", described))
        if makes_shortlist(whole, len(arms), known.costs_of(levels)):
            declared = DeclaredSearch.of(
                fidelity,
                budget=budget,
                replicate=_REPLICATE if shares_replicates and sigma is None else None,
                certify_share=_CERTIFY_SHARE,
                delta=delta,
                epsilon=epsilon,
                sigma=sigma,
                max_failures=max_failures,
                candidates=candidates if isinstance(candidates, int) else numbered(arms),
            )
            return SearchSettings(
                declared=declared,
                levels=levels,
                candidates=() if isinstance(candidates, int) else candidates,
                seed=seed,
                make_certifier=None if make is None else certifier_of(make, {}, sign),
                sign=sign,
                **others,
            )
        settings = cls(
            candidates=candidates,
            fidelity=known,
            declaration=declaration,
            options=options,
            make=policy,
            in_blocks=in_blocks,
            seed=seed,
            sign=sign,
            **others,
        )
        settings.runner()  # raises for wrong options
        return settings

    def runner(self) -> RaceRunner:
        """Return a race to which nothing was told."""
        return RaceRunner(self)


class RaceRunner(Runner):
    """Asks a policy which arm to evaluate at which level.

    A policy in blocks compares configurations on the same replicates. One without takes
    evaluations as independent, so each has a replicate of its own.
    """

    policy: Race

    def __init__(self, settings: RaceSettings) -> None:
        fidelity, budget = settings.fidelity, settings.options.get("budget")
        self.sign, self._in_blocks = settings.sign, settings.in_blocks
        self.configurations = known_of(settings.candidates, settings.describe)
        self._levels = tuple(fidelity.levels or ())
        self.n_levels = len(self._levels)
        n_arms = max(len(self.configurations), settings.n_arms or 0)
        problem = settings.declaration.problem(n_arms, self._levels, self.sign)
        policy = settings.make(problem, self.sign, settings.options)
        assert isinstance(policy, Race)
        self.policy = policy
        self.labels = policy.labels = labels_of(
            self.configurations, self.sign, fidelity, self._levels
        )
        self.of_means = frozenset({"given"})
        self.ordered = frozenset() if self._in_blocks else self.of_means
        self.open_block = getattr(policy, "open_block", None) if self._in_blocks else None
        self._costs = fidelity.costs_of(self._levels)
        self._budget = math.inf if budget is None else float(budget)
        self.observe = partial(maximised, sign=self.sign)
        self.find = self._find
        self.n_arms: int = policy.problem.n_arms
        self.withdraw = policy.withdraw
        self._paid: dict[int, tuple[int, float]] = {}  # by level, how many have cost how much
        self._n_worst = 0  # evaluations that gave -inf, of which the policy was not told

    @property
    def finished(self) -> bool:
        """True if the race is over (see `Runner.finished`)."""
        self.policy.held_cost = self.unlearned_cost + self.apart_cost
        return self.policy.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`): only what fits beside what is open."""
        is_ahead = getattr(self.policy, "is_ahead", None)
        if pending and is_ahead is not None and is_ahead(pending):
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls or (pending and not self.fits(pulls[0], pending)):
            return None
        [pull] = pulls
        is_known = pull.arm < len(self.configurations)
        configuration = self.configurations[pull.arm] if is_known else None
        return Wanted(pull, configuration, "given", draw=self.configurations.draw_of(pull.arm))

    def _find(self, found: Found) -> None:
        if found.arms is not None:
            for arm in range(found.arms, self.n_arms):
                if arm in self.policy.active:
                    self.policy.withdraw(arm, duplicate_of=0)
            self.n_arms = found.arms
        if found.is_exhausted:
            self.policy.stop_measuring()

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

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`); None if it is no arm, or in no block.

        A configuration that was expected becomes the next arm.
        """
        if len(self.configurations) < self.n_arms and begun.draw is None:
            self.configurations.add(begun.configuration)
        return pull_of(begun, self.configurations, self.n_levels - 1, self._in_blocks)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Learn a result (see `Runner.learn`).

        An arm with a value of -inf at the target leaves: its mean is -inf, whatever comes. Of costs
        that are measured, one that nobody knows counts at the mean.
        """
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

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return what an evaluation has cost (see `Runner.cost_of`)."""
        return self._price(pull.fidelity) if observation.cost is None else observation.cost

    def answer(self) -> Answer:
        """Return the best answer so far (see `Runner.answer`)."""
        self.policy.held_cost = self.unlearned_cost + self.apart_cost
        self.policy.provisos = self.conditions
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        answer = replace(
            answer,
            cost=self.cost + self.unlearned_cost,
            pulls=answer.pulls + self._n_worst,
        )
        level, certifies = self._levels[answer.fidelity], self.policy.certifies
        return Answer.of(answer, self.sign, configuration, level, certifies)


def _best_arm(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_best_policy(problem, sign, {**options, "aim": "best arm"})


def _in_blocks(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_block_elimination(problem, options)
