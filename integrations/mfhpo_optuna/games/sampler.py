"""The sampler that looks for an equilibrium of several players' objectives, and their study."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_instance
from mfhpo.experiment import Answer, Assignment, Done, Event, Experiment, Lost, Refused, Wait
from mfhpo.games import Deviation, Equilibrium
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.games.declared import unowned
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.games.trials import GameTrials
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.distributions import drawn, levels_in
from mfhpo_optuna.study.loop.report import ProgressLike
from mfhpo_optuna.study.study_experiment import Reply, StudyExperiment
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.under_way import End

_PROMISED = "the budget is spent, or promised to trials under way"

StudyEquilibrium: TypeAlias = Answer


class NashStudy(StudyExperiment):
    """Reads a game's trials into an experiment, and writes claims and ends to them."""

    translation = GameTrials
    trials: GameTrials
    _is_noted = False
    _answered: tuple[object, Answer] | None = None

    def read(self, study: optuna.Study) -> bool:
        """Take in what is new (see `StudyExperiment.read`); ValueError if it is another game."""
        is_right = bool(self.trials.trouble) or super().read(study)
        if self.trials.trouble:
            raise ValueError(self.trials.trouble)
        if self.trials.fault:
            fault, self.trials.fault = self.trials.fault, ""
            self.trials.warn("fault", f"{fault} It does not count, nor do others like it.")
        return is_right

    def _take_in(self, news: list[FrozenTrial]) -> bool:
        for trial in news:
            if trial.state.is_finished():
                self.trials.learn(trial)
        if self.trials.game is not None and self.policy is None:
            if self.experiment.n_begun:
                return False  # of another kind
            self.experiment = Experiment(self.trials.game)
        return super()._take_in(news)

    def _events_of(self, trial: FrozenTrial) -> list[Event]:
        if trial.number in self.under_way.claims and self.trials.note_of(trial) is None:
            self.under_way.give_up(trial.number)
            why, order = "an earlier one is equal", self.experiment.order
            return [Lost(id=str(trial.number), order=order, why=why, is_withdrawn=True)]
        return super()._events_of(trial)

    def _end(self, trial: FrozenTrial, note: attributes.PullNote, end: End) -> list[Event]:
        self.trials.learn(trial)
        events = super()._end(trial, note, end)
        return [*self.trials.moved(trial, note, events[-1]), *events]

    def end(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Any) -> bool:
        """Take in a trial that ends now, and note the game; ValueError if it is none of its."""
        was_evaluation = super().end(study, trial, state, values)
        problem, self.trials.fault = self.trials.fault or self.trials.trouble, ""
        if problem:
            raise ValueError(problem)
        if self.policy is not None and not self._is_noted:
            self._is_noted = True
            if self.trials.note != self.trials.earlier:
                attributes.write_note(study, attributes.GAME_KEY, self.trials.note)
        return was_evaluation

    def reply_to(self, trial: FrozenTrial) -> Reply:
        """Return what a trial that begins is to do; nobody waits, for losses are paid, too."""
        reply = super().reply_to(trial)
        return Done(_PROMISED) if isinstance(reply, Wait) else reply

    def _next(self, trial: FrozenTrial, moving: str | None = None) -> Reply:
        fixed = attributes.parameters_before(trial)
        if fixed is None or self.policy is None:
            return super()._next(trial, moving)
        chosen = self.experiment.next(moving=moving)
        if not isinstance(chosen, Assignment):
            return chosen
        note = self.trials.note_for(trial, chosen, self.experiment.order)
        query = self.trials.query_of(trial.number, fixed, note)
        if query is None:
            return Refused(f"{fixed} is no profile at one of the levels, within the ranges")
        return self.experiment.next(fixed=query, moving=moving)

    def claim(self, study: optuna.Study, trial: FrozenTrial, assignment: Assignment) -> bool:
        """Write down what a trial evaluates; it gives way if an earlier one takes what is left."""
        super().claim(study, trial, assignment)
        id = str(trial.number)
        is_rival = self.experiment.settle(id) is None
        if is_rival and not isinstance(self.experiment.next(moving=id), Assignment):
            self.over.add(trial.number)
            self.note_loss(study, trial, _PROMISED, is_withdrawn=True)
            self.under_way.give_up(trial.number)
        return True

    def value_for(self, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """Return the value of a parameter; ValueError if it is nobody's, or has changed."""
        trials, measured = self.trials, self.trials.kind.measured
        if name not in trials.space:
            raise ValueError(unowned(trial, [name], trials.kind.players, measured))
        change = trials.space.change(name, distribution)
        if change:
            raise ValueError(f"trial {trial.number}: {change}")
        note = self.under_way.claims.get(trial.number)
        if name in measured.names:
            position = measured.names.index(name)
            levels = levels_in(measured.fidelities[position], distribution)
            return levels[min(trials.levels_of(note)[position], len(levels) - 1)]
        if note is None or not note.point or name not in note.point:
            return drawn(trials.seed, trial.number, name, distribution)
        return trials.space.value(name, note.point[name], distribution)

    def answer(self) -> Answer:
        """Return the profile from which players are believed to gain least by deviating."""
        known = self.experiment.order, self.experiment.n_begun, len(self.experiment.history())
        if self._answered is None or self._answered[0] != known:
            self._answered = known, self._answer()
        return self._answered[1]

    def _answer(self) -> Answer:
        answer, kind = super().answer(), self.trials.kind
        if self.policy is not None:
            reason, n_wrong = answer.reason, len(self.trials.wrong)
            if n_wrong and not answer.params:
                reason += f"; {n_wrong} trials do not count, as they were none of this game"
            return replace(answer, params=self.params_of(answer), reason=reason)
        reason = "no trial has told all players' parameters and objectives yet"
        nothing = Equilibrium({}, {}, {}, 0.0, kind.budget, 0, 0, kind.probability, answer.finished)
        return Answer.of_game(nothing, {}, answer.reason if answer.finished else reason)

    def deviations(self, params: Mapping[str, Any]) -> dict[str, Deviation]:
        """Return what each player may gain by deviating; ValueError for a profile that is none."""
        if self.policy is None:
            raise ValueError("no trial has told all players' parameters and objectives yet.")
        if not self.policy.has_seen:
            raise ValueError("no trial has given values yet.")
        space, names = self.trials.space, self.trials.kind.players.parameters
        given = {name: params[name] for name in names if name in params}
        profile = {name: space.place(name, value) for name, value in given.items()}
        if wrong := [name for name in names if profile.get(name) is None]:
            raise ValueError(
                f"params must have values of {list(names)} within the objective's ranges, got "
                f"{dict(params)}; see {wrong[0]!r}."
            )
        # Those with one value alone are no part of the policy's game.
        own = {name: profile[name] for name in self.policy.actions.parameters}
        return {
            player: replace(found, profile=space.params(found.profile))
            for player, found in self.policy.deviations(own).items()
        }

    def params_of(self, answer: Answer) -> dict[str, Any]:
        """Return all players' parameters at the profile of an answer of the policy."""
        return self.trials.space.params(answer.params) if answer.params else {}


class NashSampler(StudySampler):
    """Looks for a profile from which no player wants to deviate: a pure Nash equilibrium.

    Use it where several parties each decide over parameters of their own and have an objective of
    their own, as tenants that share a machine; and one evaluation is dear. The study has one
    objective per player, in the order of `players`, each maximised or minimised. The answer is
    ``sampler.equilibrium(study)``, and not ``study.best_trials``: the Pareto front holds what
    players would agree on if agreements could be enforced.

    Parameters and ranges are learned from the objective: trials are random until one has told all
    of them. When the budget is spent, the study stops. All trials at one of the levels are learned
    from and paid for, also those of another sampler. A trial that fails alone is no observation;
    failures that repeat, or lie near each other, count as each player's worst value. No guarantee
    is made: intervals are those of a model that was fitted.

    Parameters
    ----------
    players
        By name, the names of the parameters that each player owns.
    fidelity
        The parameter that sets how dear, and how faithful, an evaluation is, such as the seconds of
        a load test: its name, or a `Fidelity` with levels and costs (bounds on its bias are not
        used). One run serves all players then. A mapping from players to such: each player's
        objective is measured at a level of its own, and is paid for by itself; levels that differ
        from player to player need costs. None: each trial is a full evaluation.
    budget
        What may be paid in all, in the unit of the costs: for epochs, the sum of all trials'
        epochs. Without a fidelity, trials.
    beta
        Half-width of the bounds that choose what is evaluated, in standard deviations: 1 to 2.
    probability
        Of the intervals of the answer.
    averaging
        Whether a dearer evaluation is the same one, with more repeats in proportion to its cost, so
        that levels differ in their noise alone.
    lease, progress
        See `mfhpo_optuna.samplers.options.SamplerOptions`.
    seed
        See `mfhpo_optuna.samplers.options.SamplerOptions`. It makes a study with one worker
        repeatable.

    References
    ----------
    Zhang, Simeone and Poor, Multi-fidelity Bayesian optimization for Nash equilibria with black-box
    utilities.

    Examples
    --------
    >>> import optuna
    >>> from mfhpo_optuna import NashSampler
    >>> players = {"row": ["x"], "column": ["y"]}
    >>> sampler = NashSampler(players, fidelity="seconds", budget=90, seed=0)
    >>> study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    """

    _experiment = NashStudy

    def __init__(
        self,
        players: Mapping[str, Sequence[str]],
        fidelity: str | Fidelity | Mapping[str, str | Fidelity] | None = None,
        *,
        budget: float,
        beta: float = 1.5,
        probability: float = 0.9,
        averaging: bool = False,
        lease: float | None = None,
        progress: ProgressLike = None,
        seed: int | None = None,
    ) -> None:
        kind = GameKind(players, fidelity, budget, beta, probability, averaging)
        given = {"fidelity": fidelity, "lease": lease, "progress": progress, "seed": seed}
        given = {name: value for name, value in given.items() if value is not None}
        model = {"beta": beta, "probability": probability, "averaging": averaging}
        arguments = {"players": dict(players), "budget": budget, **model, **given}
        super().__init__(kind, arguments, lease=lease, progress=progress, seed=seed)

    def equilibrium(self, study: optuna.Study) -> StudyEquilibrium:
        """Return the profile from which players are believed to gain least by deviating.

        It can be asked for at any time, and of any study whose trials have the parameters.
        Raises ValueError for a study of another game.
        """
        return self.recommendation(study)

    def deviations(self, study: optuna.Study, params: Mapping[str, Any]) -> dict[str, Deviation]:
        """Return what each player may gain by deviating alone from any profile, and where to.

        Ask it of the parameters that are in use, or of those that players have agreed on, as in a
        trial. Raises ValueError if the study is of another game, parameters are missing or out of
        range, or no trial has given values yet.
        """
        check_instance("params", params, Mapping, "a dictionary of parameters")
        with self._studies.lock:
            self._read(study)
            return self._of(study).deviations(params)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Learn from the trial; when the budget is spent, stop the study."""
        self._check_study(study)  # an objective that suggests nothing is told here
        super().after_trial(study, trial, state, values)

    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        game = self._of(study)
        if game.trials.trouble:
            raise ValueError(game.trials.trouble)
        if trial.number in game.over:
            raise optuna.TrialPruned("the budget is spent; see sampler.equilibrium(study)")
        return game.value_for(trial, name, distribution)

    def _conclude(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Show the end; no trial is added, as no trial is an equilibrium."""
        with self._studies.lock:
            game = self._read(study)
            self._progress.show(lambda: self.kind.progress(game), is_last=True)
            if game.policy is not None and not game.policy.finished:
                self._stop_if_hopeless(study, game)

    def _of(self, study: optuna.Study) -> NashStudy:
        game = self._studies.of(study)
        assert isinstance(game, NashStudy)
        return game
