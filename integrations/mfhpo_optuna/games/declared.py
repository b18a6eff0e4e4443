"""A game as its sampler's arguments declare it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mfhpo._validation import check_positive, check_probability
from mfhpo.games import MFUCBPNE, UCBPNE, GamePolicy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.search import Numeric, OneOf
from mfhpo_optuna.games.fidelity import GameFidelity
from mfhpo_optuna.games.players import Players

__all__ = ["DeclaredGame"]


class DeclaredGame:
    """Players, fidelity and budget, and what makes a policy of them.

    Parameters
    ----------
    players, fidelity, costs, budget, joint, beta, probability, averaging
        See `NashSampler`.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong type, or out of range.
    """

    def __init__(
        self,
        players: Mapping[str, Sequence[str]],
        fidelity: str | Fidelity | Mapping[str, str | Fidelity] | None,
        costs: Sequence[float] | Mapping[str, Sequence[float]] | None,
        budget: float,
        joint: bool | None,
        beta: float,
        probability: float,
        averaging: bool,
    ) -> None:
        self.players = Players(players)
        self.fidelity = GameFidelity(fidelity, costs, joint, self.players)
        self.budget = check_positive("budget", budget)
        self.probability = check_probability("probability", probability)
        self._beta = check_positive("beta", beta)
        if not isinstance(averaging, bool):
            raise TypeError(f"averaging must be True or False, got {averaging!r}.")
        if averaging and not self.fidelity.fidelities:
            raise ValueError(
                "averaging=True says how the levels of a fidelity differ, but there is none; leave "
                "it out."
            )
        self._averaging = averaging
        levels = self.fidelity.levels({})
        if levels is not None:
            # Raises for a budget that does not do, where costs are known before any trial.
            actions = {player: {player: Numeric()} for player in self.players.names}
            self.policy(actions, self.fidelity.costs(levels), 0)

    def policy(
        self,
        actions: Mapping[str, Mapping[str, Numeric | OneOf]],
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        seed: int,
    ) -> GamePolicy:
        """Make the policy.

        Parameters
        ----------
        actions
            What each player can choose, by parameter.
        costs
            Of an evaluation at each level, for all players or by player.
        seed
            Makes what is drawn repeatable.

        Raises
        ------
        ValueError
            If the budget does not pay for one evaluation at the target.
        """
        kind: type[GamePolicy] = MFUCBPNE if self.fidelity.fidelities else UCBPNE
        return kind(
            actions,
            costs,
            self.budget,
            joint=self.fidelity.joint,
            beta=self._beta,
            probability=self.probability,
            averaging=self._averaging,
            seed=seed,
        )
