"""Values that a trial gets when its objective asks for a parameter, also by another sampler."""

import copy
from collections.abc import Container
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from mfhpo_optuna.study.arms import is_baseline
from mfhpo_optuna.study.distributions import contains, described, drawn, levels_in, own_value
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import PullNote


def value_for(
    study: optuna.Study,
    known: StudyExperiment,
    trial: FrozenTrial,
    note: PullNote,
    name: str,
    distribution: BaseDistribution,
    proposer: BaseSampler | None,
) -> Any:
    """Return the value of a parameter: the configuration's, or what the sampler decides."""
    kind = known.kind
    if name in kind.owned:
        asked = copy.copy(trial)
        asked._distributions = {**trial.distributions, name: distribution}
        if name != kind.replicate:
            return _level_for(known, asked, note)
        replicates, block = known.trials.replicates, note.block
        assert replicates is not None
        assert block is not None
        for event in known.trials.found(asked, note):
            known.experiment.apply(event)
        return replicates.of(block, distribution)
    values, arm = known.trials.values, known.trials.arm_of(note)
    params = values[arm].params
    value, is_missing = None, kind.is_whole and name not in params
    if proposer is not None and name not in params:
        view = arms_only_study(study, known)
        params[name] = proposer.sample_independent(view, trial, name, distribution)
    if not is_missing:
        value = params.setdefault(name, values.planned(arm, name, distribution, note.point))
        if contains(distribution, value):
            return own_value(distribution, value)
    if objection := kind.objection_to_value(known, arm, name, value, distribution):
        raise ValueError(objection)
    return drawn(0, trial.number, name, distribution)


def _level_for(known: StudyExperiment, trial: FrozenTrial, note: PullNote) -> Any:
    """Return the level for a trial that asks for it; ValueError if levels were others before."""
    fidelity, earlier = known.kind.fidelity, known.trials.levels
    assert fidelity is not None
    distribution = trial.distributions[fidelity.name]
    is_known = known.trials.fidelity_distribution == distribution
    levels = earlier if is_known else levels_in(fidelity, distribution)
    if earlier and described(earlier) != described(levels):
        raise ValueError(
            f"the objective suggests {fidelity.name!r} as {distribution} in trial "
            f"{trial.number}, with the levels {list(levels)}, but did so with the levels "
            f"{list(earlier)} before; their values must not be mixed. Suggest it with the same "
            f"range in every trial, give Fidelity({fidelity.name!r}, levels=[...]), or begin "
            f"another study."
        )
    for event in () if earlier else known.trials.found(trial, note):
        known.experiment.apply(event)
    index, number = note.fidelity, trial.number
    if index is None:
        if number not in known.levels_of:
            own = known.experiment.level_of(str(number))
            known.levels_of[number] = len(levels) - 1 if is_baseline(trial) else own
        index = known.levels_of[number]
    return levels[index]


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


def arms_only_study(study: optuna.Study, known: StudyExperiment) -> ArmsOnlyStudy:
    """Return a study with one trial for each of some configurations, with its value.

    The trials are made anew only when something was told: each parameter of a trial asks for them.
    """
    if known.shown is None or known.shown[0] != known.n_told:
        trials, policy = [], known.policy
        for arm in () if policy is None else policy.search.finished_arms():
            what, target = known.values_of(arm), policy.search.target
            value = known.sign * policy.search.mean(arm, target)
            params = {name: what.params[name] for name in what.distributions}
            trial = create_trial(value=value, params=params, distributions=what.distributions)
            trial.number = arm
            if what.first is not None:  # on it a proposer has noted what it will want to know
                trial._trial_id, noted = what.first._trial_id, what.first.system_attrs
                kept = [key for key in noted if not key.startswith("constraints")]
                trial.system_attrs = {key: noted[key] for key in kept}
            trials.append(trial)
        known.shown = known.n_told, trials
    return ArmsOnlyStudy(study, known.shown[1])
