"""The sampler that all races share; only the policy differs."""

from __future__ import annotations

import abc
import math
import threading
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from mfhpo import Policy, Pull
from mfhpo._validation import check_count
from mfhpo_optuna._arms import Arms, ArmsLike
from mfhpo_optuna._checks import check_number
from mfhpo_optuna._delegate import ArmsOnlyStudy
from mfhpo_optuna._fidelity import Fidelity, contains
from mfhpo_optuna._progress import ProgressLine
from mfhpo_optuna._race import ARM_KEY, CERTIFICATE_KEY, SECONDS_KEY, Listener, Race
from mfhpo_optuna._recommendation import StudyRecommendation
from mfhpo_optuna._unit import from_unit

__all__ = ["RaceSampler"]


class RaceSampler(BaseSampler):
    """Runs a policy on a study: each trial is one pull, and the state is the study's trials.

    Parameters
    ----------
    fidelity, arms, arm_sampler, lease, progress, seed
        See `IISESampler`.
    """

    def __init__(
        self,
        *,
        fidelity: str | Fidelity,
        arms: ArmsLike,
        arm_sampler: BaseSampler | None,
        lease: float | None,
        progress: bool | None,
        seed: int | None,
    ) -> None:
        self._fidelity = Fidelity(fidelity) if isinstance(fidelity, str) else fidelity
        if not isinstance(self._fidelity, Fidelity):
            raise TypeError(f"fidelity must be a name or a Fidelity, got {fidelity!r}.")
        Arms(arms, self._fidelity.name, 0)  # raises for bad arms before any study exists
        if seed is not None:
            seed = check_count("seed", seed, 0)
        if lease is not None and not check_number("lease", lease, " of seconds or None") > 0.0:
            raise ValueError(f"lease must be positive or None, got {lease!r}.")
        if isinstance(arm_sampler, (GridSampler, BruteForceSampler)):
            raise TypeError(
                f"arm_sampler={type(arm_sampler).__name__} enumerates a whole space and cannot "
                f"draw single arms; give arms={{name: distribution}}, which takes all of a small "
                f"space."
            )
        self._arms = arms
        self._arm_sampler = arm_sampler
        self._lease = lease
        self._seed = seed
        self._progress = ProgressLine(progress)
        self._races: dict[tuple[int, int], tuple[object, Race]] = {}
        self._lock = threading.RLock()

    @abc.abstractmethod
    def _make_policy(self, n_arms: int, levels: Sequence[Any], seed: int, sign: float) -> Policy:
        """Make the policy, now that the levels of the fidelity are known.

        Parameters
        ----------
        n_arms, levels
            The race's arms and levels.
        seed
            Chooses the pilot's arms.
        sign
            -1 for a study that minimises, whose values are mirrored; else 1.
        """

    # What users call.

    def recommendation(self, study: optuna.Study) -> StudyRecommendation:
        """The best answer so far, with its certificate once the race has ended.

        Parameters
        ----------
        study
            The study that was run with this sampler, or with one made with the same arguments.

        Raises
        ------
        ValueError
            If no trial has told the levels of the fidelity yet.
        """
        with self._lock:
            race = self._read(study)
            if race.policy is None:
                raise ValueError(
                    f"study {study.study_name!r} has no finished trial that asked for the fidelity "
                    f"{self._fidelity.name!r}, so there is nothing to recommend yet."
                )
            return _recommendation(race)

    def replay(self, study: optuna.Study, listen: Callable[[Race], Listener]) -> Race:
        """Go through the study's observations once more, as `plot_race` does.

        Parameters
        ----------
        study
            The study that was run with this sampler.
        listen
            Given the race, returns what is called after each observation.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            race = self._new_race(study)
            race.listener = listen(race)
            race.read(study)
        return race

    # What Optuna calls.

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that `arm_sampler` draws together; none without it."""
        self._raise_error_if_multi_objective(study)
        with self._lock:
            race = self._of(study)
            pull = race.pull(trial.number)
            if self._arm_sampler is None or pull is None or not self._draws(race, pull):
                return {}
            space = self._arm_sampler.infer_relative_search_space(self._arms_only(study), trial)
            return {name: d for name, d in space.items() if name != self._fidelity.name}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values of the parameters in the search space."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        if self._arm_sampler is not None:
            view = self._arms_only(study)
            return self._arm_sampler.sample_relative(view, trial, search_space)
        return {
            name: self.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The arm's value of a parameter, or the level at which the arm is to be evaluated."""
        self._raise_error_if_multi_objective(study)
        with self._lock:
            race = self._of(study)
            pull = race.pull(trial.number)
            if trial.number in race.over:
                raise optuna.TrialPruned("the race is over; see sampler.recommendation(study)")
            if pull is None:
                return self._anything(trial, param_name, param_distribution)
            if param_name == self._fidelity.name:
                return race.level_of(trial.number, param_distribution)
            known = race.arms.params(pull.arm)
            if self._arm_sampler is not None and param_name not in known:
                known[param_name] = self._arm_sampler.sample_independent(
                    self._arms_only(study), trial, param_name, param_distribution
                )
            value = race.arms.suggest(pull.arm, param_name, param_distribution)
            if contains(param_distribution, value):
                return value
            if race.arms.declared:
                raise ValueError(
                    f"arms[{pull.arm}][{param_name!r}]={value!r} is not a value of the "
                    f"objective's {param_distribution}; change the arm, or what the objective "
                    f"suggests."
                )
            return self._anything(trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the pull that the trial evaluates, and note it where other workers see it."""
        if len(study.directions) > 1:
            return  # the first suggestion raises; raising here would leave the trial running
        with self._lock:
            race = self._read(study)
            if race.policy is not None and race.policy.finished and _stop(study):
                race.over.add(trial.number)
                _conclude(study, race)
                self._progress.close(race)
                if "fixed_params" in trial.system_attrs:
                    warnings.warn(
                        f"trial {trial.number} was enqueued after the race ended: it is pruned. "
                        f"Enqueue configurations before the race, or begin another study.",
                        stacklevel=4,
                    )
                return
            pull = race.propose(trial)
            if pull is None:
                return
            if self._arm_sampler is not None and race.resumed and not race.reseeded:
                # A seeded sampler would repeat the draws that an earlier process made.
                self._arm_sampler.reseed_rng()
                race.reseeded = True
            race.begin(trial, pull)
            tag = {"arm": pull.arm, "fidelity": pull.fidelity}
            # No public way leads from a sampler to the attributes of a running trial.
            study._storage.set_trial_user_attr(trial._trial_id, ARM_KEY, tag)
            trial.user_attrs[ARM_KEY] = tag

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Learn from the trial; when the race has ended, add its answer and stop the study."""
        if len(study.directions) > 1:
            return
        with self._lock:
            race = self._read(study)
            seconds = None
            if trial.datetime_start is not None:
                seconds = (datetime.now() - trial.datetime_start).total_seconds()
                if self._fidelity.costs == "measured":
                    study._storage.set_trial_user_attr(trial._trial_id, SECONDS_KEY, seconds)
            if race.finish(trial, state, values[0] if values else None, seconds):
                # A single noisy value is no answer: `best_trial` skips trials that break a
                # constraint. Only a running `Trial` has a public method for it.
                study._storage.set_trial_system_attr(trial._trial_id, "constraints:mfhpo", 1.0)
            race.check_fidelity_is_free()
            if race.hopeless and _stop(study):
                warnings.warn(
                    f"the study is stopped: every trial failed before it asked for the fidelity "
                    f"{self._fidelity.name!r}; mend the objective, and run it again.",
                    stacklevel=4,
                )
            if race.policy is None:
                return
            self._progress.show(race)
            if race.policy.finished:
                self._progress.close(race)
                _conclude(study, race)
                _stop(study)

    def reseed_rng(self) -> None:
        """Do nothing: randomness comes from the seed and the arm, never from a shared state."""

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_lock"]
        state["_races"] = {}  # a function of the studies' trials
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # Helpers.

    def _of(self, study: optuna.Study) -> Race:
        # The storage is kept along, so that no other one can take its identity.
        key = (study._study_id, id(study._storage))
        if key not in self._races:
            self._races[key] = (study._storage, self._new_race(study))
        return self._races[key][1]

    def _read(self, study: optuna.Study) -> Race:
        self._raise_error_if_multi_objective(study)
        race = self._of(study)
        if not race.read(study):
            del self._races[study._study_id, id(study._storage)]
            race = self._of(study)
            race.read(study)
        return race

    def _new_race(self, study: optuna.Study) -> Race:
        # Without a seed, the study's name gives one that all its workers agree on.
        seed = zlib.crc32(study.study_name.encode()) if self._seed is None else self._seed

        def make_policy(n_arms: int, levels: Sequence[Any], sign: float) -> Policy:
            return self._make_policy(n_arms, levels, seed, sign)

        arms = Arms(self._arms, self._fidelity.name, seed)
        return Race(study, arms, self._fidelity, make_policy, self._lease)

    def _anything(self, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        key = [self._seed or 0, trial.number, zlib.crc32(name.encode())]
        return from_unit(float(np.random.default_rng(key).random()), distribution)

    def _draws(self, race: Race, pull: Pull) -> bool:
        """Whether the trial is the one that decides what its arm is."""
        return not race.arms.declared and not race.arms.params(pull.arm)

    def _arms_only(self, study: optuna.Study) -> ArmsOnlyStudy:
        with self._lock:
            race = self._of(study)
            policy = race.policy
            seen = [
                [arm for arm in range(len(race.arms)) if policy and policy.summary(arm, m)[0]]
                for m in range(len(race.levels))
            ]
            if policy is None or not any(seen):
                return ArmsOnlyStudy(study, [])
            fidelity = max(range(len(seen)), key=lambda m: (len(seen[m]), m))
            shown = []
            for arm in seen[fidelity]:
                trial = create_trial(
                    value=race.sign * policy.summary(arm, fidelity)[1],
                    params={n: race.arms.params(arm)[n] for n in race.arms.distributions(arm)},
                    distributions=race.arms.distributions(arm),
                )
                trial.number = arm
                shown.append(trial)
            return ArmsOnlyStudy(study, shown)


def _recommendation(race: Race) -> StudyRecommendation:
    assert race.policy is not None
    answer = race.policy.recommend()
    params = {} if answer.arm is None else dict(race.arms.params(answer.arm))
    level = race.levels[answer.fidelity]
    return StudyRecommendation.of(answer, race.sign, params, level, race.certifies)


def _conclude(study: optuna.Study, race: Race) -> None:
    """Add the trial that `best_trial` is to show: the recommended arm, with its mean."""
    race.read(study)
    answer = _recommendation(race)
    if answer.arm is None or math.isnan(answer.mean):
        warnings.warn(
            f"the race ended without an answer: {answer.reason}. Give it a larger budget, or mend "
            f"the objective.",
            stacklevel=4,
        )
        return
    if any(_is_repeat(answer, trial.user_attrs[CERTIFICATE_KEY]) for trial in race.certificates):
        return
    distributions = dict(race.arms.distributions(answer.arm))
    params = {name: answer.params[name] for name in distributions}
    if race.fidelity_distribution is not None:
        distributions[race.fidelity.name] = race.fidelity_distribution
        params[race.fidelity.name] = answer.level
    # An uncertified answer is only worth what is certain of it, so that a later one, if the race
    # goes on with a larger budget, takes its place as the best trial.
    value = answer.mean if answer.certified else answer.interval[0 if race.sign > 0 else 1]
    study.add_trial(
        create_trial(
            value=value,
            params=params,
            distributions=distributions,
            user_attrs={CERTIFICATE_KEY: answer.to_dict()},
        )
    )
    race.read(study)
    shown = study.best_trial
    if (shown.user_attrs.get(CERTIFICATE_KEY, {}).get("arm"), shown.value) != (answer.arm, value):
        warnings.warn(
            f"study.best_trial still shows trial {shown.number}, whose value {shown.value:.5g} "
            f"beats the value {value:.5g} of the answer; it is an earlier answer or was not part "
            f"of the race. Use sampler.recommendation(study).",
            stacklevel=4,
        )


def _is_repeat(answer: StudyRecommendation, earlier: Mapping[str, Any]) -> bool:
    """Whether an earlier answer, as it was recorded, says all that this one says."""
    if (earlier["arm"], earlier["certified"]) != (answer.arm, answer.certified):
        return False
    if answer.certified:
        # Workers that end after the certificate change the mean a little, but not the claim.
        return bool(earlier["delta"] <= answer.delta and earlier["epsilon"] <= answer.epsilon)
    return bool(earlier["trials"] == answer.trials)


def _stop(study: optuna.Study) -> bool:
    """Stop the study's loop; False under ask and tell, where there is none."""
    try:
        study.stop()
    except RuntimeError:
        return False
    return True
