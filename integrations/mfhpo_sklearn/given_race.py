"""Races among given candidates: which of them is evaluated next, and on which split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mfhpo.policy import Labels, Policy
from mfhpo.problem import Observation, Pull
from mfhpo_sklearn.evaluation import Evaluation
from mfhpo_sklearn.open_race import OpenRace
from mfhpo_sklearn.resources import Resource
from mfhpo_sklearn.results import SearchRecommendation
from mfhpo_sklearn.splits import sharing_in_words


class GivenRace:
    """Translates between settings on splits and a policy's pulls.

    A policy with blocks compares candidates on the same splits. One without blocks takes
    evaluations as independent, so each of them gets a split that no other one has. `sharing` says
    which of the two it is.
    """

    def __init__(
        self,
        policy: Policy,
        candidates: Sequence[Mapping[str, Any]],
        resource: Resource,
        budget: float | None,
        *,
        in_blocks: bool,
    ) -> None:
        self.sharing = sharing_in_words(in_blocks)
        self.policy = policy
        self._candidates = candidates
        self._resource = resource
        self._budget = budget
        self._told = 0
        self._worst = 0  # evaluations that scored -inf, which the policy was not told
        policy.labels = Labels(
            lambda arm: f"candidate {arm} {dict(candidates[arm])!r}", resource.name_of
        )

    def next(self, pending: Sequence[Pull]) -> Pull | None:
        """Return what to evaluate besides what is under way; None for nothing."""
        if self.policy.finished:
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls or (pending and self._is_too_dear([*pending, *pulls])):
            return None
        return pulls[0]

    def tell(self, pull: Pull, evaluation: Evaluation) -> None:
        """Learn the result of an evaluation."""
        self._told += 1
        if evaluation.is_worst and pull.fidelity == len(self._resource.levels) - 1:
            # It is paid, and neither a value nor a failure: the mean is -inf.
            self._worst += 1
            self.policy.held_cost += self._resource.costs[pull.fidelity]
            self.policy.withdraw(pull.arm)
            return
        self.policy.tell(pull, Observation(evaluation.score))

    def params(self, arm: int) -> dict[str, Any]:
        """Return the parameters of a candidate."""
        return dict(self._candidates[arm])

    def split_of(self, pull: Pull, pending: Sequence[Pull]) -> int:
        """Return the number of the split that a pull is evaluated on."""
        return self._told + len(pending) if pull.block is None else pull.block

    def is_fresh(self, pull: Pull) -> bool:
        """Return True: all values may count in a claim."""
        return True

    @property
    def rows(self) -> dict[int, int]:
        """The row of each arm in the results."""
        return {arm: arm for arm in range(len(self._candidates))}

    def answer(self, assumption: str) -> SearchRecommendation:
        """Return the best answer so far."""
        answer = self.policy.recommend()
        params = {} if answer.arm is None else self.params(answer.arm)
        level = self._resource.levels[answer.fidelity]
        answer = replace(
            answer,
            assumptions=(assumption, *answer.assumptions),
            cost=answer.cost + self.policy.held_cost,
            pulls=answer.pulls + self._worst,
        )
        return SearchRecommendation.of(answer, 1.0, params, level)

    @property
    def phase(self) -> str:
        """Progress of the race, in words."""
        return f"{len(self.policy.active)} of {len(self._candidates)} candidates left"

    def _is_too_dear(self, pulls: Sequence[Pull]) -> bool:
        costs = self._resource.costs
        cost = (
            self.policy.cost + self.policy.held_cost + sum(costs[pull.fidelity] for pull in pulls)
        )
        return self._budget is not None and cost > self._budget


class FinalistsRace(OpenRace):
    """A search among given candidates, which certifies the best that it finds, the finalists."""

    @property
    def rows(self) -> dict[int, int]:
        """The row of each arm in the results, also of those that were never tried."""
        return {arm: arm for arm in self._params}
