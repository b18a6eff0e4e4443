"""What another sampler gets to see when it draws the arms of a race."""

import copy
from collections.abc import Container

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from mfhpo_optuna.kinds.kind import Kind
from mfhpo_optuna.study.study_experiment import StudyExperiment


class ArmsOnlyStudy(optuna.Study):
    """A study with one finished trial per arm: no repeats, no fidelity, no constraint.

    Samplers read trials by `get_trials` or by `_get_trials`, so both are overridden.
    """

    def __init__(self, study: optuna.Study, trials: list[FrozenTrial]) -> None:
        self.__setstate__(study.__getstate__())
        self._arm_trials = trials

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return the arms' trials."""
        return self._get_trials(deepcopy, states)

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        chosen = [t for t in self._arm_trials if states is None or t.state in states]
        return copy.deepcopy(chosen) if deepcopy else chosen


def arms_only_study(study: optuna.Study, known: StudyExperiment, kind: Kind) -> ArmsOnlyStudy:
    """Return a study with one trial for each of some configurations, with its value.

    The trials are made anew only when something was told: each parameter of a trial asks for them.
    """
    if known.shown is None or known.shown[0] != known.n_told:
        known.shown = known.n_told, _trials(known, kind)
    return ArmsOnlyStudy(study, known.shown[1])


def _trials(known: StudyExperiment, kind: Kind) -> list[FrozenTrial]:
    shown = []
    for arm, value in kind.values_of_draws(known):
        what = known.values_of(arm)
        trial = create_trial(
            value=value,
            params={name: what.params[name] for name in what.distributions},
            distributions=what.distributions,
        )
        trial.number = arm
        if what.first is not None:
            # On it a proposer has noted what it will want to know.
            trial._trial_id = what.first._trial_id
            trial.system_attrs = {
                key: value
                for key, value in what.first.system_attrs.items()
                if not key.startswith("constraints")
            }
        shown.append(trial)
    return shown
