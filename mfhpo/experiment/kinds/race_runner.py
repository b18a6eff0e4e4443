"""Runs a race: a policy says which configuration to evaluate at which level."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mfhpo._validation import check_probability
from mfhpo.certification.baseline import RACE_SHARE, AgainstBaseline
from mfhpo.certification.tolerance import tolerance
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations, arm_of_baseline
from mfhpo.experiment.events import Found
from mfhpo.experiment.kinds.runner import Runner, Wanted, is_worst
from mfhpo.experiment.kinds.settings import levels_in_words, shown_value
from mfhpo.problem import Labels, Observation, Pull
from mfhpo.racing.race import Race

if TYPE_CHECKING:
    from mfhpo.experiment.kinds.race import RaceSettings


class RaceRunner(Runner):
    """Asks a policy which arm to evaluate at which level.

    A policy in blocks compares configurations on the same replicates. One without takes
    evaluations as independent, so each has a replicate of its own.
    """

    policy: Race

    def __init__(self, settings: RaceSettings) -> None:
        self.sign, self.in_blocks = settings.sign, settings.in_blocks
        self.configurations = Configurations(settings.candidates, settings.describe)
        self._levels, declared = tuple(settings.levels), settings.declared
        self.n_levels = len(self._levels)
        fidelity = replace(declared.fidelity, levels=self._levels, bias=None)
        n_arms = max(len(self.configurations), settings.n_arms or 0)
        problem = declared.declaration.problem(n_arms, self._levels, self.sign)
        options = {**declared.options, "seed": settings.seed}
        self._delta = check_probability("delta", options["delta"])
        baseline = arm_of_baseline(self.configurations, declared.baseline)
        share = 1.0 if baseline is None else RACE_SHARE
        options["delta"] = share * self._delta
        policy = declared.policy(problem, self.sign, options)
        assert isinstance(policy, Race)
        self.policy, self._baseline = policy, None
        if baseline is not None:
            self._baseline = AgainstBaseline(policy, baseline, self._delta)
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
        """Return what to evaluate (see `Runner.next`): only what fits beside what is open."""
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
        """Take note of what was found out (see `Runner.find`)."""
        if found.arms is not None:
            for arm in range(found.arms, self.n_arms):
                if arm in self.policy.active:
                    self.policy.withdraw(arm, duplicate_of=0)
            self.n_arms = found.arms
        if found.is_exhausted:
            self.policy.stop_measuring()

    def open_block(self, arm: int, pending: Sequence[Pull]) -> int | None:
        """Return the first block that is open for an arm (see `Runner.open_block`)."""
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
        if self._baseline is not None:
            self._baseline.arm = self.configurations.owner(self._baseline.arm)
            self._baseline.look()

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return what an evaluation has cost (see `Runner.cost_of`)."""
        return self._price(pull.fidelity) if observation.cost is None else observation.cost

    def charge(self, lost: float, held: float) -> None:
        """Take note of what was paid that was not learned (see `Runner.charge`)."""
        super().charge(lost, held)
        self.policy.held_cost = self.unlearned_cost + self.apart_cost

    def answer(self) -> Answer:
        """Return the best answer so far (see `Runner.answer`)."""
        self.policy.provisos = self.conditions
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        cost, pulls = self.cost + self.unlearned_cost, answer.pulls + self._n_worst
        answer = replace(answer, cost=cost, pulls=pulls)
        level, certifies = self._levels[answer.fidelity], self.policy.certifies
        found = Answer.of(answer, self.sign, configuration, level, certifies)
        if self._baseline is None or found.arm is None or math.isnan(found.mean):
            return replace(found, delta=self._delta)
        epsilon = found.epsilon if found.certified else math.inf
        within = min(tolerance(self.policy, found.arm), epsilon)
        params = self.configurations[self._baseline.arm]
        compared = self._baseline.compared(found.arm, within, params)
        return replace(found, delta=self._delta, baseline=compared)
