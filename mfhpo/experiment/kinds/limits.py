"""A choice of time limits as a kind of experiment: which configuration, for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mfhpo.censored import CensoredPolicy
from mfhpo.censored.recommendation import UserLimitRecommendation
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended
from mfhpo.experiment.kinds.runner import Runner, Wanted, maximised
from mfhpo.policy import Labels
from mfhpo.problem import Observation, Pull


class LimitRunner(Runner):
    """Asks a policy which arm to evaluate within which limit.

    What a trial gains is to be high while the experiment goes on. Nothing is promised about means,
    so results are learned as they come, and late ones count.

    Parameters
    ----------
    policy
        Its arms are the configurations.
    configurations
        What may be run.
    sign
        -1 where the objective is minimised.
    """

    n_levels = 1
    counts_late = True

    def __init__(self, policy: CensoredPolicy, configurations: Configurations, sign: float) -> None:
        self.policy = policy
        self.configurations = configurations
        self.labels = policy.labels = Labels(
            lambda arm: f"candidate {arm} {configurations[arm]!r}",
            value=lambda value: sign * value + 0.0,  # the sum makes 0 of -0
        )
        self._sign = sign

    @property
    def finished(self) -> bool:
        """Whether the experiment is over (see `Runner.finished`)."""
        return self.policy.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`)."""
        pulls = self.policy.ask(1, pending)
        return Wanted(pulls[0], self.configurations[pulls[0].arm], "given") if pulls else None

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`)."""
        arm = self.configurations.find(begun.configuration)
        return None if arm is None else Pull(arm, 0, begun.limit)

    def observe(self, ended: Ended) -> Observation:
        """Return what a claim gave (see `Runner.observe`): a timeout is an observation."""
        return maximised(ended, self._sign)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Learn a result (see `Runner.learn`)."""
        self.policy.tell(pull, observation)

    def find_replicates(self, number: int) -> None:
        """Take note of nothing: evaluations share no replicates."""

    def replicate_of(self, wanted: Wanted, n_begun: Mapping[str, int]) -> int:
        """Return a replicate that nothing else has."""
        return n_begun.get("given", 0)

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return the seconds of an evaluation."""
        return observation.cost or 0.0

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return the best answer so far in short (see `Runner.leader`)."""
        arm, gain, bounds, _ = self.policy.leader()
        low, high = sorted(self._sign * bound for bound in bounds)
        return arm, self._sign * gain, (low, high)

    def answer(self) -> Answer:
        """Return the best answer so far (see `Runner.answer`)."""
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        found = Answer.of(answer, self._sign, configuration, answer.limit, certifies=False)
        limit = UserLimitRecommendation.of(answer, self._sign, configuration)
        return replace(found, cost=found.cost + self.unlearned_cost, time_limit=limit)

    @property
    def cost(self) -> float:
        """The seconds that were paid."""
        return self.policy.cost

    @property
    def phase(self) -> str:
        """Progress in words."""
        doing = "finds limits" if self.policy.piloting else "chooses limits"
        return f"{doing}, {len(self.policy.active)} of {len(self.configurations)} left"
