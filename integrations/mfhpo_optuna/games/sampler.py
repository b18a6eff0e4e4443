"""The sampler that looks for an equilibrium of several players' objectives."""

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_instance
from mfhpo.games import Query
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.games.declared import DeclaredGame
from mfhpo_optuna.games.equilibrium import (
    StudyDeviation,
    StudyEquilibrium,
    answer_of,
    deviations_of,
)
from mfhpo_optuna.games.queries import tag_of
from mfhpo_optuna.games.study import NashStudy
from mfhpo_optuna.samplers.study_sampler import StudySampler, stop
from mfhpo_optuna.study.attributes import QUERY_KEY, write_attribute
from mfhpo_optuna.study.loop.report import ProgressLike
from mfhpo_optuna.study.loop.storage_errors import mark_if_spoilt

_CHOICES = 8  # of a trial that other workers get in the way of

# Seconds within which another worker has chosen, and between two looks at it.
_SETTLING, _PERIOD = 5.0, 0.2

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class NashSampler(StudySampler[NashStudy]):
    """Looks for a profile from which no player wants to deviate: a pure Nash equilibrium.

    Use it where several parties each decide over parameters of their own and have an objective of
    their own, as tenants that share a machine; and one evaluation is dear. The study has one
    objective per player, in the order of `players`, each maximised or minimised. The answer is
    ``sampler.equilibrium(study)``, and not ``study.best_trials``: the Pareto front holds what
    players would agree on if agreements could be enforced.

    Parameters and ranges are learned from the objective: trials are random until one has told all
    of them. Each trial evaluates one profile. When the budget is spent, the study stops. All trials
    at one of the levels are learned from and paid for, also those of another sampler. A trial that
    fails alone is no observation. Where one failed again, or two near each other, and none near
    them gave values, each player is taken to have got the worst that was seen of it. No guarantee
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
        self._declared = DeclaredGame(players, fidelity, budget, beta, probability, averaging)
        super().__init__(lease, progress, seed)
        given = {"fidelity": fidelity, "lease": lease, "progress": progress, "seed": seed}
        given = {name: value for name, value in given.items() if value is not None}
        model = {"beta": beta, "probability": probability, "averaging": averaging}
        self._arguments = {"players": dict(players), "budget": budget, **model, **given}

    # What users call.

    def equilibrium(self, study: optuna.Study) -> StudyEquilibrium:
        """Return the profile from which players are believed to gain least by deviating.

        It can be asked for at any time, and of any study whose trials have the parameters: one that
        was run with this sampler, or with one made with the same arguments. Raises ValueError for a
        study of another game.
        """
        with self._lock:
            return answer_of(self._playable(self._read(study)))

    def deviations(
        self, study: optuna.Study, params: Mapping[str, Any]
    ) -> dict[str, StudyDeviation]:
        """Return what each player may gain by deviating alone from any profile, and where to.

        Ask it of the parameters that are in use, or of those that players have agreed on: all
        players', as in a trial; others, such as fidelities, are ignored. Raises ValueError if the
        study is of another game, parameters are missing or out of range, or no trial has given
        values yet.
        """
        check_instance("params", params, Mapping, "a dictionary of parameters")
        with self._lock:
            return deviations_of(self._playable(self._read(study)), params)

    # What Optuna calls.

    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        game = self._playable(self._of(study))
        if trial.number in game.over:
            raise optuna.TrialPruned("the budget is spent; see sampler.equilibrium(study)")
        return game.value_for(trial, name, distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the query that the trial evaluates, and note it where other workers see it."""
        if len(study.directions) != len(self._declared.players.names):
            return  # the first suggestion raises; raising here would leave the trial running
        self._watch_for_end(study)
        with self._lock:
            joined = self._join(study, trial)
            if joined is None or joined.trouble:
                return
            game = joined
            for _ in range(_CHOICES):
                ahead = game.ahead_of(trial.number)
                game, plan = self._propose(study, game, trial)
                if plan is None:
                    self._end(study, game, trial)
                    return
                game.under_way[trial.number] = trial, plan
                game.begun_here[trial.number] = time.monotonic()
                write_attribute(study, trial, QUERY_KEY, tag_of(plan) | self._signature())
                # Of workers that choose at the same moment, those that came later choose again.
                game = self._read(study)
                if game.ahead_of(trial.number) == ahead:
                    return

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Learn from the trial; when the budget is spent, stop the study."""
        self._check_study(study)
        mark_if_spoilt(study, trial, state)
        with self._lock:
            if self._refusal(study, trial):
                return
            game = self._read(study)
            begun = game.begun_here.get(trial.number)
            seconds = None if begun is None else time.monotonic() - begun
            problem = game.finish(trial, state, values, seconds) or game.trouble
            if problem:
                raise ValueError(problem)
            if game.policy is not None and trial.number not in game.over:
                game.note(study)
            if game.hopeless and stop(study):
                before = (
                    f"before it had asked for all players' parameters "
                    f"{list(self._declared.players.parameters)}"
                    if game.policy is None
                    else "and none gave any player a value"
                )
                warnings.warn(
                    f"the study is stopped: every trial failed {before}; mend the objective, and "
                    f"run it again.",
                    stacklevel=4,
                )
            if game.policy is None or not game.policy.finished:
                self._progress.show(game.progress)
                return
            if trial.number not in game.over:
                self._progress.show(game.progress, is_last=True)
            stop(study)

    # Helpers.

    def _propose(
        self, study: optuna.Study, game: NashStudy, trial: FrozenTrial
    ) -> tuple[NashStudy, Query | None]:
        """Return what a trial is to evaluate; None if others take all that is left.

        It waits, because two processes that choose at the same moment would each leave it to the
        other.
        """
        plan, until = game.propose(trial), time.monotonic() + _SETTLING
        while plan is None and time.monotonic() < until:
            elsewhere = game.under_way.keys() - game.begun_here.keys()
            if max(elsewhere, default=-1) < trial.number:
                break
            try:
                time.sleep(_PERIOD)
            except KeyboardInterrupt:
                study.tell(trial.number, state=TrialState.FAIL)  # Optuna would leave it running
                raise
            game = self._read(study)
            plan = game.propose(trial)
        return game, plan

    def _say_if_cut_short(self, read: NashStudy) -> None:
        if read.policy is None or read.policy.finished or read.told_of_cut:
            return
        read.told_of_cut = True
        at_most = read.recommend().at_most
        known = "nothing is known about what deviating would gain"
        if math.isfinite(at_most):
            known = (
                f"it is believed that nobody gains more than {at_most:.2g} standard deviations of "
                f"an objective by deviating alone"
            )
        _logger.warning(
            f"optimize() ended before the budget was spent: {read.progress().left}. So far "
            f"{known}. Call study.optimize again to go on; "
            f"print(study.sampler.equilibrium(study)) tells what is known."
        )

    def _read(self, study: optuna.Study) -> NashStudy:
        game = self._of(study)
        if not game.read(study):
            game = self._anew(study)
            game.read(study)
        return game

    def _new(self, study: optuna.Study) -> NashStudy:
        self._check_study(study)
        return NashStudy(study, self._declared, self._seed_of(study), self._lease)

    def _check_study(self, study: optuna.Study) -> None:
        names = self._declared.players.names
        if len(study.directions) != len(names):
            raise ValueError(
                f"study {study.study_name!r} has {len(study.directions)} objectives, but there are "
                f"{len(names)} players {list(names)}; make it with "
                f"optuna.create_study(directions=[...]), one for each player in their order."
            )

    def _playable(self, game: NashStudy) -> NashStudy:
        if game.trouble:
            raise ValueError(game.trouble)
        return game

    def _end(self, study: optuna.Study, game: NashStudy, trial: FrozenTrial) -> None:
        """End the loop when nothing is left to begin, though trials may still be under way."""
        game.over.add(trial.number)
        game.under_way.pop(trial.number, None)
        write_attribute(study, trial, QUERY_KEY, {"over": True})
        if "fixed_params" in trial.system_attrs:
            warnings.warn(
                f"trial {trial.number} was enqueued, but what is left of the budget does not do "
                f"for it: it does not count. Enqueue it earlier, or give a larger budget.",
                stacklevel=4,
            )
        elif not stop(study):
            warnings.warn(
                f"trial {trial.number} has no share in the budget, which is spent or promised to "
                f"trials under way: it does not count. Stop asking when "
                f"sampler.equilibrium(study).finished.",
                stacklevel=4,
            )
