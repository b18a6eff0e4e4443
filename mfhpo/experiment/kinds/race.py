"""A race as a kind of experiment: given configurations are compared until one is certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended
from mfhpo.experiment.kinds.runner import Runner, Wanted, is_worst, maximised
from mfhpo.policy import Labels, Policy
from mfhpo.problem import Observation, Pull


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
        policy: Policy,
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
        self.ordered = frozenset() if in_blocks else frozenset({"given"})
        self.labels = policy.labels = labels
        self._levels = levels
        self._costs = costs
        self._budget = budget
        self._sign = sign
        self._n_worst = 0  # evaluations that gave -inf, of which the policy was not told
        self._worst_cost = 0.0

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Runner.finished`)."""
        self.policy.held_cost = self.unlearned_cost + self._worst_cost
        return self.policy.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`): only what fits beside what is open."""
        is_ahead = getattr(self.policy, "is_ahead", None)
        if pending and is_ahead is not None and is_ahead(pending):
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls or (pending and self._is_too_dear([*pending, *pulls])):
            return None
        [pull] = pulls
        return Wanted(pull, self.configurations[pull.arm], "given")

    def _is_too_dear(self, pulls: Sequence[Pull]) -> bool:
        if self._costs is None:
            return False
        promised = sum(self._costs[pull.fidelity] for pull in pulls)
        return self.cost + promised > self._budget

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`); None if it is no arm at a level."""
        arm = self.configurations.find(begun.configuration)
        level = self.n_levels - 1 if begun.levels is None else begun.levels[0]
        if arm is None or not 0 <= level < self.n_levels:
            return None
        return Pull(arm, level, begun.limit, begun.block)

    def observe(self, ended: Ended) -> Observation:
        """Return what a claim gave (see `Runner.observe`)."""
        return maximised(ended, self._sign)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Learn a result (see `Runner.learn`).

        An arm with a value of -inf at the target leaves: its mean is -inf, whatever comes.
        """
        if is_worst(observation) and pull.fidelity == self.n_levels - 1:
            self._n_worst += 1
            self._worst_cost += self.cost_of(pull, observation)
            self.policy.withdraw(pull.arm)
        else:
            self.policy.tell(pull, observation)

    def find_replicates(self, number: int) -> None:
        """Take note of the number of replicates (see `Runner.find_replicates`)."""
        self.policy.most_blocks = number

    def replicate_of(self, wanted: Wanted, n_begun: Mapping[str, int]) -> int:
        """Return the replicate: the block's, or one that nothing else has."""
        block = wanted.pull.block
        return n_begun.get("given", 0) if block is None else block

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return what an evaluation has cost (see `Runner.cost_of`)."""
        if observation.cost is not None:
            return observation.cost
        return 0.0 if self._costs is None else self._costs[pull.fidelity]

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return the best answer so far in short (see `Runner.leader`)."""
        arm, mean, bounds, _ = self.policy.leader()
        low, high = sorted(self._sign * bound for bound in bounds)
        return arm, self._sign * mean, (low, high)

    def answer(self) -> Answer:
        """Return the best answer so far (see `Runner.answer`)."""
        self.policy.provisos = self.conditions
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        answer = replace(
            answer,
            cost=self.cost + self.unlearned_cost,
            pulls=answer.pulls + self._n_worst,
        )
        return Answer.of(answer, self._sign, configuration, self._levels[answer.fidelity])

    @property
    def cost(self) -> float:
        """What was paid (see `Runner.cost`)."""
        return self.policy.cost + self._worst_cost

    @property
    def phase(self) -> str:
        """Progress in words."""
        return f"{len(self.policy.active)} of {len(self.configurations)} candidates left"
