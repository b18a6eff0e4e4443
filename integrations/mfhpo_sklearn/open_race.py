"""A search of a space on a budget: which setting is evaluated next, and on which split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo.certification.certification import MakeCertifier
from mfhpo.knowledge.space import Point
from mfhpo.policy import Labels
from mfhpo.problem import Observation, Pull
from mfhpo.racing.recommendation import UserRecommendation
from mfhpo.search import DeclaredSearch, Replicate, SearchSpace, has_levels
from mfhpo.search.budgeted import SEARCH_BLOCK
from mfhpo_sklearn.evaluation import Evaluation
from mfhpo_sklearn.resources import Resource
from mfhpo_sklearn.results import SpaceSearchRecommendation
from mfhpo_sklearn.shortlist import key_of
from mfhpo_sklearn.space import Parameters
from mfhpo_sklearn.splits import sharing_in_words

REPLICATE = "number of the split"
"""The name for a search whose evaluations share splits; no parameter of an estimator has it."""

_MOST_DRAWS = 1000  # until a setting is new; without one, all are taken to be tried
_SINGLE_FITS = 10  # of a setting that has no rival
_MOST_EARLY_FAILURES = 30


class OpenRace:
    """Translates between settings on splits and the pulls of a `BudgetedSearch`.

    The search evaluates all settings on split 0; the certificate takes those after it, which its
    settings share if the search has a replicate. No setting is begun twice. Once all of a space
    were begun, the best of them go to the target, and the certificate begins with what is left of
    the budget. `settings` is the space, or the candidates with all of their parameters; `sharing`
    says how settings share splits.
    """

    def __init__(
        self,
        declared: DeclaredSearch,
        settings: Parameters | Sequence[Mapping[str, Any]],
        resource: Resource,
        seed: int,
        certifier: MakeCertifier | None = None,
    ) -> None:
        self.sharing = sharing_in_words(declared.replicate is not None)
        levels = resource.levels if has_levels(declared.fidelity) else ()
        self.policy = declared.race(
            levels, seed=seed, sign=1.0, params=self.params, certifier=certifier
        )
        self.policy.labels = Labels(fidelity=resource.name_of)
        self._top = self.policy.top
        self._is_timed = declared.fidelity.costs == "measured"
        self._resource = resource
        self._seed = seed
        self._params: dict[int, dict[str, Any]] = {}
        self._asked: set[int] = set()  # arms that were evaluated
        self._tried: set[str] = set()
        self._all_tried = False
        self._single: int | None = None  # the only arm that has values, when all were tried
        self._fits_again = 0  # of the single one, on fresh splits
        self._n_fresh = 0
        self._failed: set[int] = set()  # arms whose last fit failed
        self._early_failures: int | None = 0  # None: there was a value
        if isinstance(settings, Parameters):
            self._take_space(settings)
        else:
            self._params = {arm: dict(params) for arm, params in enumerate(settings)}

    def _take_space(self, parameters: Parameters) -> None:
        """Search a space, or as many settings as are to be drawn from it."""
        self._parameters = parameters
        search = self.policy.search
        search.space = SearchSpace(parameters.kinds)
        for arm in range(search.n_given):
            if not self._draw(arm, None):
                search.merge(arm)  # the space has no more

    def next(self, pending: Sequence[Pull]) -> Pull | None:
        """Return what to evaluate besides what is under way; None for nothing."""
        if self._early_failures is not None and self._early_failures >= _MOST_EARLY_FAILURES:
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls:
            return None
        if pulls[0].arm in self._params or self._begin(pulls[0].arm):
            self._asked.add(pulls[0].arm)
            return pulls[0]
        return self._without_new_arms(pending)

    def _begin(self, arm: int) -> bool:
        """Choose the setting of an arm; False if there is none that was not tried."""
        return self._draw(arm, self.policy.point_of(arm))

    def _draw(self, arm: int, point: Point | None) -> bool:
        if self._all_tried:
            return False
        rng = np.random.default_rng([self._seed, arm])
        params, place = self._parameters.draw(point, rng)
        for _ in range(_MOST_DRAWS):
            if key_of(params) not in self._tried:
                self._tried.add(key_of(params))
                self._params[arm] = params
                self.policy.search.describe(arm, place)
                return True
            params, place = self._parameters.draw(None, rng)
        self._all_tried = True
        return False

    def _without_new_arms(self, pending: Sequence[Pull]) -> Pull | None:
        """Return the next step once all settings were tried: to the target or the certificate."""
        search, policy = self.policy.search, self.policy
        if any(pull.fidelity < search.target for pull in pending):
            return None
        at_target = {*search.finished_arms(), *(pull.arm for pull in pending)}
        waiting = [
            arm
            for arm in self._params
            if search.level_of(arm) >= 0 and arm not in at_target | self._failed
        ]
        if waiting and len(at_target) < self._top:
            best = max(waiting, key=self._standing)
            pull = Pull(best, search.target, block=SEARCH_BLOCK)
            if policy.fits(pull, pending):
                return pull
        if pending:
            return None
        failed = search.next_failed(())
        if failed is not None and policy.fits(failed):
            return replace(failed, block=SEARCH_BLOCK)
        contenders = search.contenders(policy.largest_shortlist)
        if len(contenders) > 1:
            policy.agree(contenders)
            return next(iter(policy.ask(1)), None)
        return self._again(contenders[0]) if contenders else None

    def _standing(self, arm: int) -> tuple[int, float]:
        level = self.policy.search.level_of(arm)
        return level, self.policy.search.mean(arm, level)

    def _again(self, arm: int) -> Pull | None:
        """Return the only setting on a fresh split; no value was selected, so all count."""
        self._single = arm
        fits = 1 + self._fits_again
        pull = Pull(arm, self.policy.search.target, block=SEARCH_BLOCK + fits)
        return pull if fits < _SINGLE_FITS and self.policy.fits(pull) else None

    def tell(self, pull: Pull, evaluation: Evaluation) -> None:
        """Learn the result of an evaluation."""
        if evaluation.score is not None:
            self._early_failures = None
            self._failed.discard(pull.arm)
        else:
            self._failed.add(pull.arm)
            if self._early_failures is not None:
                self._early_failures += 1
        if self._single is not None:
            self._fits_again += 1
            if evaluation.score is None:
                # It is paid for, but must not make the search drop the only setting it has.
                pull = Replicate(pull.arm, pull.fidelity, block=pull.block)
        self._n_fresh += self.is_fresh(pull)
        cost = evaluation.seconds if self._is_timed else None
        self.policy.tell(pull, Observation(evaluation.score, cost))

    def params(self, arm: int) -> dict[str, Any]:
        """Return the parameters of an arm."""
        return dict(self._params[arm])

    def split_of(self, pull: Pull, pending: Sequence[Pull]) -> int:
        """Return the number of the split that a pull is evaluated on."""
        if pull.block is None and self.is_fresh(pull):
            return 1 + self._n_fresh + sum(map(self.is_fresh, pending))
        return pull.block or 0

    def is_fresh(self, pull: Pull) -> bool:
        """Return whether a value may count in a claim: the search has not selected it."""
        return isinstance(pull, Replicate)

    @property
    def rows(self) -> dict[int, int]:
        """The row of each arm in the results."""
        return {arm: row for row, arm in enumerate(sorted(self._asked))}

    def answer(self, assumption: str) -> SpaceSearchRecommendation:
        """Return the best answer so far."""
        answer = self.policy.recommend()
        params = {} if answer.arm is None else self.params(answer.arm)
        level = self._resource.levels[answer.fidelity]
        found = self.policy.findings()
        if found["certificate"] is not None:
            certificate = found["certificate"]
            assumptions = (assumption, *certificate.assumptions)
            found["certificate"] = replace(certificate, assumptions=assumptions)
        answer = replace(answer, assumptions=(assumption, *answer.assumptions))
        if self._single is not None:
            reason = "a single setting has scores, so there is nothing to compare it with"
            answer = replace(answer, finished=True, reason=reason)
        return SpaceSearchRecommendation(
            **vars(UserRecommendation.of(answer, 1.0, params, level)), **found
        )

    @property
    def phase(self) -> str:
        """Progress of the search, in words."""
        n = len(self.policy.shortlist)
        return f"evaluates the {n} best again" if n else "searches"
