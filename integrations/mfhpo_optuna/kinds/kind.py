"""The contract between a study and what a sampler runs on it: a race, a search, a game."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Answer
from mfhpo.search.declared import has_levels
from mfhpo_optuna.study.declared import Declared
from mfhpo_optuna.study.distributions import drawn
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import FIDELITY_KEY


class Kind(Declared):
    """Declares an experiment, and says what differs in how it is told by trials."""

    replaces_pruner = False  # whether Optuna's usual pruner gets in the way
    answers_so_far = True  # whether answers are added before the end
    answered_by = "recommendation"  # the sampler's method

    def objection_to(self, study: optuna.Study) -> str:
        """Return why a study cannot be run, or nothing."""
        return ""

    @abc.abstractmethod
    def check(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Raise or warn if something is wrong that shows when a trial has ended."""

    @abc.abstractmethod
    def progress(self, known: StudyExperiment) -> Progress:
        """Return where the experiment stands."""

    def content(self, known: StudyExperiment, answer: Answer) -> dict[str, Any]:
        """Return the answer as the study records it, in plain JSON values."""
        return answer.to_dict()

    def promise(self, known: StudyExperiment, answer: Answer) -> float:
        """Return the value of the trial that shows an answer at the end.

        The mean of a certificate, and else the pessimistic end of its interval.
        """
        if answer.certified or answer.arm is None:
            return answer.mean
        low, high = self.interval_of(known, answer.arm)
        end = low if known.sign > 0.0 else high
        return end if math.isfinite(end) or not answer.searched else answer.mean

    def interval_of(self, known: StudyExperiment, leader: int) -> tuple[float, float]:
        """Return the interval of the configuration that leads, in the objective's direction."""
        interval: tuple[float, float] = known.experiment.runner.leader()[2]
        return interval

    def is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer, as recorded, says all that this one says."""
        if (earlier["arm"], earlier["certified"]) != (now["arm"], now["certified"]):
            return False
        if now["certified"]:
            # Workers that end after the certificate change the mean a little, but not the claim.
            return bool(earlier["delta"] <= now["delta"] and earlier["epsilon"] <= now["epsilon"])
        return bool(earlier["trials"] == now["trials"])

    def lack(self, known: StudyExperiment, answer: Answer) -> str | None:
        """Return why there is no answer at the end, and what to do; "" if there is one.

        None: there is none, and somebody else says so.
        """
        if answer.arm is not None and not math.isnan(answer.mean):
            return ""
        return f"{answer.reason}. Give it a larger budget, or mend the objective."

    def shown(
        self, known: StudyExperiment, answer: Answer
    ) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
        """Return parameters and distributions of the trial that shows an answer."""
        params: dict[str, Any] = {}
        distributions: dict[str, BaseDistribution] = {}
        if answer.arm is not None:
            what = known.values_of(answer.arm)
            params, distributions = dict(what.params), dict(what.distributions)
        asked = known.trials.fidelity_distribution
        if asked is not None and self.fidelity is not None:
            distributions[self.fidelity.name] = asked
            params[self.fidelity.name] = answer.level
        return params, {name: how for name, how in distributions.items() if name in params}

    def marks(self, answer: Answer) -> dict[str, Any]:
        """Return further user attributes of the trial that shows an answer."""
        return {}

    def sure_value(self, known: StudyExperiment, bound: float) -> float | None:
        """Return the leader's least worth, maximised, if its interval begins at `bound`.

        None if it is not to be shown as the answer so far.
        """
        return bound

    def values_of_draws(self, known: StudyExperiment) -> list[tuple[int, float]]:
        """Return arms and their comparable values, for another sampler that draws arms."""
        return []

    def value_outside(
        self,
        known: StudyExperiment,
        trial: FrozenTrial,
        arm: int,
        name: str,
        value: Any,
        distribution: BaseDistribution,
    ) -> Any:
        """Return another value where that of a configuration is none that is asked for.

        Raises ValueError for one that users have given, and for one that is missing in a whole
        configuration.
        """
        if known.trials.values.is_declared:
            raise ValueError(
                f"{self.arms_option}[{arm}][{name!r}]={value!r} is not a value of the objective's "
                f"{distribution}; change the arm, or what the objective suggests."
            )
        return drawn(0, trial.number, name, distribution)

    def cut_short(self, known: StudyExperiment, progress: Progress) -> str:
        """Return what is left and what is known where an `optimize` ended before the end."""
        leader = "there is no leader"
        if progress.leader:
            not_certified = ", not certified" if getattr(known.policy, "certifies", True) else ""
            leader = f"the leader is {progress.leader}{not_certified}"
        return (
            f"optimize() ended before the race did: {progress.left}. So far {leader}. Call "
            f"study.optimize again to go on; print(study.sampler.recommendation(study)) tells what "
            f"is known."
        )

    def attributes_outside(self, known: StudyExperiment, trial: FrozenTrial) -> dict[str, Any]:
        """Return the user attributes of a trial that begins, but claims nothing."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Return what a study is told about how it is run, by attribute."""
        if self.fidelity is None or not has_levels(self.fidelity):
            return {}
        return {FIDELITY_KEY: self.fidelity.name}

    def announcement(self, known: StudyExperiment) -> str:
        """Return what the log is to say once about how a study is run; empty for nothing."""
        return ""
