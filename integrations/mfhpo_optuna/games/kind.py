"""A game as a kind of experiment: its settings once it is known, and its words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_flag, check_positive, check_probability
from mfhpo.experiment import GameSettings, LateSettings
from mfhpo.experiment.kinds.games import levels_of
from mfhpo.games import MFUCBPNE, UCBPNE, GamePolicy
from mfhpo.games.costs import LevelCosts
from mfhpo.search import Numeric, OneOf
from mfhpo_optuna.games.declared import FidelityLike, GameFidelity, Players
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import LOST_KEY, EndNote

_OFTEN, _MANY = 0.3, 10  # share of trials that failed, and their number, that deserve a warning


class GameKind(Kind):
    """A game between players whose utilities are the objectives of a study; see `NashSampler`."""

    has_one_objective = False
    answers_so_far = False
    answered_by = "equilibrium"
    chooses = "profiles of a game"

    def __init__(
        self,
        players: Mapping[str, Sequence[str]],
        fidelity: FidelityLike | Mapping[str, FidelityLike] | None,
        budget: float,
        beta: float,
        probability: float,
        averaging: bool,
    ) -> None:
        self.players = Players(players)
        self.measured = GameFidelity(fidelity, self.players)
        self.budget = check_positive("budget", budget)
        self.probability = check_probability("probability", probability)
        beta = check_positive("beta", beta)
        averaging = check_flag("averaging", averaging)
        self._options = {"beta": beta, "probability": self.probability, "averaging": averaging}
        levels = self.measured.levels({})
        if levels is not None:
            # Raises for a budget that does not do, where costs are known before any trial.
            actions = {player: {player: Numeric()} for player in self.players.names}
            self.settings_of(actions, levels).runner()

    def settings_of(
        self,
        actions: Mapping[str, Mapping[str, Numeric | OneOf]],
        levels: Sequence[tuple[Any, ...]],
        **others: Any,
    ) -> GameSettings:
        """Return the settings of a game whose actions and levels are known."""
        make: Callable[..., GamePolicy] = MFUCBPNE if self.measured.fidelities else UCBPNE
        return GameSettings(
            players=actions,
            costs=self.measured.costs(levels),
            budget=self.budget,
            options={"joint": self.measured.joint, **self._options},
            make=make,
            **others,
        )

    def given(self, seed: int) -> int:
        """Return 0: profiles are chosen, and random ones while the game is not known."""
        return 0

    def settings(self, common: Mapping[str, Any]) -> LateSettings:
        """Return the settings while no trial has told what the game is: each one is random."""
        return LateSettings(
            fidelity=f"all of {', '.join(self.players.parameters)}",
            make=lambda levels: self.settings(common),
            candidates=None,
            seed=common["seed"],
            lease_seconds=common["lease_seconds"],
        )

    def objection_to(self, study: optuna.Study) -> str:
        """Return why a study cannot be run, or nothing."""
        names = self.players.names
        if len(study.directions) == len(names):
            return ""
        return (
            f"study {study.study_name!r} has {len(study.directions)} objectives, but there are "
            f"{len(names)} players {list(names)}; make it with "
            f"optuna.create_study(directions=[...]), one for each player in their order."
        )

    def cost_of(self, level: int | None, levels: Sequence[Any]) -> float:
        """Return the declared cost of a query, to guess how long it takes."""
        if not levels or level is None:
            return 1.0
        costs = LevelCosts(self.measured.costs(levels), self.players.names, self.measured.joint)
        return costs.of(levels_of(level, self.measured.sizes(levels)))

    def check(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Warn if many trials gave a player no value."""
        told = [] if known.policy is None else known.policy.history
        n_told, n_failed = len(told), sum(None in each.utilities for each in told)
        if n_failed >= max(_MANY, _OFTEN * n_told):
            known.trials.warn(
                "failures",
                f"{n_failed} of {n_told} trials gave a player no value and were paid for out of "
                f"the budget; see their errors, and mend the objective or narrow the ranges.",
            )

    def progress(self, known: StudyExperiment) -> Progress:
        """Return what was evaluated, and what it cost."""
        if known.policy is None:
            nothing = "no trial has told all players' parameters"
            return Progress("game", nothing, "", 0.0, self.budget)
        n_told, n_open = len(known.policy.history), len(known.experiment.open)
        return Progress(
            phase="game",
            configurations=f"{n_told} profiles, {n_open} under way",
            leader="",
            spent=self.budget - known.policy.remaining,
            total=self.budget,
        )

    def attributes_outside(self, known: StudyExperiment, trial: FrozenTrial) -> dict[str, Any]:
        """Return what keeps a trial that claims nothing from being taken for an evaluation."""
        order, why = known.experiment.order, "the budget is spent"
        return {LOST_KEY: EndNote(trial.number, order, why=why, is_withdrawn=True).to_dict()}
