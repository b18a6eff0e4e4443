"""A shortlist's certificate as a kind of experiment: another search's best are evaluated again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mfhpo.certification.candidates import Shortlist
from mfhpo.certification.certification import Certification
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.kinds.runner import Runner, Settings, Wanted, is_worst
from mfhpo.problem import Observation, Pull


@dataclass(frozen=True, kw_only=True)
class ShortlistSettings(Settings):
    """A certificate of another search's best, by new evaluations.

    Parameters
    ----------
    shortlist
        The candidates.
    options
        Further arguments of `mfhpo.certification.certification.Certification`.
    """

    shortlist: Shortlist
    options: Mapping[str, Any] = field(default_factory=dict)

    def runner(self) -> _ShortlistRunner:
        """Return a contest to which nothing was told."""
        return _ShortlistRunner(self)


class _ShortlistRunner(Runner):
    """Asks a `Certification` which candidate to evaluate on which replicate."""

    n_levels = 1

    def __init__(self, settings: ShortlistSettings) -> None:
        self.sign, self._shortlist = settings.sign, settings.shortlist
        options, candidates = settings.options, settings.shortlist.candidates
        self.contest = Certification(
            candidates,
            luckiest=settings.shortlist.luckiest,
            maximise=self.sign > 0.0,
            seed=settings.seed,
            baseline=settings.shortlist.baseline,
            **options,
        )
        self.policy = self.contest.policy
        self.configurations = Configurations(
            [candidate.params for candidate in candidates], settings.describe
        )
        self.labels = self.policy.labels
        self.of_means = frozenset({"certificate"})
        self.in_blocks = bool(options.get("blocks"))
        self._budget = math.inf if options.get("budget") is None else options["budget"]

    @property
    def finished(self) -> bool:
        return self.contest.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        if not self.fits(Pull(0, 0), pending):
            return None
        is_ahead = getattr(self.policy, "is_ahead", None)
        if pending and is_ahead is not None and is_ahead(pending):
            return None
        pull = self.contest.ask(pending)
        if pull is None:
            return None
        return Wanted(pull, self.configurations[pull.arm], "certificate")

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        return self.contest.evaluations + self.lost_cost + len(pending) < self._budget

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        value = observation.value
        if is_worst(observation):
            self.contest.rule_out(pull.arm)
            self.apart_cost += 1.0
        else:
            signed = None if value is None else self.sign * value
            self.contest.tell(pull, signed, observation.censored_at)

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return 1: evaluations are counted."""
        return 1.0

    def answer(self) -> Answer:
        self.policy.provisos = self.conditions
        found = self.contest.certificate(self._shortlist.about, self._shortlist.words)
        answer = self.policy.recommend()
        names = ("mean", "interval", "delta", "epsilon", "certified", "finished", "reason")
        told = {name: getattr(found, name) for name in (*names, "baseline")}
        told |= {"arm": found.winner, "certificate": found, "cost": answer.cost + self.lost_cost}
        return Answer.of(answer, self.sign, found.params, searched=True, **told)
