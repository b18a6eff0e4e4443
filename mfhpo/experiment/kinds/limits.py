"""A choice of time limits as a kind of experiment: which configuration, for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mfhpo.censored import CensoredPolicy
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.runner import Runner, Wanted, leader_of, maximised, pull_of
from mfhpo.problem import Labels, Observation, Pull


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
    policy: CensoredPolicy

    def __init__(self, policy: CensoredPolicy, configurations: Configurations, sign: float) -> None:
        self.policy = policy
        self.n_arms = policy.n_arms
        self.limited = self._limited
        self.withdraw = policy.withdraw
        self.configurations = configurations
        self.labels = policy.labels = Labels(
            configurations.label,
            value=lambda value: sign * value + 0.0,  # the sum makes 0 of -0
        )
        self.observe = partial(maximised, sign=sign)  # a timeout is an observation
        self._sign = sign

    def _limited(self, pull: Pull, pending: Sequence[Pull]) -> Pull:
        """Return a pull with the largest limit."""
        return replace(pull, limit=self.policy.largest_limit)

    @property
    def finished(self) -> bool:
        """True if the experiment is over (see `Runner.finished`)."""
        return self.policy.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`)."""
        pulls = self.policy.ask(1, pending, without=self._unavailable())
        if not pulls:
            return None
        [pull] = pulls
        draw = self.configurations.draw_of(pull.arm)
        return Wanted(pull, self.configurations[pull.arm], "given", draw=draw)

    def _unavailable(self) -> list[int]:
        n, known = self.policy.n_arms, len(self.configurations)
        if self.available is None:
            return list(range(known, n))
        able = {arm for arm in range(known) if self.available(self.configurations[arm], 0)}
        return [arm for arm in range(n) if arm not in able]

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Return true: evaluations are counted at the end alone."""
        return True

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`); what was expected becomes an arm."""
        if len(self.configurations) < self.n_arms and begun.draw is None:
            self.configurations.add(begun.configuration)
        return pull_of(begun, self.configurations)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Learn a result (see `Runner.learn`); a value without its seconds is a failure."""
        if observation.has_value and observation.cost is None:
            observation = Observation(None)
        self.policy.tell(pull, observation)

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return the seconds of an evaluation."""
        return observation.cost or 0.0

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return the best answer so far in short (see `Runner.leader`)."""
        return leader_of(self.policy, self._sign)

    def answer(self) -> Answer:
        """Return the best answer so far (see `Runner.answer`)."""
        answer = self.policy.recommend()
        answer = replace(answer, cost=answer.cost + self.unlearned_cost)
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        return Answer.of(answer, self._sign, configuration, answer.limit, certifies=False)

    @property
    def cost(self) -> float:
        """The seconds that were paid."""
        return self.policy.cost

    @property
    def phase(self) -> str:
        """Progress in words."""
        doing = "finds limits" if self.policy.piloting else "chooses limits"
        return f"{doing}, {len(self.policy.active)} of {len(self.configurations)} left"
