"""The record of `certify`: the candidates of a shortlist are evaluated until the best is known."""

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo.certification.certification import Certification
from mfhpo.experiment import Answer, Assignment, ShortlistSettings, key_of
from mfhpo_optuna.study.arms import Params
from mfhpo_optuna.study.distributions import described
from mfhpo_optuna.study.forgotten import ForgottenReplicate
from mfhpo_optuna.study.kind import Kind, common_settings
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.shortlist import StudyShortlist
from mfhpo_optuna.study.study_experiment import StudyExperiment

_GIVE_THE_SAME = "Give the objective that the study was run with."


class RecordKind(Kind):
    """Compares the candidates of a shortlist by new evaluations.

    For options see `mfhpo.experiment.ShortlistSettings`: they are tried at once, so that wrong ones
    raise before anything is recorded. `forgotten` knows the trials that have made the shortlist.
    """

    is_whole = True
    answers_so_far = False
    about_pruning = "should_prune() says no here, so the objective itself has pruned it."

    def __init__(
        self, shortlist: StudyShortlist, options: Mapping[str, Any], forgotten: ForgottenReplicate
    ) -> None:
        self.replicate = shortlist.replicate
        self._shortlist = shortlist
        self._options = {**options, "blocks": self.replicate is not None}
        self._forgotten = forgotten
        self._names = {key_of(one.params, described): one.name for one in shortlist.candidates}
        ShortlistSettings(shortlist=shortlist, options=self._options).runner()

    def given(self, seed: int) -> list[Params]:
        """Return the candidates' parameters."""
        return [candidate.params for candidate in self._shortlist.candidates]

    def settings(self, study: optuna.Study, seed: int, lease: float | None) -> ShortlistSettings:
        """Return the settings of the contest."""
        common = common_settings(study, seed, lease)
        return ShortlistSettings(shortlist=self._shortlist, options=self._options, **common)

    def forgotten(self) -> ForgottenReplicate:
        """Return what finds a forgotten replicate, which has seen the search's trials."""
        return deepcopy(self._forgotten)

    def attributes(self, assignment: Assignment) -> dict[str, Any]:
        """Return the candidate's name."""
        return {"mfhpo:candidate": self._names[key_of(assignment.configuration, described)]}

    def check(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Raise ValueError if the last evaluation was of something else than the study's trials."""
        not_asked = known.trials.not_asked
        if not_asked:
            raise ValueError(
                f"the objective did not ask for {', '.join(map(repr, not_asked))}, which the "
                f"study's trials have. {_GIVE_THE_SAME}"
            )

    def objection_to_value(
        self, known: StudyExperiment, arm: int, name: str, value: Any, how: BaseDistribution
    ) -> str:
        """Return why the objective cannot be the study's: other parameters, or other ranges."""
        candidate = self._shortlist.candidates[arm]
        if name in candidate.params:
            return (
                f"{name}={value!r} of {candidate.name} is not a value of the objective's "
                f"{how}. {_GIVE_THE_SAME}"
            )
        return (
            f"the objective asks for {name!r}, which {candidate.name} of the study does not have: "
            f"its parameters are {sorted(candidate.params)}. {_GIVE_THE_SAME}"
        )

    def progress(self, known: StudyExperiment) -> Progress:
        """Return candidates left, evaluations, and the leader with its interval."""
        answer = known.answer().certificate
        assert answer is not None
        left = sum(one.standing not in ("worse", "failed") for one in answer.candidates)
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
            has_end=False,  # `certify` returns what is known: nothing is cut short
        )

    def content(self, known: StudyExperiment, answer: Answer) -> dict[str, Any]:
        """Return the certificate as the record has it, with the arm by which answers are known."""
        assert answer.certificate is not None
        return {**answer.certificate.to_dict(), "arm": answer.arm}

    def promise(self, known: StudyExperiment, answer: Answer) -> float:
        """Return the mean of a certificate, and else the end of its interval, however wide."""
        if answer.certified or answer.arm is None:
            return answer.mean
        return _contest(known).interval(answer.arm)[0 if known.sign > 0.0 else 1]

    def is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer, as recorded, says all that this one says."""
        if any(earlier[name] != now[name] for name in ("winner", "certified", "delta", "epsilon")):
            return False
        # Workers that end after the certificate change the mean a little, but not the claim.
        return bool(now["certified"] or earlier["evaluations"] == now["evaluations"])

    def lack(self, known: StudyExperiment, answer: Answer) -> str | None:
        """Return why there is no answer; None where `certify` says that no noise is seen."""
        return None if noise_is_hidden(known) else super().lack(known, answer)


def noise_is_hidden(known: StudyExperiment) -> bool:
    """Return whether all evaluations of each candidate gave exactly the same value."""
    return _contest(known).noise_is_hidden


def _contest(known: StudyExperiment) -> Certification:
    runner: Any = known.experiment.runner
    contest: Certification = runner.contest
    return contest
