"""The finalists of a search, which are compared by new evaluations alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mfhpo.certification.baseline import Baseline, Verdict
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification, MakeCertifier
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.problem import Pull
from mfhpo.racing.text import name_in_words
from mfhpo.search.budget import Budget
from mfhpo.search.policy import Replicate, SearchPolicy

FIRST_BLOCK = 1
"""The block of the first new evaluations, which have seen none of the luck of the search's."""


_ANY = Candidate("arm", {}, 0.0)


def numbered(arm: int) -> dict[str, Any]:
    """Return what stands for the parameters of an arm that nobody has described."""
    return {"arm": arm}


class Finalists:
    """A race among the shortlist of a search, on what is left of its budget.

    `options` are arguments of `Certification`; for the others see `BudgetedSearch`.
    """

    def __init__(
        self,
        search: SearchPolicy,
        budget: Budget,
        options: Mapping[str, Any],
        *,
        sign: float,
        params: Callable[[int], Mapping[str, Any]],
        blocks: bool,
        certifier: MakeCertifier | None,
    ) -> None:
        self.shortlist: tuple[int, ...] = ()
        self.options, self.sign, self.in_blocks = options, sign, blocks
        self._search, self._budget, self._params = search, budget, params
        self._certifier = None if blocks else certifier
        self.baseline: int | None = None  # the arm that is in use today
        self._certification: Certification | None = None
        # What was told, with values of which larger is better, and how much of it is compared.
        self._replicates: list[tuple[Replicate, float | None, float | None]] = []
        self._n_compared = 0
        # Raises for a bad delta, epsilon or sigma now, not when the search has spent its share.
        self._compare([_ANY] * 2, ())

    def agree(self, shortlist: Sequence[int]) -> None:
        """Compare these arms."""
        self.shortlist = tuple(shortlist)
        self.forget()

    def forget(self) -> None:
        """Begin the comparison anew, with what was told, as something else has changed."""
        self._certification = None

    def learn(self, pull: Replicate, value: float | None, stopped_at: float | None = None) -> None:
        """Learn what a new evaluation gave, if anything; the first one decides on the shortlist."""
        if not self.shortlist:
            self.agree(pull.shortlist)
        self._replicates.append((pull, value, stopped_at))

    def certification(self) -> Certification | None:
        """Return the race among the shortlist; None until it was told something."""
        if self._certification is None:
            if not any(pull.arm in self.shortlist for pull, *_ in self._replicates):
                return None
            claims = [self._search.mean(arm, self._search.target) for arm in self.shortlist]
            candidates = [
                Candidate(self._name(arm), dict(self._params(arm)), self.sign * claim)
                for arm, claim in zip(self.shortlist, claims, strict=True)
            ]
            luckiest = int(np.argmax(np.nan_to_num(claims, nan=-np.inf)))
            race = self._compare(candidates, self.shortlist, luckiest)
            self._certification, self._n_compared = race, 0
        for pull, value, stopped_at in self._replicates[self._n_compared :]:
            self._n_compared += 1
            if pull.arm not in self.shortlist:
                continue
            candidate = self._candidate(self.shortlist, pull)
            if value == -math.inf:
                self._certification.rule_out(candidate.arm)
            else:
                signed = None if value is None else self.sign * value
                self._certification.tell(candidate, signed, stopped_at)
        return self._certification

    def _name(self, arm: int) -> str:
        """Return the place of a given candidate, and the parameters of another one."""
        params = self._params(arm)
        return f"candidate {arm}" if self._search.n_given else name_in_words(params, arm)

    def baseline_alone(self, has_value: bool) -> Baseline | None:
        """Return what is known of the baseline without a certificate; None without one."""
        if self.baseline is None:
            return None
        verdict: Verdict = "not told apart" if has_value else "failed"
        params, delta = self._params(self.baseline), self.options["delta"]
        return Baseline("baseline", dict(params), verdict, math.nan, -math.inf, delta)

    def fresh_values(self) -> dict[int, list[float]]:
        """Return the new values, larger is better, of arms that the search knows at the target."""
        fresh: dict[int, list[float]] = {}
        for pull, value, _ in self._replicates:
            is_known = self._search.count(pull.arm, self._search.target) > 0
            if is_known and value is not None and math.isfinite(value):
                fresh.setdefault(pull.arm, []).append(value)
        return fresh

    def next_pull(self, shortlist: Sequence[int], pending: Sequence[Pull]) -> Replicate | None:
        """Return the next evaluation of a shortlist, within the budget or not; None at the end."""
        known = self.certification()
        if len(shortlist) < 2 or (known is not None and known.finished):
            return None
        under_way = [
            self._candidate(shortlist, pull)
            for pull in pending
            if isinstance(pull, Replicate) and pull.arm in shortlist
        ]
        race = known or self._compare([_ANY] * len(shortlist), shortlist)
        chosen = race.ask(under_way)
        if chosen is None or (known is not None and self._is_idle(known, under_way, pending)):
            return None
        block = None if chosen.block is None else chosen.block + FIRST_BLOCK
        arm, target = shortlist[chosen.arm], self._search.target
        return Replicate(arm, target, block=block, shortlist=tuple(shortlist))

    def _is_idle(
        self, race: Certification, under_way: Sequence[Pull], pending: Sequence[Pull]
    ) -> bool:
        """Tell whether the budget ends before further evaluations are looked at."""
        policy = race.policy
        if not isinstance(policy, GroupSequential) or not policy.rule.looks_with(
            policy.known, under_way
        ):
            return False
        return not self._budget.pays_for(policy.rule.missing(policy.known, under_way), pending)

    def _candidate(self, shortlist: Sequence[int], pull: Replicate) -> Pull:
        """Return a replicate's pull in the shortlist's race, whose first block is 0."""
        block = None if pull.block is None else pull.block - FIRST_BLOCK
        return Pull(shortlist.index(pull.arm), 0, block=block)

    def _compare(
        self, candidates: Sequence[Candidate], shortlist: Sequence[int], luckiest: int = 0
    ) -> Certification:
        baseline = self.baseline
        certification = Certification(
            candidates,
            luckiest=luckiest,
            maximise=self.sign > 0.0,
            blocks=self.in_blocks,
            first_look=None if self._certifier else self._budget.first_look(len(candidates)),
            certifier=self._certifier,
            measure=0,
            baseline=None if baseline not in shortlist else shortlist.index(baseline),
            **self.options,
        )
        if isinstance(certification.policy, GroupSequential):
            certification.policy.rule.planned_looks = self._budget.planned_looks(len(candidates))
        certification.policy.most_blocks = self._budget.most_replicates
        return certification
