"""The sampler that all policies share that choose a time limit for every trial."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo.censored import CensoredPolicy
from mfhpo.censored.options import mirrored
from mfhpo.racing.options import with_defaults
from mfhpo_optuna.recommendations import StudyLimitRecommendation
from mfhpo_optuna.samplers.answer import Answer, pessimistic
from mfhpo_optuna.samplers.options import SamplerOptions
from mfhpo_optuna.samplers.policy_sampler import PolicySampler
from mfhpo_optuna.study.arms import ArmsLike
from mfhpo_optuna.study.attributes import (
    CERTIFICATE_KEY,
    ENFORCER_KEY,
    LIMIT_KEY,
    SECONDS_KEY,
    read_attribute,
    write_attribute,
)
from mfhpo_optuna.study.limited_race import LimitedRace

_UNKNOWN_RANGE = "the range of the values is unknown, because no two different ones were seen"
_DECLARE_RANGE = "Declare reward_range=(least, largest)."


class LimitSampler(PolicySampler[LimitedRace]):
    """Runs the policy that `mfhpo.racing.options.runs` names: an arm and a limit for every trial.

    Values are maximised inside: those of a study that minimises are mirrored, with the range that
    was declared. Charges worsen the gain of a trial in either direction. Options are tried
    at once, so that wrong ones raise here and not in the first trial.
    """

    _policy_class: Callable[..., CensoredPolicy]

    def __init__(self, arms: ArmsLike, options: Mapping[str, Any], **explicit: Any) -> None:
        own = with_defaults(type(self), options) | explicit
        host = {name: own.pop(name) for name in SamplerOptions.__annotations__}
        super().__init__(owned=(), arms=arms, **host)
        self._arguments = {"arms": arms, **explicit, **options}
        self._options = own
        self._policy_class(2, **own)

    # What users call.

    def recommendation(self, study: optuna.Study) -> StudyLimitRecommendation:
        """Return the best pair of arm and time limit so far, and its gain.

        The study was run with this sampler, or with one made with the same arguments.
        """
        with self._lock:
            return _recommendation(self._read(study))

    def best_limit(self, study: optuna.Study) -> float:
        """Return the recommended time limit in seconds, of the recommended arm.

        Raises ValueError if there is no answer yet: nothing was observed, or limits are still being
        derived.
        """
        answer = self.recommendation(study)
        if answer.limit is None:
            raise ValueError(f"there is no best limit yet: {answer.reason}.")
        return answer.limit

    # Helpers.

    def _new(self, study: optuna.Study) -> LimitedRace:
        def make_policy(n_arms: int, sign: float) -> CensoredPolicy:
            return self._policy_class(n_arms, **mirrored(self._options, sign))

        reward_range, longest = self._options["reward_range"], self._options["longest"]
        arms = self._new_arms(study)
        return LimitedRace(study, arms, make_policy, self._lease, reward_range, longest)

    def _seconds_of(
        self, study: optuna.Study, race: LimitedRace, trial: FrozenTrial, state: TrialState
    ) -> float | None:
        seconds: float | None = read_attribute(trial, SECONDS_KEY)
        # Others may have noted it before the trial ended; a trial that is tried again inherits it.
        if seconds is None or read_attribute(trial, ENFORCER_KEY) != "time_limited":
            seconds = race.under_way.seconds_since_beginning(trial)
            if seconds is not None:
                # Who reads the trial later is to read the same.
                write_attribute(study, trial, SECONDS_KEY, seconds)
        race.warn_of_enforcer(trial, state)
        return seconds

    def _answer(self, race: LimitedRace) -> Answer:
        answer = _recommendation(race)
        known = {} if answer.arm is None else race.arms.distributions(answer.arm)
        limit = {} if answer.limit is None else {LIMIT_KEY: answer.limit}
        means_nothing = answer.arm is not None and not race.policy.range_is_known
        return Answer(
            arm=None if means_nothing else answer.arm,
            mean=answer.gain,
            value=pessimistic(answer.interval, race.sign),
            params=answer.params,
            distributions={name: known[name] for name in known if name in answer.params},
            attributes={CERTIFICATE_KEY: answer.to_dict(), **limit},
            reason=_UNKNOWN_RANGE if means_nothing else answer.reason,
            remedy=_DECLARE_RANGE if means_nothing else "Mend the objective.",
        )

    def _is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        if (earlier["arm"], earlier["limit"]) != (now["arm"], now["limit"]):
            return False
        # Workers that end after the horizon change the bounds a little, but not the answer.
        horizon = self._options["horizon"]
        over = horizon is not None and earlier["trials"] >= horizon
        return over or bool(earlier["trials"] == now["trials"])

    def _values_of_arms(self, race: LimitedRace) -> list[tuple[int, float]]:
        if race.policy.piloting:
            return sorted(race.values.items())
        gains = {arm: race.policy.estimate(arm) for arm in race.policy.active.tolist()}
        return [
            (arm, race.sign * float(np.nanmax(gain)))
            for arm, gain in gains.items()
            if not np.isnan(gain).all()
        ]


def _recommendation(race: LimitedRace) -> StudyLimitRecommendation:
    answer = race.policy.recommend()
    answer = replace(answer, assumptions=(*answer.assumptions, *race.notices))
    params = {} if answer.arm is None else dict(race.arms.params(answer.arm))
    return StudyLimitRecommendation.of(answer, race.sign, params, answer.limit, certifies=False)
