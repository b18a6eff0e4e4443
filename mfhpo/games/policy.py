"""The run of a search for an equilibrium: what was told and paid, models that learn, answers."""

import numbers
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from mfhpo._validation import (
    check_flag,
    check_instance,
    check_positive,
    check_probability,
    check_seed,
    check_sequence,
    unwrapped,
)
from mfhpo.games.actions import Actions
from mfhpo.games.costs import About, LevelCosts, information_of
from mfhpo.games.dissatisfaction import Beliefs, Estimate
from mfhpo.games.equilibrium import Deviation, Equilibrium, Query
from mfhpo.games.model.fitting import LearnedUtility, checked
from mfhpo.games.model.mogp import Hyperparameters
from mfhpo.games.model.posterior import Assumptions
from mfhpo.games.statements import Statements
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Numeric, OneOf, Point
from mfhpo.racing.native import one_thread

_ROUNDING = 1e-9
_LARGEST = 1e75  # squares of what is larger have no place in a number
_TRIES = 2  # of a query that fails
_LATEST = 64  # evaluated profiles from which searches may go on


class Queried(NamedTuple):
    """A query, its cost, and what it told about the utilities when it was to be made, in nats.

    `utilities` are None where they could not be measured, and empty while it is under way.
    """

    query: Query
    cost: float
    information: float
    utilities: tuple[float | None, ...] = ()


class Rule(Protocol):
    """Decides what is queried next; it holds its settings only."""

    def propose(self, game: "GamePolicy", awaited: Sequence[Queried]) -> Query | None:
        """Return the next query, which the budget pays for beside those under way."""


class GamePolicy:
    """Runs a rule that decides which profile of a game is evaluated next, at which fidelities.

    It proposes one query at a time; who wants several asks again, with those before as pending.
    Queries are evaluated anywhere and told in any order. Larger utilities are better.

    Parameters
    ----------
    players
        By name, each player's parameters by name, `Numeric` or `OneOf`.
    costs
        Of one evaluation of one player's utility at each level, increasing; the last level is the
        target. The same for all players, or by player, of which each may have as many levels as it
        will. With `joint`, of a run, which serves all players.
    budget
        What may be paid in all, in the unit of the costs.
    rule
        What decides, by ``propose(game, awaited)``.
    about
        What the information of queries is about: the utility at the "target" or at their "level".
        None: the rule does not ask for it.
    joint
        Whether one run serves all players: they are at the same level then, and it is paid for
        once. Otherwise each player's utility is measured by itself.
    beta
        Half-width of the bounds that choose what is evaluated, in posterior standard deviations: 1
        to 2 as a rule. (Eq. 43 needs to know a norm of the utilities.)
    probability
        Of the intervals of an answer.
    hyperparameters
        Of each player's model, if they are known; None: they are fitted.
    averaging
        Whether levels differ only in how many evaluations they average, in proportion to their
        cost: then there is one function, and noise that is smaller the more is paid.
    sigma
        Standard deviation of the noise of an observation (with `averaging`, of one of cost 1);
        None: it is fitted.
    seed
        Of quasi-random profiles and of the moves of searches.
    """

    def __init__(
        self,
        players: Mapping[str, Mapping[str, Numeric | OneOf]],
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        budget: float,
        rule: Rule,
        about: About | None = None,
        *,
        joint: bool = False,
        beta: float = 1.5,
        probability: float = 0.9,
        hyperparameters: Sequence[Hyperparameters] | None = None,
        averaging: bool = False,
        sigma: float | None = None,
        seed: int = 0,
    ) -> None:
        self.actions = Actions(players, check_seed(seed))
        self.joint = check_flag("joint", joint)
        self.costs = LevelCosts(costs, list(self.actions.players), joint)
        self.budget = check_positive("budget", budget)
        self.beta = check_positive("beta", beta)
        self.probability = check_probability("probability", probability)
        self.seed = seed
        self._rule, self._about = rule, about
        if self.costs.of_evaluation > self.budget:
            raise ValueError(
                f"budget must be at least {self.costs.of_evaluation:g}, what one evaluation of all "
                f"players at the target costs, got {budget!r}."
            )
        check_flag("averaging", averaging)
        variance = None if sigma is None else check_positive("sigma", sigma) ** 2
        if hyperparameters is not None and (sigma is not None or averaging):
            raise ValueError(
                "hyperparameters say what noise there is; leave out sigma and averaging."
            )
        assumptions = [
            Assumptions.of_levels(own, self.actions.groups, averaging, variance)
            for own in self.costs.by_player
        ]
        declared = checked(hyperparameters, assumptions)
        self.points: FloatArray = self.actions.features(self.actions.profiles)
        self.history: list[Queried] = []
        """All queries in the order in which they were told."""
        self.evaluated: list[Query] = []
        """Those of them at the target fidelity for all players."""
        self.cost = 0.0
        """The cost paid so far."""
        self.held_cost = 0.0
        """The cost of queries of which nothing was told."""
        self._learned = [
            LearnedUtility(of_player, known)
            for of_player, known in zip(assumptions, declared, strict=True)
        ]
        self.models = [learned.model for learned in self._learned]
        """Beliefs about each player's utility."""

    @one_thread()
    def ask(self, pending: Sequence[Query] = ()) -> Query | None:
        """Propose the next query, or None if the budget does not pay for another one.

        The answer is a function of what was told and of `pending`, the queries that are under way:
        their costs count, and the models know where they are.
        """
        under_way = check_sequence("pending", pending, "a list of queries")
        pending = [self._checked(each, f"pending[{n}]") for n, each in enumerate(under_way)]
        remaining = self.remaining - sum(self.cost_of(query) for query in pending)
        if remaining < self.costs.of_evaluation * (1.0 - _ROUNDING):
            return None
        known = self.models
        self.models = [copy(model) for model in known]  # to learn what is under way
        try:
            awaited = []
            for query in pending:
                [features] = self.actions.space.features([query.profile])
                awaited.append(self._queried(query, features))
                for model, level in zip(self.models, query.levels, strict=True):
                    model.add(features, level, None)
            chosen = self._rule.propose(self, awaited)
        finally:
            self.models = known
        is_lost = bool(self.history) and not self.has_seen
        failed = [None in told.utilities for told in self.history if told.query == chosen]
        fails_always = len(failed) >= _TRIES and all(failed)
        if chosen is None or not (is_lost or fails_always):
            return chosen
        # Models do not say that it must not be asked for again.
        rng = np.random.default_rng((self.seed, len(self.history), len(awaited), 1))
        at = self.actions.profiles[rng.integers(len(self.actions.profiles))]
        return Query(self.actions.space.at(at), chosen.levels)

    def tell(self, query: Query, utilities: Sequence[float | None]) -> None:
        """Learn what a query gave: one utility for each player, ValueError for what does not fit.

        None, or a number that is not finite or beyond 1e75, is for one that could not be measured.
        One that fails alone is no observation. Failures that repeat, or lie near each other without
        an observation, count as the player's worst utility at that level.
        """
        query = self._checked(query, "query")
        utilities = check_sequence("utilities", utilities, "one number or None for each player")
        if len(utilities) != len(self.actions):
            raise ValueError(
                f"utilities must have one entry for each of the {len(self.actions)} players, got "
                f"{list(utilities)!r}."
            )
        utilities = list(map(unwrapped, utilities))
        for player, value in zip(self.actions.players, utilities, strict=True):
            check_instance(f"utilities[{player!r}]", value, numbers.Real | None, "numbers or None")
        values = tuple(map(_measured, utilities))
        [features] = self.actions.space.features([query.profile])
        self.history.append(self._queried(query, features)._replace(utilities=values))
        self.cost += self.history[-1].cost
        if self.is_evaluation(query):
            self.evaluated.append(query)
        for learned, level, value in zip(self._learned, query.levels, values, strict=True):
            learned.tell(features, level, value)
        self.models = [learned.model for learned in self._learned]

    @property
    def finished(self) -> bool:
        """Whether the budget does not pay for another evaluation of all players."""
        return self.remaining < self.costs.of_evaluation * (1.0 - _ROUNDING)

    @property
    def remaining(self) -> float:
        """What is left of the budget."""
        return self.budget - self.cost - self.held_cost

    def cost_of(self, query: Query) -> float:
        """Return the cost of a query."""
        return self.costs.of(query.levels)

    def is_evaluation(self, query: Query) -> bool:
        """Tell whether all players are at the target fidelity."""
        return tuple(query.levels) == self.costs.tops

    @one_thread()
    def recommend(self) -> Equilibrium:
        """Return the profile from which players gain least by deviating.

        If all profiles can be compared, it minimises the largest dissatisfaction over games drawn
        from the posterior. Otherwise it is the best on a path of best responses, by the means of
        the likeliest models. A player without observations might gain without a limit.
        """
        nothing = Equilibrium(
            profile={},
            dissatisfaction={},
            utilities={},
            cost=self.cost,
            budget=self.budget,
            n_queries=len(self.history),
            n_evaluations=len(self.evaluated),
            probability=self.probability,
            finished=self.finished,
        )
        if not self.has_seen:
            return nothing
        statements = self._statements()
        cube = statements.most_stable(self.least_dissatisfied(Estimate.MEAN))
        return replace(
            nothing,
            profile=self.actions.space.at(cube),
            dissatisfaction=statements.dissatisfaction(cube, self.probability),
            utilities=statements.utilities(cube, self.probability),
        )

    @one_thread()
    def deviations(self, profile: Point) -> dict[str, Deviation]:
        """Return each player's gain by deviating from a profile, and how; ValueError if unknown."""
        profile = self.actions.checked("profile", profile)
        if not self.has_seen:
            raise ValueError("nothing was observed yet; tell utilities first.")
        cube = self.actions.space.place(profile, np.random.default_rng(self.seed))
        return self._statements().deviations(cube, self.probability)

    @property
    def beliefs(self) -> Beliefs:
        """Beliefs about all players' utilities."""
        return Beliefs(self.actions, self.models, self.beta)

    def least_dissatisfied(self, estimate: Estimate) -> FloatArray:
        """Return the profile of the smallest largest dissatisfaction, a point of the unit cube."""
        rng = np.random.default_rng((self.seed, len(self.history)))
        latest = self.evaluated[-_LATEST:]
        starts = [self.actions.space.place(query.profile, rng) for query in latest]
        return self.beliefs.least(estimate, rng, np.array(starts) if starts else None)

    def target_query(self, cube: FloatArray) -> Query:
        """Return the evaluation of a profile, a point of the unit cube, for all players."""
        return Query(self.actions.space.at(cube), self.costs.tops)

    @property
    def has_seen(self) -> bool:
        """True if any utility was observed."""
        return any(learned.seen.has_seen for learned in self._learned)

    def _statements(self) -> Statements:
        rng = np.random.default_rng((self.seed, len(self.history), 1))
        evaluated = [query.profile for query in self.evaluated]
        return Statements(self.beliefs, self._learned, evaluated, rng)

    def _queried(self, query: Query, features: FloatArray) -> Queried:
        information = 0.0
        if self._about is not None:
            for model, level in zip(self.models, query.levels, strict=True):
                told = information_of(model, features[None, :], self._about)
                information += float(told[level, 0])
        return Queried(query, self.cost_of(query), information)

    def _checked(self, query: Query, name: str) -> Query:
        """Return a query of the game in plain numbers, or raise."""
        check_instance(name, query, Query, "a mfhpo.games.Query, as it was asked for")
        profile = self.actions.checked(f"{name}.profile", query.profile)
        return Query(profile, self.costs.checked(f"{name}.levels", query.levels))


def _measured(value: float | None) -> float | None:
    if value is None:
        return None
    try:
        # Of NumPy's shorter numbers, too: 1e75 itself is infinite among them.
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) <= _LARGEST else None
