"""A trial of a game becomes events: which profile at which levels it evaluates, and how it ended.

All trials count, also those of other samplers: they have no claim, and come before all others.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from mfhpo.experiment import Assignment, Begun, Ended, Event, GameSettings, Lost
from mfhpo.experiment.kinds.games import levels_of, number_of
from mfhpo.search import Point
from mfhpo_optuna.games.declared import GameSpace, fault_of, other_game
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.study.distributions import drawn, index_of, signs_of
from mfhpo_optuna.study.events import Translation
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.trials.attributes import GAME_KEY, PullNote, read_attribute
from mfhpo_optuna.study.trials.under_way import End, lost_of

_ROUNDING = 1e-9  # of places


class GameTrials(Translation):
    """Finds out what game is played in a study, and turns its trials into events."""

    kind: GameKind

    def __init__(
        self, study: optuna.Study, kind: Kind, seed: int, arguments: str | None = None
    ) -> None:
        super().__init__(study, kind, seed, arguments)
        assert isinstance(kind, GameKind)
        self.signs = signs_of(study)
        self.space = GameSpace(kind.players, kind.measured.names)
        self.game: GameSettings | None = None  # until trials have told all players' parameters
        self.fault = ""  # what was wrong with the last trial that is no evaluation of the game
        self.wrong: set[int] = set()  # trials with values that are no evaluations of the game
        self.earlier: Mapping[str, Any] = read_attribute(study, GAME_KEY) or {}
        owned = {player: sorted(names) for player, names in kind.players.owned.items()}
        # The game as its study notes it, and why it cannot be played: a sentence, or nothing.
        self.note: dict[str, Any] = {"players": owned, "fidelity": list(kind.measured.names)}
        self.trouble = other_game(self.name, self.earlier, self.note)
        self.seed = seed
        self._parameters: tuple[str, ...] = ()
        self._sizes: tuple[int, ...] = ()

    def names(self) -> set[str]:
        """Return the names that objectives have to ask for."""
        return {*self.kind.players.parameters, *self.kind.measured.names}

    def learn(self, trial: FrozenTrial) -> None:
        """Learn from a trial that has ended what the game is."""
        if any(self.space.change(*asked) for asked in trial.distributions.items()):
            return
        for name, distribution in trial.distributions.items():
            if name in self.space:
                self.space.distributions.setdefault(name, distribution)
        is_known = self.space.distributions.keys() >= set(self.kind.players.parameters)
        if is_known and self.game is None and not self.trouble:
            self._find_out()

    def _find_out(self) -> None:
        try:
            levels = self.kind.measured.levels(self.space.distributions)
            if levels is None:
                return
            actions = self.space.actions()
            game = self.kind.settings_of(actions, levels, seed=self.seed, signs=self.signs)
            costs = game.runner().policy.costs.by_player
        except ValueError as error:
            self.trouble = str(error)
            return
        self.levels, self._sizes = levels, self.kind.measured.sizes(levels)
        self._parameters = tuple(name for own in actions.values() for name in own)
        self.note["levels"] = [list(of_fidelity) for of_fidelity in levels]
        self.note["costs"] = [own.tolist() for own in costs]
        self.trouble = other_game(self.name, self.earlier, self.note)
        self.game = None if self.trouble else game

    def note_for(self, trial: FrozenTrial, assignment: Assignment, order: int) -> PullNote:
        """Return the note that claims an assignment for a trial."""
        point = {} if assignment.draw is not None else assignment.configuration
        assignment = replace(assignment, draw=trial.number, point=point, purpose="search")
        return super().note_for(trial, assignment, order)

    def levels_of(self, note: PullNote | None) -> tuple[int, ...]:
        """Return each player's level in a claim; the lowest where none is known."""
        number = 0 if note is None else note.fidelity or 0
        return levels_of(number, self._sizes or (1,) * len(self.signs))

    def note_of(self, trial: FrozenTrial) -> PullNote | None:
        """Return the claim of a trial, or what one without a claim has evaluated; else None."""
        note, lost = super().note_of(trial), lost_of(trial)
        if lost is not None and lost.is_withdrawn:
            return None
        if note is not None and (not self._sizes or (note.fidelity or 0) < math.prod(self._sizes)):
            return note
        if not trial.state.is_finished():
            return None
        if trial.values is not None and self.game is not None and self._note_wrong(trial):
            return None
        number, query = trial.number, self.query_of(trial.number, _set_by(trial), None)
        if query is None:
            return None
        return PullNote(number, self.name, 0, number, fidelity=query[1], point=query[0])

    def begun(self, trial: FrozenTrial, note: PullNote) -> Begun | None:
        """Return the claim of a trial as an event; of random values while the game is unknown."""
        begun = super().begun(trial, replace(note, fidelity=None, point=None))
        if self.game is None or begun is None:
            return begun
        query = self.query_of(trial.number, trial.system_attrs.get("fixed_params", {}), note)
        if query is None:
            return None
        return replace(begun, draw=None, configuration=query[0], levels=(query[1],))

    def query_of(
        self, number: int, set_by: Mapping[str, Any], note: PullNote | None
    ) -> tuple[Point, int] | None:
        """Return profile and level that a trial evaluates; None if they are none of the game's.

        What it was given counts, then what it claims, and then what it would draw.
        """
        if self.game is None:
            return None
        profile: dict[str, float] = {}
        for name in self._parameters:
            place = (note.point or {}).get(name) if note is not None else None
            if name in set_by:
                place = self.space.place(name, set_by[name])
            elif place is not None:  # that of the value that is evaluated for it
                place = self.space.place(name, self.space.value(name, place))
            elif note is not None:
                value = drawn(self.seed, number, name, self.space.distributions[name])
                place = self.space.place(name, value)
            if place is None:
                return None
            profile[name] = place
        levels: list[int] = []
        for player, (name, known) in enumerate(self.kind.measured.of_players(self.levels)):
            level = None if note is None else self.levels_of(note)[player]
            if name in set_by:
                level = index_of(set_by[name], known)
            if level is None:
                return None
            levels.append(level)
        return profile, number_of(levels, self._sizes) if levels else 0

    def found(self, trial: FrozenTrial, note: PullNote) -> list[Event]:
        """Return nothing: what a game is comes from several trials (see `learn`)."""
        return []

    def outcome(self, trial: FrozenTrial, note: PullNote, end: End) -> Event:
        """Return the event that a trial ends with; without a claim, a failure is no loss.

        A trial that was lost before it had asked for all parameters has cost nothing.
        """
        if note.worker is None:
            return self._ended(trial, note, end, note.order if end.order is None else end.order)
        outcome = super().outcome(trial, note, end)
        has_run = trial.params.keys() >= set(self.kind.players.parameters)
        return replace(outcome, cost=0.0) if isinstance(outcome, Lost) and not has_run else outcome

    def _ended(self, trial: FrozenTrial, note: PullNote, end: End, order: int) -> Ended:
        level = None
        if end.values is not None and self._note_wrong(trial):
            level = math.prod(self._sizes)  # one that there is not: it is paid, and no value
        id, value = str(trial.number), end.values[0] if end.values else None
        if self.game is None:
            return Ended(id=id, order=order, value=value)
        return Ended(id=id, order=order, value=None, values=end.values, level=level)

    def moved(self, trial: FrozenTrial, note: PullNote, outcome: Event) -> list[Event]:
        """Return the claim of what was really evaluated, if it is something else of the game."""
        claim = None if self.game is None else self.begun(trial, note)
        query = self.query_of(trial.number, _set_by(trial), note)
        if not isinstance(outcome, Ended) or claim is None or query is None:
            return []
        profile, level = query
        distances = [abs(place - claim.configuration[name]) for name, place in profile.items()]
        if claim.levels == (level,) and max(distances) < _ROUNDING:
            return []
        return [replace(claim, order=outcome.order, configuration=profile, levels=(level,))]

    def _note_wrong(self, trial: FrozenTrial) -> bool:
        """Tell whether a trial with values is no evaluation of the game, and remember why."""
        measured, space = self.kind.measured, self.space
        fault = fault_of(trial, self.kind.players, measured, space)
        if fault:
            self.fault = fault
        elif self.game is not None and self.query_of(trial.number, trial.params, None) is None:
            named = zip(measured.names, self.levels, strict=True)
            levels = "".join(f", or at none of the levels {name}={list(of)}" for name, of in named)
            self.warn(
                "outside",
                f"trial {trial.number} was evaluated at {trial.params}, which is outside the "
                f"ranges of the objective{levels}: it does not count, nor do others like it.",
            )
        else:
            return False
        self.wrong.add(trial.number)
        return True


def _set_by(trial: FrozenTrial) -> dict[str, Any]:
    """Return what a trial was given: what was asked for, or what it was enqueued with."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}
