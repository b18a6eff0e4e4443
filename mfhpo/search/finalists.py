"""The finalists of a search, which are compared by new evaluations alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification, MakeCertifier
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.problem import Observation, Pull
from mfhpo.search.budget import Budget
from mfhpo.search.policy import SearchPolicy
from mfhpo.search.steps import Replicate

FIRST_BLOCK = 1
"""The block of the first new evaluations, which have seen none of the luck of the search's."""


def numbered(arm: int) -> dict[str, Any]:
    """Return what stands for the parameters of an arm that nobody has described."""
    return {"arm": arm}


class Finalists:
    """A race among the shortlist of a search, on what is left of its budget.

    The `search` has chosen the shortlist, and the `budget` says what may be spent. `options` are
    further arguments of `Certification`; for the others see `mfhpo.search.BudgetedSearch`.
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
        self._certification: Certification | None = None
        self._replicates: list[tuple[Replicate, float | None, float | None]] = []
        # Raises for a bad delta, epsilon or sigma now, not when the search has spent its share.
        self._compare([Candidate("arm", {}, 0.0)] * 2, 0)

    def agree(self, shortlist: Sequence[int]) -> None:
        """Compare these arms."""
        self.shortlist = tuple(shortlist)
        self.forget()

    def forget(self) -> None:
        """Begin the comparison anew, with what was told, as something else has changed."""
        self._certification = None

    def tell(self, pull: Replicate, observation: Observation) -> None:
        """Learn from a new evaluation; the first one decides on the shortlist."""
        value = observation.value if observation.has_value else None
        signed = None if value is None else self.sign * float(value)
        self._note(pull, signed, observation.censored_at)

    def rule_out(self, pull: Replicate) -> None:
        """Learn that a new evaluation gave the worst value, -inf."""
        self._note(pull, -math.inf)

    def _note(self, pull: Replicate, value: float | None, stopped_at: float | None = None) -> None:
        if not self.shortlist:
            self.agree(pull.shortlist)
        self._replicates.append((pull, value, stopped_at))
        if self._certification is not None:
            self._count(self._certification, pull, value, stopped_at)

    def certification(self) -> Certification | None:
        """Return the race among the shortlist; None until it was told something."""
        if self._certification is None and any(
            pull.arm in self.shortlist for pull, *_ in self._replicates
        ):
            claims = [self._search.mean(arm, self._search.target) for arm in self.shortlist]
            word = "candidate" if self._search.n_given else "arm"
            candidates = [
                Candidate(f"{word} {arm}", dict(self._params(arm)), self.sign * claim)
                for arm, claim in zip(self.shortlist, claims, strict=True)
            ]
            luckiest = int(np.argmax(np.nan_to_num(claims, nan=-np.inf)))
            self._certification = self._compare(candidates, luckiest)
            for told in self._replicates:
                self._count(self._certification, *told)
        return self._certification

    def fresh_values(self) -> dict[int, list[float]]:
        """Return the new values, larger is better, of arms that the search knows at the target."""
        fresh: dict[int, list[float]] = {}
        for pull, value, _ in self._replicates:
            if value is None or math.isinf(value):
                continue
            if self._search.count(pull.arm, self._search.target):
                fresh.setdefault(pull.arm, []).append(self.sign * value)
        return fresh

    def next_pull(self, shortlist: Sequence[int], pending: Sequence[Pull]) -> Replicate | None:
        """Return the next evaluation of a shortlist, within the budget or not; None at the end."""
        chosen = self._next_candidate(shortlist, pending)
        if chosen is None:
            return None
        block = None if chosen.block is None else chosen.block + FIRST_BLOCK
        arm, target = shortlist[chosen.arm], self._search.target
        return Replicate(arm, target, block=block, shortlist=tuple(shortlist))

    def _next_candidate(self, shortlist: Sequence[int], pending: Sequence[Pull]) -> Pull | None:
        """Return the next pull of the shortlist's race, with the candidate's number as its arm."""
        certification = self.certification()
        if len(shortlist) < 2 or (certification is not None and certification.finished):
            return None
        under_way = [
            self._candidate(shortlist, pull)
            for pull in pending
            if isinstance(pull, Replicate) and pull.arm in shortlist
        ]
        if certification is None:  # nothing is known yet
            return self._compare([Candidate("arm", {}, 0.0)] * len(shortlist), 0).ask(under_way)
        chosen = certification.ask(under_way)
        policy = certification.policy
        if chosen is None or not isinstance(policy, GroupSequential):
            return chosen
        # Further evaluations are only worth it if they will be looked at; the first ones are.
        if policy.looks_with(under_way) and not self._budget.pays_for(
            policy.missing(under_way), pending
        ):
            return None
        return chosen

    def _count(
        self,
        certification: Certification,
        pull: Replicate,
        value: float | None,
        stopped_at: float | None,
    ) -> None:
        if pull.arm not in self.shortlist:
            return
        candidate = self._candidate(self.shortlist, pull)
        if value == -math.inf:
            certification.rule_out(candidate.arm)
        else:
            certification.tell(candidate, value, stopped_at)

    def _candidate(self, shortlist: Sequence[int], pull: Replicate) -> Pull:
        """Return a replicate's pull in the shortlist's race, whose first block is 0."""
        block = None if pull.block is None else pull.block - FIRST_BLOCK
        return Pull(shortlist.index(pull.arm), 0, block=block)

    def _compare(self, candidates: Sequence[Candidate], luckiest: int) -> Certification:
        certification = Certification(
            candidates,
            luckiest=luckiest,
            maximise=self.sign > 0.0,
            blocks=self.in_blocks,
            first_look=None if self._certifier else self._budget.first_look(len(candidates)),
            certifier=self._certifier,
            measure=0,
            **self.options,
        )
        certification.policy.most_blocks = self._budget.most_replicates
        return certification
