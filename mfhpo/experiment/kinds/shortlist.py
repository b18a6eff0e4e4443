"""A shortlist's certificate as a kind of experiment: another search's best are evaluated again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mfhpo.certification.certification import Certification
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.runner import Runner, Wanted, is_worst, leader_of, maximised, pull_of
from mfhpo.problem import Observation, Pull


class ShortlistRunner(Runner):
    """Asks a `Certification` which candidate to evaluate on which replicate.

    Parameters
    ----------
    contest
        Of the candidates.
    about, words
        See `Certification.certificate`.
    budget
        Largest number of evaluations; infinite without a limit.
    in_blocks
        Whether evaluations share replicates.
    sign
        -1 where the objective is minimised.
    """

    n_levels = 1

    def __init__(
        self,
        contest: Certification,
        configurations: Configurations,
        *,
        about: str,
        words: str,
        budget: float,
        in_blocks: bool,
        sign: float,
    ) -> None:
        self.contest = contest
        self.policy = contest.policy
        self.configurations = configurations
        self.labels = contest.policy.labels
        self.of_means = frozenset({"certificate"})
        self.ordered = frozenset() if in_blocks else self.of_means
        self._in_blocks = in_blocks
        self._about = about
        self._words = words
        self._budget = budget
        self.observe = partial(maximised, sign=sign)
        self.replicated = contest.policy
        self._sign = sign

    @property
    def finished(self) -> bool:
        """True if the contest is over (see `Runner.finished`)."""
        return self.contest.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`)."""
        if not self.fits(Pull(0, 0), pending):
            return None
        is_ahead = getattr(self.contest.policy, "is_ahead", None)
        if pending and is_ahead is not None and is_ahead(pending):
            return None
        pull = self.contest.ask(pending)
        if pull is None:
            return None
        return Wanted(pull, self.configurations[pull.arm], "certificate")

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Tell whether the budget pays for one more (see `Runner.fits`), losses included."""
        return self.contest.evaluations + self.lost_cost + len(pending) < self._budget

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`)."""
        return pull_of(begun, self.configurations, in_blocks=self._in_blocks)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Learn a result (see `Runner.learn`)."""
        value = observation.value
        if is_worst(observation):
            self.contest.rule_out(pull.arm)
        else:
            signed = None if value is None else self._sign * value
            self.contest.tell(pull, signed, observation.censored_at)

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return 1: evaluations are counted."""
        return 1.0

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return the best answer so far in short (see `Runner.leader`)."""
        return leader_of(self.contest.policy, self._sign)

    def answer(self) -> Answer:
        """Return the certificate so far (see `Runner.answer`)."""
        self.contest.policy.provisos = self.conditions
        found = self.contest.certificate(self._about, self._words)
        answer = Answer.of(self.contest.policy.recommend(), self._sign, found.params, None)
        return replace(
            answer,
            arm=found.winner,
            mean=found.mean,
            interval=found.interval,
            epsilon=found.epsilon,
            certified=found.certified,
            finished=found.finished,
            reason=found.reason,
            certificate=found,
            cost=answer.cost + self.lost_cost,
            searched=True,
        )

    @property
    def cost(self) -> float:
        """The number of evaluations."""
        return float(self.contest.evaluations)

    @property
    def phase(self) -> str:
        """Progress in words."""
        left = len(self.contest.policy.active)
        return f"{left} of {len(self.configurations)} candidates left"
