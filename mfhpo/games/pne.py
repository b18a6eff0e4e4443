"""MF-UCB-PNE: cheap fidelities say where equilibria may be, the target where they are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mfhpo._validation import check_choice, check_number, shown
from mfhpo.games.costs import About, best_levels, information_of
from mfhpo.games.dissatisfaction import Estimate
from mfhpo.games.equilibrium import Query
from mfhpo.games.policy import GamePolicy, Queried
from mfhpo.knowledge.space import Numeric, OneOf

_ROUNDING = 1e-9
_EXPLORED = 6  # evaluations' worth of exploration that a model is trusted with from the start


class UpperBounds:
    """The rule of `mfhpo.games.UCBPNE`."""

    def propose(self, game: GamePolicy, awaited: Sequence[Queried]) -> Query | None:
        """Return the profile that may be an equilibrium, or the deviation that may pay most."""
        beliefs = game.beliefs
        reported = game.least_dissatisfied(Estimate.LOWER)
        most = beliefs.dissatisfaction(reported[None, :], Estimate.UPPER)[0]
        unhappiest = int(np.argmax(most))
        [exploring], _ = beliefs.best_response(reported[None, :], unhappiest, Estimate.UPPER)
        both = np.stack((reported, exploring))
        features = game.actions.features(both)
        variances = [model.predict(features, model.top)[1] / model.unit**2 for model in game.models]
        return game.target_query(both[int(np.argmax(np.max(variances, axis=0)))])


@dataclass(frozen=True)
class MultiFidelityBounds:
    """The rule of `mfhpo.games.MFUCBPNE`, with its `eta` and `information`."""

    eta: float
    about: About

    def __post_init__(self) -> None:
        if not 0.0 < check_number("eta", self.eta) <= 1.0:
            raise ValueError(f"eta must be above 0 and at most 1, got {shown(self.eta)}; try 0.2.")
        check_choice("information", self.about, ("target", "level"))

    def propose(self, game: GamePolicy, awaited: Sequence[Queried]) -> Query | None:
        """Return what tells most for its cost, or an evaluation if it is time for one."""
        return self._exploration(game, awaited) or UpperBounds().propose(game, awaited)

    def _exploration(self, game: GamePolicy, awaited: Sequence[Queried]) -> Query | None:
        costs, actions = game.costs, game.actions
        evaluation, least = costs.of_evaluation, costs.least
        remaining = game.remaining - sum(before.cost for before in awaited)
        if not any(costs.tops) or remaining < (least + evaluation) * (1.0 - _ROUNDING):
            return None
        if self.about == "target" and _has_explored_enough(game, awaited):
            return None
        information = np.full((len(game.points), len(actions), max(costs.tops) + 1), -np.inf)
        for player, model in enumerate(game.models):
            of_player = information_of(model, game.points, self.about)
            information[:, player, : len(of_player)] = of_player.T
        # Rounding must not forbid what was just allowed.
        allowed = max(remaining - evaluation, least)
        if game.joint:
            summed = information.sum(axis=1, keepdims=True)
            chosen, ratios = best_levels(summed, costs.table(), allowed)
            levels = np.repeat(chosen, len(actions), axis=1)
        else:
            levels, ratios = best_levels(information, costs.table(), allowed)
        best, tops = int(np.argmax(ratios)), np.array(costs.tops)
        if (levels[best] == tops)[tops > 0].mean() >= self.eta - _ROUNDING:
            return None
        query = Query(actions.space.at(actions.profiles[best]), tuple(levels[best].tolist()))
        cost = costs.of(query.levels)
        told, paid, begun_with = _episode(game, awaited)
        # Line 14 of Algorithm 2. The unit of all is the lowest cost, as the paper has it, where all
        # players have the same; otherwise the mean of theirs.
        unit = float(np.mean([own[0] for own in costs.by_player]))
        told, paid = told + ratios[best] * cost, paid + cost
        return None if told < paid / math.sqrt(begun_with * unit) else query


def _episode(game: GamePolicy, awaited: Sequence[Queried]) -> tuple[float, float, float]:
    """Return information and cost since the last evaluation, and the budget left after that."""
    information, cost, budget = 0.0, 0.0, game.budget
    for made in (*game.history, *awaited):
        information, cost = information + made.information, cost + made.cost
        if game.is_evaluation(made.query):
            information, cost, budget = 0.0, 0.0, budget - cost
    return information, cost, budget


def _has_explored_enough(game: GamePolicy, awaited: Sequence[Queried]) -> bool:
    """Tell whether exploration has cost more than evaluations, and than several of them."""
    n_evaluations = len(game.evaluated)
    n_evaluations += sum(game.is_evaluation(before.query) for before in awaited)
    paid = game.cost + sum(before.cost for before in awaited)
    explored = paid - n_evaluations * game.costs.of_evaluation
    return explored >= max(_EXPLORED, n_evaluations) * game.costs.of_evaluation


class UCBPNE(GamePolicy):
    """UCB-PNE: the profile that may be an equilibrium, or the deviation from it that may pay most.

    All evaluations are at the target fidelity (Eq. 31-36).

    References
    ----------
    Tay, Nguyen, Foo and Low, No-regret sample-efficient Bayesian optimization for finding Nash
    equilibria with unknown utilities, AISTATS 2023. Zhang, Simeone and Poor, Multi-fidelity
    Bayesian optimization for Nash equilibria with black-box utilities.
    """

    def __init__(
        self,
        players: Mapping[str, Mapping[str, Numeric | OneOf]],
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        budget: float,
        **options: Any,
    ) -> None:
        super().__init__(players, costs, budget, UpperBounds(), **options)


class MFUCBPNE(GamePolicy):
    """MF-UCB-PNE (Algorithms 1 and 2 of Zhang, Simeone and Poor; see `UCBPNE`).

    An episode explores: it queries the profile and the levels that tell most for their cost, while
    at least one player is below the target. It ends with an evaluation as in `UCBPNE`, when the
    target itself tells most for its cost, or little is told any more. Exploration is paid no more
    than evaluations are, once it has cost as much as six of them: a model that is wrong must not
    keep the target from being seen.

    Parameters
    ----------
    eta
        Share of the players whose best level is the target from which on it is evaluated (Eq. 29):
        with 0.2, one of up to five. Players without a cheaper level do not count. A large share of
        many players is reached late, and the target hardly evaluated.
    information
        "target": what a query tells about the utility at the target, the default. "level": what it
        tells about the utility at its own level, as in Eq. 24. Then a cheap level seems good that
        says nothing about the target. With "level", exploration has no limit, as published.

    Examples
    --------
    >>> from mfhpo.knowledge.space import Numeric
    >>> policy = MFUCBPNE({"row": {"x": Numeric()}, "column": {"y": Numeric()}}, [1, 8], budget=64)
    >>> while (query := policy.ask()) is not None:
    ...     x, y = query.profile["x"], query.profile["y"]
    ...     policy.tell(query, [-((x - 0.6 * y) ** 2), -((y - 0.6 - 0.2 * x) ** 2)])
    >>> answer = policy.recommend()
    >>> round(answer.profile["x"], 1), round(answer.profile["y"], 1), answer.finished
    (0.4, 0.7, True)
    """

    def __init__(
        self,
        players: Mapping[str, Mapping[str, Numeric | OneOf]],
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        budget: float,
        *,
        eta: float = 0.2,
        information: About = "target",
        **options: Any,
    ) -> None:
        rule = MultiFidelityBounds(eta, information)
        super().__init__(players, costs, budget, rule, information, **options)
