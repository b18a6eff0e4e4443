"""A game's study: its trials as observations of a policy that looks for an equilibrium."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo.games import Equilibrium, GamePolicy, Query
from mfhpo_optuna.games.declared import DeclaredGame
from mfhpo_optuna.games.faults import fault_of, other_game, unowned
from mfhpo_optuna.games.queries import Queries, planned, signature_of
from mfhpo_optuna.games.space import GameSpace
from mfhpo_optuna.study.attributes import (
    GAME_KEY,
    QUERY_KEY,
    parameters_before,
    read_attribute,
    warn_of_attribute,
    write_note,
)
from mfhpo_optuna.study.levels import levels_in
from mfhpo_optuna.study.loop.state import Progress
from mfhpo_optuna.study.loop.storage_errors import is_spoilt
from mfhpo_optuna.study.trials.news import TrialNews, by_their_ends, seconds_of
from mfhpo_optuna.study.trials.processes import is_surely_dead
from mfhpo_optuna.study.trials.under_way import default_lease

Listener = Callable[[FrozenTrial, Query, Sequence[float | None]], None]

_HOPELESS = 30  # trials that failed while none has told anything
# Trials, without a value between them, that their storage may spoil: further ones are failures.
_MOST_SPOILT = 100
_OFTEN, _MANY = 0.3, 10  # share of trials that failed, and their number, that deserve a warning


class NashStudy:
    """Translates between the trials of one study and a policy."""

    def __init__(
        self, study: optuna.Study, declared: DeclaredGame, seed: int, lease: float | None
    ) -> None:
        self.declared = declared
        self.players = declared.players
        self.fidelity = declared.fidelity
        maximise = StudyDirection.MAXIMIZE
        # By player, -1 where its objective is minimised: values are mirrored.
        self.signs = tuple(1.0 if way == maximise else -1.0 for way in study.directions)
        self.space = GameSpace(self.players, self.fidelity.names, seed)
        self.levels: tuple[tuple[Any, ...], ...] = ()
        self.policy: GamePolicy | None = None  # None until the game is known
        self.under_way: dict[int, tuple[FrozenTrial, Query]] = {}  # by number
        self.told_of_cut = False  # whether the user knows what an `optimize` has left of the budget
        # When trials began in this process, by a clock that nobody sets.
        self.begun_here: dict[int, float] = {}
        self.over: set[int] = set()  # trials that began when nothing was left for them
        # After the policy has learned from a trial: the trial, its query and the values.
        self.listener: Listener | None = None
        self._study_name = study.study_name
        self._earlier: dict[str, Any] = read_attribute(study, GAME_KEY) or {}
        self._is_noted = bool(self._earlier)
        # Why the game cannot be played: a sentence, or nothing.
        self.trouble = other_game(self._study_name, self._earlier, self._note)
        self._queries: Queries | None = None
        self._seed = seed
        self._lease = lease
        self._seconds_per_cost = 0.0  # of the slowest trial
        self._news = TrialNews()
        self._told = 0
        self._failed = 0
        self._spoilt = 0
        self._early_failures: list[FrozenTrial] = []
        self._warned_of: set[str] = set()
        self._answer: tuple[int, Equilibrium] | None = None

    # Reading the study.

    def read(self, study: optuna.Study) -> bool:
        """Tell the policy of what has finished; False if the study was deleted and made again."""
        if self.trouble:
            return True
        news = self._news.read(study)
        if news is None:
            return False
        for trial in news:
            plan = self._planned(trial)
            if trial.state == TrialState.RUNNING and plan is not None:
                self.under_way[trial.number] = trial, plan
            elif not trial.state.is_finished():
                self.under_way.pop(trial.number, None)  # its worker gave up what was planned
        for trial in by_their_ends(news):
            fault = self.finish(trial, trial.state, trial.values, seconds_of(trial))
            if fault:
                self._warn("fault", f"{fault} It does not count, nor do others like it.")
        return True

    def finish(
        self,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
        seconds: float | None,
    ) -> str:
        """Take in a trial that ended; return what is wrong with its parameters, if anything is."""
        self._news.close(trial.number)
        self.under_way.pop(trial.number, None)
        if is_spoilt(trial, state) and self._spoilt < _MOST_SPOILT:
            self._spoilt += 1
            return ""
        plan = self._planned(trial)
        if plan is None and read_attribute(trial, QUERY_KEY):
            return ""  # it began when nothing was left
        if state != TrialState.COMPLETE:
            values = None
        if values is not None:
            self._spoilt = 0
            fault = fault_of(trial, self.players, self.fidelity, self.space)
            if fault:
                return fault
        if not any(self.space.change(*asked) for asked in trial.distributions.items()):
            self.space.learn(trial.distributions)
        self._find_out()
        if self.policy is not None:
            self._tell(self.policy, trial, values, seconds)
        elif plan is not None and values is None:
            self._early_failures.append(trial)
        return ""

    def _find_out(self) -> None:
        """Make the policy as soon as trials have told what the game is."""
        if self.policy is not None or self.trouble or not self.space.is_known:
            return
        try:
            levels = self.fidelity.levels(self.space.distributions)
            if levels is None:
                return
            costs = self.fidelity.costs(levels)
            policy = self.declared.policy(self.space.actions(), costs, self._seed)
        except ValueError as error:
            self.trouble = str(error)
            return
        self.policy, self.levels = policy, levels
        self.trouble = other_game(self._study_name, self._earlier, self._note)
        if self.trouble:
            self.policy = None
            return
        parameters, n_players = tuple(policy.actions.parameters), len(self.signs)
        self._queries = Queries(self.space, parameters, self.fidelity, levels, n_players)
        for trial in self._early_failures:
            self._tell(policy, trial, None, seconds_of(trial))
        self._early_failures.clear()

    def _tell(
        self,
        policy: GamePolicy,
        trial: FrozenTrial,
        values: Sequence[float] | None,
        seconds: float | None,
    ) -> None:
        query = self._query_of(trial, self._planned(trial))
        if query is None:
            if values is not None:
                self._warn_of_outside(trial)
            return
        if seconds is not None:
            self._seconds_per_cost = max(self._seconds_per_cost, seconds / policy.cost_of(query))
        told: list[float | None] = [None] * len(self.signs)
        if values is not None:
            told = [sign * value for sign, value in zip(self.signs, values, strict=True)]
        policy.tell(query, told)
        self._told += 1
        self._failed += not all(value is not None and math.isfinite(value) for value in told)
        if self._failed >= max(_MANY, _OFTEN * self._told):
            self._warn(
                "failures",
                f"{self._failed} of {self._told} trials gave a player no value (they failed, were "
                f"pruned or returned what is no number) and were paid for out of the budget; see "
                f"their errors, and mend the objective or narrow the ranges.",
            )
        if self.listener is not None:
            self.listener(trial, query, values or [None] * len(self.signs))

    # What trials evaluate.

    def propose(self, trial: FrozenTrial) -> Query | None:
        """Return what a trial that begins is to evaluate; None if no budget is left for it."""
        if self.policy is None:
            return Query({}, (0,) * len(self.signs))
        plan = self.policy.ask(self._pending(trial.number))
        if plan is not None and parameters_before(trial) is not None:
            return self._query_of(trial, plan) or plan
        return plan

    def value_for(self, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """Return the value of a parameter that an objective asks for.

        Raises ValueError if nobody owns it, or if it was asked for in another way before.
        """
        if name not in self.space:
            raise ValueError(unowned(trial, [name], self.players, self.fidelity))
        change = self.space.change(name, distribution)
        if change:
            raise ValueError(f"trial {trial.number}: {change}")
        _, plan = self.under_way.get(trial.number, (trial, None))
        if name in self.fidelity.names:
            position = self.fidelity.names.index(name)
            levels = levels_in(self.fidelity.fidelities[position], distribution)
            return levels[min(plan.levels[position], len(levels) - 1) if plan else 0]
        if plan is None or name not in plan.profile:
            return self.space.drawn(trial.number, name, distribution)
        return self.space.value(name, plan.profile[name])

    def ahead_of(self, trial_number: int) -> dict[int, Query]:
        """Return the plans of trials with lower numbers, to which this one gives way."""
        items = self.under_way.items()
        return {number: plan for number, (_, plan) in items if number < trial_number}

    def _pending(self, trial_number: int) -> list[Query]:
        queries = (self._query_of(trial, plan) for trial, plan in self._waited_for(trial_number))
        return [query for query in queries if query is not None]

    def chosen_by(self, trial_number: int) -> list[tuple[int, Any, str | None]]:
        """Return the other trials that are waited for, with workers and digests of arguments."""
        return [(t.number, *signature_of(t)) for t, _ in self._waited_for(trial_number)]

    def _waited_for(self, trial_number: int) -> list[tuple[FrozenTrial, Query]]:
        others = [of for number, of in sorted(self.under_way.items()) if number != trial_number]
        return [(trial, plan) for trial, plan in others if not self._expired(trial, plan)]

    def _expired(self, trial: FrozenTrial, plan: Query) -> bool:
        """Return whether a trial is no longer waited for: a dead worker, or a lease over."""
        worker, _ = signature_of(trial)
        if is_surely_dead(worker):
            return True
        lease = self._lease
        if lease is None:
            lease = default_lease(self._seconds_per_cost * self._cost_of(trial, plan))
        return self._news.seconds_under_way(trial.number, trial.datetime_start) > lease

    def _planned(self, trial: FrozenTrial) -> Query | None:
        plan = planned(trial)
        if plan is None or len(plan.levels) == len(self.signs):
            return plan
        warn_of_attribute(trial, QUERY_KEY)
        return None

    def _query_of(self, trial: FrozenTrial, plan: Query | None) -> Query | None:
        return None if self._queries is None else self._queries.of(trial, plan)

    def _cost_of(self, trial: FrozenTrial, plan: Query) -> float:
        query = self._query_of(trial, plan)
        return 0.0 if query is None or self.policy is None else self.policy.cost_of(query)

    # What the sampler asks.

    def note(self, study: optuna.Study) -> None:
        """Leave word in the study of the game that is played in it."""
        if not self._is_noted:
            write_note(study, GAME_KEY, self._note)
            self._is_noted = True

    @property
    def hopeless(self) -> bool:
        """Whether so many trials failed, and no other told anything, that none may ever."""
        if self.policy is None:
            return len(self._early_failures) >= _HOPELESS
        return self._told >= _HOPELESS and not self.policy.has_seen

    def recommend(self) -> Equilibrium:
        """Return the policy's answer, or an empty one while the game is not known."""
        if self.policy is None:
            budget, probability = self.declared.budget, self.declared.probability
            return Equilibrium({}, {}, {}, 0.0, budget, 0, 0, probability, False)
        if self._answer is None or self._answer[0] != self._told:
            self._answer = self._told, self.policy.recommend()
        return self._answer[1]

    def progress(self) -> Progress:
        """Return what was evaluated, and what it cost."""
        budget = self.declared.budget
        if self.policy is None:
            return Progress("game", "no trial has told all players' parameters", "", 0.0, budget)
        return Progress(
            phase="game",
            configurations=f"{self._told} profiles, {len(self.under_way)} under way",
            leader="",
            spent=self.policy.cost,
            total=self.policy.budget,
        )

    @property
    def _note(self) -> dict[str, Any]:
        owned = {player: sorted(names) for player, names in self.players.owned.items()}
        note: dict[str, Any] = {"players": owned, "fidelity": list(self.fidelity.names)}
        if self.policy is not None:
            note["levels"] = [list(of_fidelity) for of_fidelity in self.levels]
            note["costs"] = [own.tolist() for own in self.policy.costs.by_player]
        return note

    def _warn_of_outside(self, trial: FrozenTrial) -> None:
        named = zip(self.fidelity.names, self.levels, strict=True)
        levels = "".join(f", or at none of the levels {name}={list(of)}" for name, of in named)
        self._warn(
            "outside",
            f"trial {trial.number} was evaluated at {trial.params}, which is outside the ranges of "
            f"the objective{levels}: it does not count, nor do others like it. Enqueue values that "
            f"the sampler itself could choose.",
        )

    def _warn(self, kind: str, message: str) -> None:
        if kind not in self._warned_of:
            self._warned_of.add(kind)
            warnings.warn(message, stacklevel=6)
