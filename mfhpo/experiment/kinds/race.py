"""A race as a kind of experiment: given configurations are compared until one is certified."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.runner import Runner, Wanted, is_worst, leader_of, maximised, pull_of
from mfhpo.problem import Labels, Observation, Pull
from mfhpo.racing.race import Race


class RaceRunner(Runner):
    """Asks a policy which arm to evaluate at which level.

    A policy in blocks compares configurations on the same replicates. One without takes
    evaluations as independent, so each has a replicate of its own.

    Parameters
    ----------
    policy
        Its arms are the configurations.
    configurations
        What is compared.
    levels
        Values of the fidelity.
    labels
        How arms and levels are named.
    costs
        By level; None where they are measured.
    budget
        What may be paid; infinite without a limit.
    in_blocks
        Whether evaluations share replicates.
    sign
        -1 where the objective is minimised.
    """

    def __init__(
        self,
        policy: Race,
        configurations: Configurations,
        levels: Sequence[Any],
        labels: Labels,
        *,
        costs: Sequence[float] | None,
        budget: float,
        in_blocks: bool,
        sign: float,
    ) -> None:
        self.policy = policy
        self.configurations = configurations
        self.n_levels = len(levels)
        self.of_means = frozenset({"given"})
        self.ordered = frozenset() if in_blocks else self.of_means
        self.open_block = getattr(policy, "open_block", None) if in_blocks else None
        self.labels = policy.labels = labels
        self._levels = levels
        self._costs = costs
        self._budget = budget
        self.observe = partial(maximised, sign=sign)
        self.replicated = policy
        self.stop_measuring = policy.stop_measuring
        self.drop_from = self._drop_from
        self.n_arms: int = policy.problem.n_arms
        self.withdraw = policy.withdraw
        self._sign = sign
        self._in_blocks = in_blocks
        self._paid: dict[int, tuple[int, float]] = {}  # by level, how many have cost how much
        self._n_worst = 0  # evaluations that gave -inf, of which the policy was not told
        self._worst_cost = 0.0

    @property
    def finished(self) -> bool:
        """True if the race is over (see `Runner.finished`)."""
        self.policy.held_cost = self.unlearned_cost + self._worst_cost
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

    def _drop_from(self, n: int) -> None:
        for arm in range(n, self.n_arms):
            if arm in self.policy.active:
                self.policy.withdraw(arm, duplicate_of=0)
        self.n_arms = n

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
            self._worst_cost += self.cost_of(pull, observation)
            self.policy.rule_out(pull.arm)
        else:
            self.policy.tell(pull, observation)

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return what an evaluation has cost (see `Runner.cost_of`)."""
        return self._price(pull.fidelity) if observation.cost is None else observation.cost

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return the best answer so far in short (see `Runner.leader`)."""
        return leader_of(self.policy, self._sign)

    def answer(self) -> Answer:
        """Return the best answer so far (see `Runner.answer`)."""
        self.policy.held_cost = self.unlearned_cost + self._worst_cost
        self.policy.provisos = self.conditions
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        answer = replace(
            answer,
            cost=self.cost + self.unlearned_cost,
            pulls=answer.pulls + self._n_worst,
        )
        level, certifies = self._levels[answer.fidelity], self.policy.certifies
        return Answer.of(answer, self._sign, configuration, level, certifies)

    @property
    def cost(self) -> float:
        """The cost paid (see `Runner.cost`)."""
        return self.policy.cost + self._worst_cost

    @property
    def phase(self) -> str:
        """Progress in words."""
        return f"{len(self.policy.active)} of {len(self.configurations)} candidates left"
