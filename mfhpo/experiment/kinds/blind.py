"""A race whose levels are not known yet: its configurations are begun in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.runner import Runner, Wanted, maximised, pull_of
from mfhpo.problem import Labels, Observation, Pull

_FAILURES_PER_ARM = 3  # before any evaluation has asked for the fidelity


class BlindRunner(Runner):
    """Begins one configuration after the other, until an objective has asked for the fidelity.

    Then an experiment knows its levels (`mfhpo.experiment.Found`), and tells all from its beginning
    to a race that has them. If many evaluations fail before, that is the end.

    Parameters
    ----------
    configurations
        What is compared.
    fidelity
        Name of the parameter.
    in_blocks
        Whether evaluations share replicates.
    """

    n_levels = 1

    def __init__(self, configurations: Configurations, fidelity: str, in_blocks: bool) -> None:
        self.configurations = configurations
        self.labels = Labels()
        self.observe = partial(maximised, sign=1.0)
        self._fidelity = fidelity
        self._in_blocks = in_blocks
        self._n_begun = 0
        self._n_failures = 0
        self._paid = 0.0

    @property
    def finished(self) -> bool:
        """True if so many evaluations failed that none may ever ask (see `Runner.finished`)."""
        return self._n_failures >= _FAILURES_PER_ARM * len(self.configurations)

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return the next configuration, without a level (see `Runner.next`)."""
        turn, arm = divmod(self._n_begun, len(self.configurations))
        pull = Pull(arm, -1, block=turn if self._in_blocks else None)
        return Wanted(pull, self.configurations[arm], "given")

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Return true: costs are not known yet."""
        return True

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`)."""
        pull = pull_of(begun, self.configurations, in_blocks=self._in_blocks)
        self._n_begun += pull is not None
        return pull

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Count a failure (see `Runner.learn`)."""
        self._n_failures += observation.failed
        self._paid += observation.cost or 0.0

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        """Return what an evaluation has cost, if that is known (see `Runner.cost_of`)."""
        return observation.cost or 0.0

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return nothing: there are no values yet."""
        return None, math.nan, (-math.inf, math.inf)

    def answer(self) -> Answer:
        """Return that nothing is known (see `Runner.answer`)."""
        reason = f"no evaluation has asked for {self._fidelity!r} yet"
        if self.finished:
            reason = (
                f"{self._n_failures} evaluations failed before any asked for {self._fidelity!r}"
            )
        return Answer(
            params={},
            finished=self.finished,
            reason=reason,
            cost=self._paid + self.unlearned_cost,
            trials=self._n_failures,
            failures=self._n_failures,
        )

    @property
    def cost(self) -> float:
        """The cost paid (see `Runner.cost`)."""
        return self._paid

    @property
    def phase(self) -> str:
        """Progress in words."""
        return (
            f"{self._n_begun} evaluations begun before the levels of {self._fidelity!r} are known"
        )
