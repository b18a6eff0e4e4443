"""MF-UCB-PNE: cheap fidelities say where equilibria may be, the target where they are."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from mfhpo._validation import check_choice, check_number, shown
from mfhpo.games.dissatisfaction import Estimate
from mfhpo.games.equilibrium import Query
from mfhpo.games.information import best_levels, information_at_level, information_of_target
from mfhpo.games.policy import Awaited, GamePolicy
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Numeric, OneOf

_ROUNDING = 1e-9
_EXPLORED = 6  # evaluations' worth of exploration that a model is trusted with from the start


class UCBPNE(GamePolicy):
    """UCB-PNE: the profile that may be an equilibrium, or the deviation from it that may pay most.

    All evaluations are at the target fidelity (Eq. 31-36).

    References
    ----------
    Tay, Nguyen, Foo and Low, No-regret sample-efficient Bayesian optimization for finding Nash
    equilibria with unknown utilities, AISTATS 2023. Zhang, Simeone and Poor, Multi-fidelity
    Bayesian optimization for Nash equilibria with black-box utilities.
    """

    def _choose(self, remaining: float, awaited: Sequence[Awaited]) -> Query | None:
        return self._evaluation()

    def _evaluation(self) -> Query:
        beliefs = self.beliefs
        reported = self.least_dissatisfied(Estimate.LOWER)
        most = beliefs.dissatisfaction(reported[None, :], Estimate.UPPER)[0]
        unhappiest = int(np.argmax(most))
        exploring = beliefs.best_response(reported[None, :], unhappiest, Estimate.UPPER)[0]
        both = np.stack((reported, exploring))
        features = self.actions.features(both)
        variances = [
            model.predict(features, model.top)[1] / model.hyperparameters.scales[-1] ** 2
            for model in self.models
        ]
        return self.target_query(both[int(np.argmax(np.max(variances, axis=0)))])


class MFUCBPNE(UCBPNE):
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
        information: Literal["target", "level"] = "target",
        **options: Any,
    ) -> None:
        super().__init__(players, costs, budget, **options)
        if not 0.0 < check_number("eta", eta) <= 1.0:
            raise ValueError(f"eta must be above 0 and at most 1, got {shown(eta)}; try 0.2.")
        check_choice("information", information, ("target", "level"))
        self._eta = float(eta)
        self._information: Literal["target", "level"] = information

    def _choose(self, remaining: float, awaited: Sequence[Awaited]) -> Query | None:
        exploration = self._exploration(remaining, awaited)
        return self._evaluation() if exploration is None else exploration

    def _exploration(self, remaining: float, awaited: Sequence[Awaited]) -> Query | None:
        """Return the next query below the target, or None if it is time to evaluate."""
        evaluation, least = self.costs.of_evaluation, self.costs.least
        if not any(self.costs.tops) or remaining < (least + evaluation) * (1.0 - _ROUNDING):
            return None
        if self._information == "target" and self._has_explored_enough(awaited):
            return None
        information = self._information_of_points()
        # Rounding must not forbid what was just allowed.
        allowed = max(remaining - evaluation, least)
        if self.joint:
            summed = information.sum(axis=1, keepdims=True)
            chosen, ratios = best_levels(summed, self.costs.table(), allowed)
            levels = np.repeat(chosen, len(self.actions), axis=1)
        else:
            levels, ratios = best_levels(information, self.costs.table(), allowed)
        best = int(np.argmax(ratios))
        tops = np.array(self.costs.tops)
        at_target = (levels[best] == tops)[tops > 0].mean()
        if at_target >= self._eta - _ROUNDING:
            return None
        query = Query(
            self.actions.space.at(self.actions.profiles[best]),
            tuple(int(level) for level in levels[best]),
        )
        cost = self.cost_of(query)
        episode, left = self._episode, self.remaining
        for before in awaited:
            left -= before.cost
            episode = self._after(episode, before, left)
        # Line 14 of Algorithm 2. The unit of all is the lowest cost, as the paper has it, where all
        # players have the same; otherwise the mean of theirs.
        unit = float(np.mean([own[0] for own in self.costs.by_player]))
        told, paid = episode.information + ratios[best] * cost, episode.cost + cost
        return None if told < paid / math.sqrt(episode.budget * unit) else query

    def _has_explored_enough(self, awaited: Sequence[Awaited]) -> bool:
        """Tell whether exploration has cost more than evaluations, and than several of them."""
        n_evaluations = len(self._evaluated)
        n_evaluations += sum(self.is_evaluation(before.query) for before in awaited)
        paid = self.cost + sum(before.cost for before in awaited)
        explored = paid - n_evaluations * self.costs.of_evaluation
        return explored >= max(_EXPLORED, n_evaluations) * self.costs.of_evaluation

    def _information_of_points(self) -> FloatArray:
        """Return the information of each level at each profile, (n_profiles, n_players, M)."""
        n_levels = max(self.costs.tops) + 1
        gains = np.full((len(self.points), len(self.models), n_levels), -np.inf)
        for player, model in enumerate(self.models):
            noise = model.hyperparameters.noise[:, None]
            variances = model.point_variances
            if self._information == "level":
                gain = information_at_level(variances, noise)
            else:
                gain = information_of_target(
                    variances, model.point_covariances, variances[-1], noise
                )
            gains[:, player, : len(gain)] = gain.T
        return gains

    def _information_of(self, query: Query) -> float:
        features = self.actions.features_of([query.profile])
        told = 0.0
        for model, level in zip(self.models, query.levels, strict=True):
            noise = float(model.hyperparameters.noise[level])
            variance, shared = model.with_target(features, level)
            if self._information == "level":
                told += float(information_at_level(variance, noise)[0])
            else:
                target_variance = model.predict(features, model.top)[1]
                told += float(information_of_target(variance, shared, target_variance, noise)[0])
        return told
