"""A search of a space on a budget: which setting is evaluated next, and on which split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo.problem import Observation, Pull
from mfhpo.racing.recommendation import UserRecommendation
from mfhpo.search import DeclaredSearch, Replicate, SearchSpace, has_levels
from mfhpo.search.recommendation import UserSearchRecommendation
from mfhpo_sklearn.evaluation import Evaluation
from mfhpo_sklearn.resources import Resource
from mfhpo_sklearn.shortlist import key_of
from mfhpo_sklearn.space import Parameters

_MOST_DRAWS = 100  # of a setting that was not tried before
_MOST_EARLY_FAILURES = 30


class OpenRace:
    """Translates between settings on splits and the pulls of a `SearchRace`.

    The search evaluates all settings on split 0; the certificate takes those after it.

    Attributes
    ----------
    how
        How settings share splits, in words.
    """

    how = "the same for all settings"

    def __init__(
        self, declared: DeclaredSearch, parameters: Parameters, resource: Resource, seed: int
    ) -> None:
        levels = resource.levels if has_levels(declared.fidelity) else ()
        self.policy = declared.race(levels, seed=seed, sign=1.0, params=self.params)
        self.policy.search.space = SearchSpace(parameters.kinds)
        self._is_timed = declared.fidelity.costs == "measured"
        self._parameters = parameters
        self._resource = resource
        self._seed = seed
        self._params: dict[int, dict[str, Any]] = {}
        self._first: dict[str, int] = {}  # the first arm with some setting
        self._owners: dict[int, int] = {}  # of arms that were begun twice
        self._early_failures: int | None = 0  # None: there was a value

    def next(self, pending: Sequence[Pull]) -> Pull | None:
        """What to evaluate besides what is under way; None for nothing."""
        if self._early_failures is not None and self._early_failures >= _MOST_EARLY_FAILURES:
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls:
            return None
        if pulls[0].arm not in self._params:
            self._begin(pulls[0].arm)
        return pulls[0]

    def _begin(self, arm: int) -> None:
        point = self.policy.point_of(arm)
        rng = np.random.default_rng([self._seed, arm])
        params, place = self._parameters.draw(point, rng)
        for _ in range(_MOST_DRAWS if point is None else 0):
            if key_of(params) not in self._first:
                break
            params, place = self._parameters.draw(point, rng)
        self._params[arm] = params
        self._owners[arm] = self._first.setdefault(key_of(params), arm)
        self.policy.search.describe(arm, place)

    def tell(self, pull: Pull, evaluation: Evaluation) -> None:
        """Learn what came of an evaluation; a setting that was begun twice is one arm at last."""
        if evaluation.score is not None:
            self._early_failures = None
        elif self._early_failures is not None:
            self._early_failures += 1
        cost = evaluation.seconds if self._is_timed else None
        search, owner = self.policy.search, self._owners[pull.arm]
        if (
            owner != pull.arm
            and pull.fidelity == search.target
            and evaluation.score is not None
            and owner in search.finished_arms()
        ):
            if cost is None:
                cost = search.cost_from(search.level_of(pull.arm), pull.fidelity)
            self.policy.withdraw(pull.arm, duplicate_of=owner)
            pull = replace(pull, arm=owner)
        self.policy.tell(pull, Observation(evaluation.score, cost))

    def params(self, arm: int) -> dict[str, Any]:
        """The parameters of an arm."""
        return dict(self._params[arm])

    def split_of(self, pull: Pull, pending: Sequence[Pull]) -> int:
        """The number of the split that a pull is evaluated on."""
        return pull.block or 0

    def is_fresh(self, pull: Pull) -> bool:
        """Whether the value may count in a claim: those do that the search has not selected."""
        return isinstance(pull, Replicate)

    @property
    def rows(self) -> dict[int, int]:
        """The row of each arm in the results: one for each setting that was tried."""
        numbers = {owner: row for row, owner in enumerate(sorted(set(self._owners.values())))}
        return {arm: numbers[owner] for arm, owner in self._owners.items()}

    def answer(self, assumption: str) -> UserRecommendation:
        """The best answer so far."""
        answer = self.policy.recommend()
        params = {} if answer.arm is None else self.params(answer.arm)
        level = self._resource.levels[answer.fidelity]
        found = self.policy.findings()
        if found["certificate"] is not None:
            certificate = found["certificate"]
            assumptions = (assumption, *certificate.assumptions)
            found["certificate"] = replace(certificate, assumptions=assumptions)
        answer = replace(answer, assumptions=(assumption, *answer.assumptions))
        return UserSearchRecommendation(
            **vars(UserRecommendation.of(answer, 1.0, params, level)), **found
        )

    @property
    def phase(self) -> str:
        """How far the search is, in words."""
        n = len(self.policy.shortlist)
        return f"evaluates the {n} best again" if n else "searches"
