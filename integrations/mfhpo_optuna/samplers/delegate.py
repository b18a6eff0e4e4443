"""What another sampler gets to see when it draws the arms of a race."""

import copy
from collections.abc import Callable, Container, Iterable
from typing import TypeVar

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from mfhpo_optuna.study.study_race import StudyRace

RaceT = TypeVar("RaceT", bound=StudyRace)


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


def arms_only_study(
    study: optuna.Study, race: RaceT, values_of: Callable[[RaceT], Iterable[tuple[int, float]]]
) -> ArmsOnlyStudy:
    """Return a study with one trial for each of some arms of a race, with its value.

    The trials are made anew only when something was told: each parameter of a trial asks for them.
    """
    if race.shown is None or race.shown[0] != race.n_told:
        race.shown = race.n_told, _trials(race, values_of(race))
    return ArmsOnlyStudy(study, race.shown[1])


def _trials(race: StudyRace, values: Iterable[tuple[int, float]]) -> list[FrozenTrial]:
    shown = []
    for arm, value in values:
        distributions = race.arms.distributions(arm)
        params = race.arms.params(arm)
        trial = create_trial(
            value=value,
            params={name: params[name] for name in distributions},
            distributions=distributions,
        )
        trial.number = arm
        if arm in race.begun_by:
            # On it a proposer has noted what it will want to know.
            first = race.begun_by[arm]
            trial._trial_id = first._trial_id
            trial.system_attrs = {
                key: value
                for key, value in first.system_attrs.items()
                if not key.startswith("constraints")
            }
        shown.append(trial)
    return shown
