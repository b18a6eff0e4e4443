"""A game as a kind of experiment: which profile no player gains by leaving."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended
from mfhpo.experiment.kinds.runner import Runner, Settings, Wanted
from mfhpo.games import MFUCBPNE, GamePolicy, Query
from mfhpo.knowledge.space import Numeric, OneOf
from mfhpo.problem import Labels, Pull

_ROUNDING = 1e-9  # of sums of costs


class Utilities(tuple[float | None, ...]):
    """Each player's utility, larger is better; None for what could not be measured."""

    censored_at = None

    @property
    def has_value(self) -> bool:
        """True if any player's is a number."""
        return any(value is not None and math.isfinite(value) for value in self)


def number_of(levels: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the number of players' levels together; `sizes` are how many each player has."""
    number = 0  # of any size, which NumPy's are not
    for level, size in zip(levels, sizes, strict=True):
        number = number * size + level
    return number


def levels_of(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return each player's level, by the number that they have together."""
    levels: list[int] = []
    for size in reversed(sizes):
        number, level = divmod(number, size)
        levels.insert(0, level)
    return tuple(levels)


@dataclass(frozen=True, kw_only=True)
class GameSettings(Settings):
    """A game whose players share a budget.

    Parameters
    ----------
    players, costs, budget, options
        See `mfhpo.games.GamePolicy`.
    signs
        By player, -1 where its utility is minimised. None: all are maximised.
    make
        Makes the policy.
    """

    players: Mapping[str, Mapping[str, Numeric | OneOf]]
    costs: Sequence[float] | Mapping[str, Sequence[float]]
    budget: float
    options: Mapping[str, Any] = field(default_factory=dict)
    signs: Sequence[float] | None = None
    make: Callable[..., GamePolicy] = MFUCBPNE

    def runner(self) -> _GameRunner:
        """Return a game to which nothing was told."""
        return _GameRunner(self)


class _GameRunner(Runner):
    """Asks a policy which profile to evaluate; the players' levels together are one level's number.

    A configuration is a profile: the place in its range, or the index, of each parameter.
    """

    purpose = "search"
    counts_late = True
    keeps_budget = True
    n_arms = math.inf

    policy: GamePolicy

    def __init__(self, settings: GameSettings) -> None:
        options = {"seed": settings.seed, **settings.options}
        self.policy = settings.make(settings.players, settings.costs, settings.budget, **options)
        self.configurations = Configurations()
        self._signs = tuple(settings.signs or (1.0,) * len(settings.players))
        self._sizes = [top + 1 for top in self.policy.costs.tops]
        self._last: tuple[object, Query | None] | None = None  # question and answer
        self.n_levels = math.prod(self._sizes)
        self.labels = Labels(self._profile_in_words, self._levels_in_words)

    def _profile_in_words(self, arm: int) -> str:
        return f"profile {self.configurations[arm]!r}"

    def _levels_in_words(self, number: int) -> str:
        return f"levels {levels_of(number, self._sizes)}"

    def observe(self, ended: Ended) -> Utilities:
        """Return the players' utilities, all None if they are too few."""
        values = ended.values or ()
        if len(values) != len(self._signs):
            return Utilities([None] * len(self._signs))
        signed = zip(self._signs, values, strict=True)
        return Utilities(None if value is None else sign * value for sign, value in signed)

    def _query(self, pull: Pull) -> Query:
        return Query(self.configurations[pull.arm], levels_of(pull.fidelity, self._sizes))

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        query = self._asked(pending)
        if query is None:
            return None
        known, level = self.configurations.find(query.profile), number_of(query.levels, self._sizes)
        pull = Pull(len(self.configurations) if known is None else known, level)
        return Wanted(pull, dict(query.profile), "search")

    def _asked(self, pending: Sequence[Pull]) -> Query | None:
        """Return what the policy asks for, which fits its models: once for the same question."""
        question = len(self.policy.history), self.policy.held_cost, tuple(pending)
        if self._last is None or self._last[0] != question:
            self._last = question, self.policy.ask([self._query(pull) for pull in pending])
        return self._last[1]

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        cost = sum(self.cost_of(each, Utilities()) for each in [pull, *pending])
        return cost <= self.policy.remaining + _ROUNDING * self.policy.budget

    def adopt(self, begun: Begun) -> Pull | None:
        level = self.n_levels - 1 if begun.levels is None else begun.levels[0]
        try:
            self.policy.actions.checked("profile", begun.configuration)
            self.policy.costs.checked("levels", levels_of(level, self._sizes))
        except (TypeError, ValueError):
            return None
        return super().adopt(begun)

    def learn(self, pull: Pull, observation: Utilities, purpose: str) -> None:
        self.policy.tell(self._query(pull), observation)

    def cost_of(self, pull: Pull, observation: Utilities) -> float:
        """Return the declared cost of a query."""
        return self.policy.costs.of(levels_of(pull.fidelity, self._sizes))

    def charge(self, lost: float, held: float) -> None:
        super().charge(lost, held)
        self.policy.held_cost = self.unlearned_cost

    def answer(self) -> Answer:
        """Return the profile from which players are believed to gain least by deviating."""
        signs = dict(zip(self.policy.actions.players, self._signs, strict=True))
        found = self.policy.recommend().mirrored(signs)
        found = replace(found, cost=found.cost + self.unlearned_cost)
        return Answer.of_game(found, dict(found.profile), found.reason)
