"""The answer of a search for an equilibrium, in the terms of its study."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mfhpo.games import Dissatisfaction, Equilibrium, Utility
from mfhpo.problem import plain
from mfhpo.racing.recommendation import params_in_words
from mfhpo_optuna.games.study import NashStudy


@dataclass(frozen=True)
class StudyDeviation:
    """The best deviation of one player from a profile, all others staying.

    Parameters
    ----------
    gain
        What it may bring the player, in the unit of its objective.
    params
        All players' parameters after it, by the model's means.
    """

    gain: Dissatisfaction
    params: dict[str, Any]


@dataclass(frozen=True)
class StudyEquilibrium:
    """The profile from which players are believed to gain least by deviating.

    Parameters
    ----------
    params
        All players' parameters, without fidelities; empty while nothing was observed.
    dissatisfaction, utilities
        By player, what it may gain by deviating while the others stay, never negative; and its
        objective at the profile. Both are in the unit of its objective, in the study's own sign.
    probability
        With which the model that was fitted believes in each interval.
    finished, reason
        Whether the budget is used up; why the answer is what it is.
    cost, budget
        What was paid, and what may be paid.
    trials, evaluations
        Trials that were learned from, and those of them at the target fidelity for all players.
    """

    params: dict[str, Any]
    dissatisfaction: Mapping[str, Dissatisfaction]
    utilities: Mapping[str, Utility]
    probability: float
    finished: bool
    reason: str
    cost: float
    budget: float
    trials: int
    evaluations: int

    @property
    def epsilon(self) -> float:
        """The largest mean dissatisfaction, in standard deviations; infinite if one is unknown."""
        return max((gain.relative for gain in self.dissatisfaction.values()), default=math.inf)

    @property
    def at_most(self) -> float:
        """The largest upper end of their intervals, in standard deviations of the objective."""
        gains = self.dissatisfaction.values()
        return max((gain.relative_interval[1] for gain in gains), default=math.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        content: dict[str, Any] = plain(asdict(self))
        return content

    def __str__(self) -> str:
        paid = (
            f"  cost        {self.cost:.6g} of {self.budget:.6g} in {self.trials} trials, "
            f"{self.evaluations} of them at the target fidelity"
        )
        because = f"  because     {self.reason}"
        if not self.params:
            return "\n".join(("NO EQUILIBRIUM YET", because, paid))
        head = "EQUILIBRIUM" if self.finished else "EQUILIBRIUM SO FAR"
        width = max(10, *(len(player) for player in self.dissatisfaction))
        unknown = [player for player, gain in self.dissatisfaction.items() if gain.mean == math.inf]
        claim = (
            f"none, for nothing was observed of {' and '.join(unknown)}"
            if unknown
            else f"nobody gains more than {self.epsilon:.3g} standard deviations of its "
            f"objective by deviating alone (at most {self.at_most:.3g})"
        )
        lines = [f"{head}: {params_in_words(self.params)}", f"  claim       {claim}"]
        for player, gain in self.dissatisfaction.items():
            utility = self.utilities[player]
            lines.append(
                f"  {player:{width}}  {utility.mean:.5g} in [{utility.interval[0]:.5g}, "
                f"{utility.interval[1]:.5g}]; would gain {gain.mean:.4g} in "
                f"[{gain.interval[0]:.4g}, {gain.interval[1]:.4g}]"
            )
        lines += [
            because,
            paid,
            f"  intervals   each has probability {self.probability:g}, by the models that go with "
            f"the trials; no guarantee",
        ]
        return "\n".join(lines)


def answer_of(game: NashStudy) -> StudyEquilibrium:
    """Return the answer of a study's game so far, also before anything is known."""
    answer = game.recommend()
    signs = dict(zip(game.players.names, game.signs, strict=True))
    return StudyEquilibrium(
        params=game.space.params(answer.profile) if answer.profile else {},
        dissatisfaction=answer.dissatisfaction,
        utilities={
            player: _in_own_sign(utility, signs[player])
            for player, utility in answer.utilities.items()
        },
        probability=answer.probability,
        finished=answer.finished,
        reason=_reason(game, answer),
        cost=answer.cost,
        budget=answer.budget,
        trials=answer.n_queries,
        evaluations=answer.n_evaluations,
    )


def deviations_of(game: NashStudy, params: Mapping[str, Any]) -> dict[str, StudyDeviation]:
    """Return what each player may gain by deviating from a profile; fidelities are ignored.

    Raises ValueError if parameters are missing or out of range, or nothing was observed yet.
    """
    if game.policy is None:
        raise ValueError("no trial has told all players' parameters and objectives yet.")
    if not game.policy.has_seen:
        raise ValueError("no trial has given values yet.")
    profile = {}
    for name in game.players.parameters:
        if name not in params:
            raise ValueError(
                f"params must have the parameters {list(game.players.parameters)}, got "
                f"{list(params)}."
            )
        place = game.space.place(name, params[name])
        if place is None:
            raise ValueError(
                f"params[{name!r}] must be within {game.space.distributions[name]}, got "
                f"{params[name]!r}."
            )
        profile[name] = place
    # Those with one value alone are no part of the policy's game.
    own = {name: profile.get(name, 0.0) for name in game.policy.actions.parameters}
    return {
        player: StudyDeviation(found.gain, game.space.params(found.profile))
        for player, found in game.policy.deviations(own).items()
    }


def _reason(game: NashStudy, answer: Equilibrium) -> str:
    if game.policy is None:
        return "no trial has told all players' parameters and objectives yet"
    if not answer.profile:
        return f"none of the {answer.n_queries} trials gave a value"
    if answer.finished:
        return "the budget is used up"
    if not answer.n_evaluations:
        return "nothing was evaluated at the target fidelity yet"
    return f"{answer.budget - answer.cost:.6g} of the budget is left"


def _in_own_sign(utility: Utility, sign: float) -> Utility:
    lower, upper = sorted(sign * end for end in utility.interval)
    return Utility(sign * utility.mean, (lower, upper))
