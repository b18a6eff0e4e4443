"""A choice of time limits as a kind of experiment: which configuration, for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mfhpo.censored import RCUCB, CensoredPolicy
from mfhpo.censored.options import mirrored
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Candidates, Configurations
from mfhpo.experiment.kinds.runner import Runner, Settings, Wanted, shown_value
from mfhpo.problem import Labels, Observation, Pull


@dataclass(frozen=True, kw_only=True)
class LimitSettings(Settings):
    """A choice of time limits for given configurations.

    Parameters
    ----------
    candidates, n_arms
        See `RaceSettings`.
    limits
        Limits in seconds, or how many are to be derived; for `ZoomingRCUCB`, the longest one.
    options
        See `mfhpo.censored.options.RCUCBOptions`, in the direction of the objective.
    make
        Makes the policy.
    """

    candidates: Candidates
    limits: Sequence[float] | float = 10
    options: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[..., CensoredPolicy] = RCUCB
    n_arms: int | None = None

    def runner(self) -> _LimitRunner:
        """Return a choice of limits to which nothing was told."""
        return _LimitRunner(self)


class _LimitRunner(Runner):
    """Asks a policy which arm to evaluate within which limit."""

    n_levels = 1
    counts_late = True
    policy: CensoredPolicy

    def __init__(self, settings: LimitSettings) -> None:
        self.sign = settings.sign
        self.configurations = Configurations(settings.candidates, settings.describe)
        options = mirrored({"reward_range": (0.0, 1.0), **settings.options}, self.sign)
        n_arms = max(len(self.configurations), settings.n_arms or 0)
        self.policy = policy = settings.make(n_arms, settings.limits, **options)
        self.n_arms = policy.n_arms
        self.labels = Labels(self.configurations.label, value=shown_value(self.sign))
        policy.labels = self.labels

    def limited(self, pull: Pull, pending: Sequence[Pull]) -> Pull:
        return replace(pull, limit=self.policy.largest_limit)

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
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
        able = {arm for arm in range(known) if self.available(arm, self.configurations[arm], 0)}
        return [arm for arm in range(n) if arm not in able]

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        if observation.has_value and observation.cost is None:
            observation = Observation(None)
        self.policy.tell(pull, observation)

    def answer(self) -> Answer:
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        more = {"certifies": False, "cost": answer.cost + self.unlearned_cost}
        return Answer.of(answer, self.sign, configuration, answer.limit, **more)
