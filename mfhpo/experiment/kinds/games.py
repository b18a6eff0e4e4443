"""A game as a kind of experiment: which profile no player gains by leaving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended
from mfhpo.experiment.kinds.runner import Runner, Wanted
from mfhpo.games import GamePolicy, Query
from mfhpo.problem import Labels, Pull

_Utilities = tuple[float | None, ...]


class GameRunner(Runner):
    """Asks a policy which profile to evaluate, at which level of each player.

    A configuration is a profile: the place in its range, or the index, of each parameter. The
    levels of the players together are numbered; that number is the level of an evaluation.

    Parameters
    ----------
    policy
        Of the game.
    signs
        By player, -1 where its utility is minimised.
    """

    purpose = "search"

    def __init__(self, policy: GamePolicy, signs: Sequence[float]) -> None:
        self.policy = policy
        self.configurations = Configurations()
        self.observe = self._utilities_of
        self._signs = tuple(signs)
        self._shape = [top + 1 for top in policy.costs.tops]
        self.n_levels = math.prod(self._shape)
        self.labels = Labels(self._profile_in_words, self._levels_in_words)

    def _utilities_of(self, ended: Ended) -> _Utilities:
        """Return each player's utility, larger is better; None for what could not be measured."""
        values = ended.values or ()
        if len(values) != len(self._signs):
            return (None,) * len(self._signs)
        return tuple(
            None if value is None else sign * value
            for sign, value in zip(self._signs, values, strict=True)
        )

    def _profile_in_words(self, arm: int) -> str:
        return f"profile {self.configurations[arm]!r}"

    def _levels_in_words(self, code: int) -> str:
        return f"levels {self._levels(code)}"

    def _levels(self, code: int) -> tuple[int, ...]:
        levels = []
        for size in reversed(self._shape):
            code, level = divmod(code, size)
            levels.append(level)
        return tuple(reversed(levels))

    def _code(self, levels: Sequence[int]) -> int:
        code = 0
        for level, size in zip(levels, self._shape, strict=True):
            code = code * size + level
        return code

    def _query(self, pull: Pull) -> Query:
        return Query(self.configurations[pull.arm], self._levels(pull.fidelity))

    @property
    def adds(self) -> bool:
        """True: any profile may be evaluated."""
        return True

    @property
    def finished(self) -> bool:
        """True if the budget is spent."""
        self.policy.held_cost = self.unlearned_cost
        return self.policy.finished

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate (see `Runner.next`)."""
        self.policy.held_cost = self.unlearned_cost
        query = self.policy.ask([self._query(pull) for pull in pending])
        if query is None:
            return None
        arm = self.configurations.find(query.profile)
        pull = Pull(len(self.configurations) if arm is None else arm, self._code(query.levels))
        return Wanted(pull, dict(query.profile), "search")

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Tell whether the budget pays for a query (see `Runner.fits`)."""
        self.policy.held_cost = self.unlearned_cost
        cost = sum(self.cost_of(each, ()) for each in [pull, *pending])
        return cost <= self.policy.remaining

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim (see `Runner.adopt`); None if it is no profile."""
        try:
            self.policy.actions.check("profile", begun.configuration)
        except (TypeError, ValueError):
            return None
        level = self.n_levels - 1 if begun.levels is None else begun.levels[0]
        return Pull(self.configurations.add(begun.configuration), level)

    def learn(self, pull: Pull, observation: _Utilities, purpose: str) -> None:
        """Learn a result (see `Runner.learn`)."""
        self.policy.tell(self._query(pull), observation)

    def cost_of(self, pull: Pull, observation: _Utilities) -> float:
        """Return the declared cost of a query."""
        return self.policy.costs.of(self._levels(pull.fidelity))

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return nothing: a profile is not the best, it is settled."""
        return None, math.nan, (-math.inf, math.inf)

    def answer(self) -> Answer:
        """Return the profile from which players are believed to gain least by deviating."""
        self.policy.held_cost = self.unlearned_cost
        signs = dict(zip(self.policy.actions.players, self._signs, strict=True))
        found = self.policy.recommend().mirrored(signs)
        found = replace(found, cost=found.cost + self.unlearned_cost)
        return Answer.of_game(found, dict(found.profile), found.reason)

    @property
    def cost(self) -> float:
        """The cost paid."""
        return self.policy.cost

    @property
    def phase(self) -> str:
        """Progress in words."""
        return f"{len(self.configurations)} profiles begun"
