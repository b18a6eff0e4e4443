"""A shortlist's certificate as a kind of experiment: another search's best are evaluated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mfhpo.certification.certification import Certification
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended
from mfhpo.experiment.kinds.runner import Runner, Wanted, is_worst, maximised
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
        self.configurations = configurations
        self.labels = contest.policy.labels
        self.of_means = frozenset({"certificate"})
        self.ordered = frozenset() if in_blocks else self.of_means
        self._in_blocks = in_blocks
        self._about = about
        self._words = words
        self._budget = budget
        self._sign = sign

    @property
    def finished(self) -> bool:
        """Whether the contest is over (see `Runner.finished`)."""
        return self.contest.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`)."""
        if self.contest.evaluations + len(pending) >= self._budget:
            return None
        is_ahead = getattr(self.contest.policy, "is_ahead", None)
        if pending and is_ahead is not None and is_ahead(pending):
            return None
        pull = self.contest.ask(pending)
        if pull is None:
            return None
        return Wanted(pull, self.configurations[pull.arm], "certificate")

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`)."""
        arm = self.configurations.find(begun.configuration)
        if arm is None or (self._in_blocks and begun.block is None):
            return None
        return Pull(arm, 0, begun.limit, begun.block)

    def observe(self, ended: Ended) -> Observation:
        """Return what a claim gave (see `Runner.observe`)."""
        return maximised(ended, self._sign)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Learn a result (see `Runner.learn`)."""
        value = observation.value
        if is_worst(observation):
            self.contest.rule_out(pull.arm)
        else:
            self.contest.tell(pull, None if value is None else self._sign * value)

    def find_replicates(self, number: int) -> None:
        """Take note of the number of replicates (see `Runner.find_replicates`)."""
        self.contest.policy.most_blocks = number

    def replicate_of(self, wanted: Wanted, n_begun: Mapping[str, int]) -> int:
        """Return the replicate: the block's, or one that nothing else has."""
        block = wanted.pull.block
        return n_begun.get("certificate", 0) if block is None else block

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return 1: evaluations are counted."""
        return 1.0

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return the best answer so far in short (see `Runner.leader`)."""
        arm, mean, bounds, _ = self.contest.policy.leader()
        low, high = sorted(self._sign * bound for bound in bounds)
        return arm, self._sign * mean, (low, high)

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
