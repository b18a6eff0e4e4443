"""The sampler that looks for an equilibrium of several players' objectives."""

from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_instance
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.games.study import NashStudy, StudyDeviation, StudyEquilibrium
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.loop.report import ProgressLike


class NashSampler(StudySampler):
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

        It can be asked for at any time, and of any study whose trials have the parameters: one that
        was run with this sampler, or with one made with the same arguments. Raises ValueError for a
        study of another game.
        """
        return self.recommendation(study)

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

    def _mark_as_no_answer(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Do nothing: each trial is a profile of its own."""

    def _of(self, study: optuna.Study) -> NashStudy:
        game = self._studies.of(study)
        assert isinstance(game, NashStudy)
        return game
