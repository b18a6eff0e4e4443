"""An experiment whose levels are not known yet: configurations are begun in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Candidates, Configurations
from mfhpo.experiment.events import Begun, Purpose
from mfhpo.experiment.kinds.runner import Runner, Settings, Wanted
from mfhpo.problem import Labels, Observation, Pull
from mfhpo.search.budgeted import SEARCH_BLOCK

_FAILURES_PER_ARM = 3  # of a race, before any evaluation has asked for the fidelity
_FAILURES_OF_SEARCH = 30
_MOST_AT_FIRST = 10.0  # times the first limit, which is mostly a tenth of a budget


@dataclass(frozen=True, kw_only=True)
class LateSettings(Settings):
    """An experiment whose levels an objective tells when it asks for the fidelity.

    Parameters
    ----------
    fidelity
        Name of the parameter that sets what an evaluation costs.
    make
        Returns the settings that know the levels, given these.
    candidates
        See `RaceSettings`. None: there is no end of draws, as in a search.
    in_blocks
        Whether evaluations share replicates.
    purpose, first_limit
        Of evaluations before the levels are known; the limit, in seconds, is doubled with each that
        was stopped, up to ten times the first one. None: they have none.
    """

    fidelity: str
    make: Callable[[tuple[Any, ...]], Settings]
    candidates: Candidates | None
    in_blocks: bool = False
    purpose: Purpose = "given"
    first_limit: float | None = None

    def runner(self) -> BlindRunner:
        """Return a runner that begins configurations until the levels are found."""
        return BlindRunner(
            Configurations(self.candidates or (), self.describe),
            self.fidelity,
            self.in_blocks,
            purpose="search" if self.candidates is None else self.purpose,
            limit=self.first_limit,
        )


class BlindRunner(Runner):
    """Begins one configuration after the other, until an objective has asked for the fidelity.

    Without `configurations`, each evaluation is of a new draw.
    """

    n_levels = 1

    def __init__(
        self,
        configurations: Configurations,
        fidelity: str,
        in_blocks: bool,
        *,
        purpose: Purpose = "given",
        limit: float | None = None,
    ) -> None:
        self.configurations, self.purpose = configurations, purpose
        self.search_replicate = SEARCH_BLOCK if purpose == "search" else None
        self.draws = not len(configurations)
        self.n_arms = math.inf if self.draws else len(configurations)
        self._limit = limit
        self._most_failures = _FAILURES_OF_SEARCH
        if purpose == "given":
            self._most_failures = _FAILURES_PER_ARM * len(configurations)
        self.labels = Labels()
        self._fidelity = fidelity
        self.in_blocks = in_blocks
        self._n_begun = 0
        self._n_failures = 0
        self._n_stopped = 0

    @property
    def finished(self) -> bool:
        """True if so many evaluations failed that none may ever ask (see `Runner.finished`)."""
        return self._n_failures >= self._most_failures

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return the next configuration, without a level (see `Runner.next`)."""
        known = self.configurations
        if self.draws:
            pull = Pull(len(known), -1, self.limit, SEARCH_BLOCK if self.in_blocks else None)
            return Wanted(pull, {}, self.purpose, draw=known.next_draw)
        turn, arm = divmod(self._n_begun, len(known))
        block = turn if self.purpose == "given" else SEARCH_BLOCK
        pull = Pull(arm, -1, self.limit, block if self.in_blocks else None)
        return Wanted(pull, known[arm], self.purpose, draw=known.draw_of(arm))

    @property
    def limit(self) -> float | None:
        """The limit of the next evaluation, which rises with each one that was stopped."""
        return self._limit and self._limit * min(2.0**self._n_stopped, _MOST_AT_FIRST)

    def open_block(self, arm: int, pending: Sequence[Pull]) -> int | None:
        """Return the block of a search, or the next one of an arm (see `Runner.open_block`)."""
        if not self.in_blocks:
            return None
        is_search = self.purpose == "search"
        return SEARCH_BLOCK if is_search else sum(pull.arm == arm for pull in pending)

    def limited(self, pull: Pull, pending: Sequence[Pull]) -> Pull:
        """Return a pull without a level, with the next limit (see `Runner.limited`)."""
        return replace(pull, fidelity=-1, limit=self.limit)

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`)."""
        pull = super().adopt(begun)
        self._n_begun += pull is not None
        return pull

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        """Count what gave nothing (see `Runner.learn`)."""
        self._n_stopped += observation.censored_at is not None
        self._n_failures += not observation.has_value
        self.apart_cost += observation.cost or 0.0

    def answer(self) -> Answer:
        """Return that nothing is known (see `Runner.answer`)."""
        n, name = self._n_failures, repr(self._fidelity)
        reason = f"no evaluation has asked for {name} yet"
        if self.finished:
            reason = f"{n} evaluations failed before any asked for {name}"
        return Answer(
            params={},
            finished=self.finished,
            reason=reason,
            cost=self.apart_cost + self.unlearned_cost,
            pulls=n,
            failures=n,
        )


def with_levels(settings: Settings, levels: Sequence[Any]) -> Settings:
    """Return settings that know their levels, now that these were found."""
    return settings.make(tuple(levels)) if isinstance(settings, LateSettings) else settings
