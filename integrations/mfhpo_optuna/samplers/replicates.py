"""The study that records the replicates of a shortlist: its race, and the sampler that runs it."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo import NoNoiseWarning, Observation, Pull
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.certification import Certification
from mfhpo_optuna.samplers.answer import Answer, pessimistic
from mfhpo_optuna.samplers.policy_sampler import PolicySampler
from mfhpo_optuna.samplers.study_sampler import stop
from mfhpo_optuna.study.arms import Arms
from mfhpo_optuna.study.attributes import ARM_KEY, CERTIFICATE_KEY, SAMPLER_KEY, read_attribute
from mfhpo_optuna.study.forgotten import ForgottenReplicate
from mfhpo_optuna.study.levels import Replicates, contains
from mfhpo_optuna.study.loop.report import ProgressLike
from mfhpo_optuna.study.loop.state import Progress
from mfhpo_optuna.study.shortlist import StudyShortlist
from mfhpo_optuna.study.study_race import FORGOTTEN, End, StudyRace


class Replicate(optuna.Trial):
    """A trial under a number that the search has not used: `first_number` is added to its own.

    Objectives that derive their seed from it would otherwise draw the search's noise
    once more, whose luck has made the shortlist.
    """

    def __init__(self, trial: optuna.Trial, first_number: int) -> None:
        # Made anew, it would ask the sampler for another pull.
        self.__dict__.update(trial.__dict__)
        self._first_number = first_number

    @property
    def number(self) -> int:
        """The trial's number, counted on from the search's trials."""
        return self._first_number + super().number


class ReplicateRace(StudyRace):
    """Translates between the trials of the recording study and a `Certification`."""

    def __init__(
        self,
        study: optuna.Study,
        arms: Arms,
        lease: float | None,
        shortlist: StudyShortlist,
        certification: Certification,
        replicates: Replicates | None,
        forgotten: ForgottenReplicate,
    ) -> None:
        super().__init__(study, arms, lease, replicates)
        self._forgotten = forgotten
        if forgotten.notice:
            self.warned.add(FORGOTTEN)
        self.shortlist = shortlist
        self.certification = certification
        self.policy = certification.policy
        self.never_asked = ""

    def certificate(self) -> Certificate:
        """Return the answer so far."""
        answer = self.certification.certificate(self.shortlist.about, self.shortlist.words)
        return replace(answer, notices=(*answer.notices, *self.notices))

    def progress(self) -> Progress:
        """Return candidates left, evaluations, and the leader with its interval."""
        answer = self.certificate()
        left = sum(r.standing not in ("worse", "failed") for r in answer.candidates)
        leader = "none, every candidate failed"
        if answer.winner is not None:
            first = answer.candidates[answer.winner]
            leader = f"{first.name}, {first.mean:.4g}, within {answer.within:.3g}"
        total = answer.evaluations + (math.inf if answer.remaining is None else answer.remaining)
        return Progress(
            phase="certify",
            configurations=f"{left}/{len(answer.candidates)} candidates left",
            leader=leader,
            spent=answer.evaluations,
            total=total if math.isfinite(total) else None,
            unit="evaluations",
            is_guess=True,
        )

    def sure_value(self, bound: float) -> float | None:
        """Return None: a record's only answer is its last; `certify` says what there is."""
        return None

    def propose(self, trial: FrozenTrial) -> Pull | None:
        """Return the pull for a trial that begins; None if no candidate is left."""
        return self._ask(trial.number)

    def attributes(self, pull: Pull) -> dict[str, Any]:
        """Return the user attributes that tell about a pull, with the candidate's name."""
        candidate = self.certification.candidates[pull.arm]
        block = {} if pull.block is None else {"block": pull.block}
        tag = {"arm": pull.arm, **block, "certifies": True}
        return {"mfhpo:candidate": candidate.name, ARM_KEY: tag}

    def _noted(self, trial: FrozenTrial) -> Pull:
        note = self._note_of(trial)
        assert note is not None
        return Pull(note.arm, 0, block=note.block)

    def _take_in(self, trial: FrozenTrial, pull: Pull, end: End) -> bool:
        if end.state == TrialState.PRUNED and trial.number not in self.over:
            self._warn_once(
                "pruning",
                f"trial {trial.number} was pruned by the objective itself (should_prune() says no "
                f"here) or stopped at a limit: it gave no value, and counts as failed",
            )
        value = end.value
        succeeded = value is not None
        if succeeded:
            missing = set(self.arms.params(pull.arm)) - set(trial.params)
            if missing:
                self.never_asked = ", ".join(map(repr, sorted(missing)))
        belongs = self._is_of_arm(trial, pull.arm, succeeded)
        belongs = belongs and (not succeeded or self._is_of_block(pull, trial))
        self._note_duration(pull, end.seconds)
        counts = belongs and not self.never_asked
        observed = self.sign * value if counts and value is not None else None
        self._tell(trial, pull, Observation(observed))
        return True

    def _tell_now(self, trial_number: int, pull: Pull, observation: Observation) -> None:
        super()._tell_now(trial_number, pull, observation)
        value = observation.value
        self.certification.note(pull.arm, None if value is None else self.sign * value)


class ReplicateSampler(PolicySampler[ReplicateRace]):
    """Evaluates the candidates of a shortlist until the best of them is certified.

    `make_certification` makes the race, given a seed, and `options` are what it was given beside
    it, which all processes must share. `forgotten` knows the search's trials. For the rest see
    `SamplerOptions`.
    """

    def __init__(
        self,
        shortlist: StudyShortlist,
        make_certification: Callable[[int], Certification],
        options: Mapping[str, Any],
        forgotten: ForgottenReplicate,
        *,
        lease: float | None,
        progress: ProgressLike,
    ) -> None:
        self._shortlist = shortlist
        self._make_certification = make_certification
        self._forgotten = forgotten
        super().__init__(
            owned=() if shortlist.replicate is None else (shortlist.replicate,),
            arms=len(shortlist.candidates),
            arm_sampler=None,
            lease=lease,
            progress=progress,
            seed=None,
        )
        self._arguments = dict(options)

    def race(self, study: optuna.Study) -> ReplicateRace:
        """Return the race as it stands."""
        with self._lock:
            return self._read(study)

    def conclude(self, study: optuna.Study, is_reader: bool) -> None:
        """See that ``study.best_trial`` is the answer, if the race is over.

        While other processes certify the same with other arguments, a mere reader adds no answer,
        and others raise ValueError.
        """
        with self._lock:
            race, noted = self._read(study), read_attribute(study, SAMPLER_KEY)
            others = self._others(race.chosen_by(-1))
            objection = self._settings.objection_to(noted, () if is_reader else others)
            if objection:
                raise ValueError(f"study {study.study_name!r} {objection}")
            if race.certification.finished and not (is_reader and others):
                self._conclude(study, race)

    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        race = self._of(study)
        pull = race.pull(trial.number)
        if trial.number in race.over or pull is None:
            raise optuna.TrialPruned("the candidates are evaluated; nothing is left to do")
        if name == self._shortlist.replicate:
            return race.replicate_of(trial.number, distribution)
        candidate = race.certification.candidates[pull.arm]
        if name not in candidate.params:
            raise ValueError(
                f"the objective asks for {name!r}, which {candidate.name} of the study does not "
                f"have: its parameters are {sorted(candidate.params)}. {_GIVE_THE_SAME}"
            )
        value = candidate.params[name]
        if not contains(distribution, value):
            raise ValueError(
                f"{name}={value!r} of {candidate.name} is not a value of the objective's "
                f"{distribution}. {_GIVE_THE_SAME}"
            )
        return value

    def _new(self, study: optuna.Study) -> ReplicateRace:
        arms = self._new_arms(study)
        parts = zip(self._shortlist.candidates, self._shortlist.distributions, strict=True)
        for arm, (candidate, distributions) in enumerate(parts):
            arms.adopt(arm, dict(candidate.params), distributions, whole=True)
        seed, name = self._seed_of(study), self._shortlist.replicate
        replicates = None if name is None else Replicates(name, seed)
        return ReplicateRace(
            study,
            arms,
            self._lease,
            self._shortlist,
            self._make_certification(seed),
            replicates,
            self._forgotten,
        )

    def _check(self, study: optuna.Study, race: ReplicateRace) -> None:
        if race.never_asked:
            raise ValueError(
                f"the objective did not ask for {race.never_asked}, which the study's trials "
                f"have. {_GIVE_THE_SAME}"
            )
        if race.certification.noise_is_hidden:
            stop(study)
            if "hidden noise" not in race.warned:
                race.warned.add("hidden noise")
                warnings.warn(_HOW_TO_SEE_NOISE, NoNoiseWarning, stacklevel=5)

    def _conclude(
        self,
        study: optuna.Study,
        race: ReplicateRace,
        trial: FrozenTrial | None = None,
        finish: Callable[[ReplicateRace], bool] | None = None,
    ) -> None:
        if not race.certification.noise_is_hidden:
            super()._conclude(study, race, trial, finish)

    def _say_if_cut_short(self, read: ReplicateRace) -> None:
        """Say nothing: `certify` returns what is known."""

    def _answer(self, race: ReplicateRace) -> Answer:
        answer = race.certificate()
        arm, value = answer.winner, answer.mean
        if arm is not None and not answer.certified:
            value = pessimistic(race.certification.interval(arm), race.sign)
        # The base looks its answers up by their arm.
        content = answer.to_dict() | {"arm": arm}
        return Answer(
            arm=arm,
            mean=answer.mean,
            value=value,
            params=answer.params,
            distributions={} if arm is None else dict(race.arms.distributions(arm)),
            attributes={CERTIFICATE_KEY: content},
            reason=answer.reason,
        )

    def _is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        if any(earlier[name] != now[name] for name in ("winner", "certified", "delta", "epsilon")):
            return False
        # Workers that end after the certificate change the mean a little, but not the claim.
        return bool(now["certified"] or earlier["evaluations"] == now["evaluations"])


_GIVE_THE_SAME = "Give the objective that the study was run with."

_HOW_TO_SEE_NOISE = (
    "every evaluation of a candidate gave exactly the same value, so nothing can be certified: the "
    "objective seems to use a fixed random seed or split. Draw a new one in every evaluation (seed "
    "it with the replicate, with mfhpo_optuna.seed_of(trial), or not at all) and certify again; if "
    "the objective really has no noise, say so with sigma=0"
)
