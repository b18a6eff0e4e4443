"""The contract between a study and what a sampler runs on it: a race, a search, a game."""

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Answer
from mfhpo.experiment.kinds.runner import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.search.declared import has_levels
from mfhpo_optuna.study.arms import Params
from mfhpo_optuna.study.forgotten import ForgottenReplicate
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.under_way import End

Warn: TypeAlias = Callable[[str, str], None]
"""Warns about something with a message, unless that was said before."""


class Kind(abc.ABC):
    """Declares an experiment, and says what differs in how it is told by trials.

    What is `known` about a study is a `StudyExperiment` of this kind.
    """

    fidelity: Fidelity | None = None  # the parameter that sets the level, if there is one
    replicate: str | None = None  # the parameter that sets the split; None: all are independent
    baseline: Params | None = None  # the configuration in use today, if it is to be enqueued
    arms_option = "arms"  # the argument in which users give configurations
    in_seconds = False  # whether costs are seconds that are measured
    has_one_objective = True
    is_whole = False  # whether configurations have all parameters that an objective may ask for
    chooses = "levels of a fidelity"  # besides configurations: others' claims are not its own
    replaces_pruner = False  # whether Optuna's usual pruner gets in the way
    answers_so_far = True  # whether answers are added before the end
    answered_by = "recommendation"  # the sampler's method
    about_pruning = (
        "Make the study with pruner=optuna.pruners.NopPruner(); the race itself decides what is "
        "not worth finishing."
    )

    @cached_property
    def owned(self) -> tuple[str, ...]:
        """The parameters that the sampler decides, of no configuration."""
        names = None if self.fidelity is None else self.fidelity.name, self.replicate
        return tuple(name for name in names if name is not None)

    @abc.abstractmethod
    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn so that they fill the space evenly."""

    @abc.abstractmethod
    def settings(self, common: Mapping[str, Any]) -> Settings:
        """Return the settings of the experiment, with those that all kinds have."""

    def stopped_at(self, trial: FrozenTrial, end: End, warn: Warn) -> float | None:
        """Return the limit at which a trial was stopped; None if it was not."""
        if end.state != TrialState.PRUNED:
            return None
        # A larger limit of time may be worth it, one of memory there will not be.
        if attributes.read_attribute(trial, attributes.MEMORY_KEY) is not None:
            return float("inf")
        stopped_at: float | None = attributes.read_attribute(trial, attributes.CENSORED_KEY)
        return stopped_at

    def cost_of(self, level: int | None, levels: Sequence[Any]) -> float:
        """Return the declared cost of an evaluation, to guess how long it takes."""
        if self.fidelity is None or not levels:
            return 1.0
        costs = self.fidelity.guessed_costs(tuple(levels))
        return costs[-1 if level is None or level >= len(costs) else level]

    def forgotten(self) -> ForgottenReplicate:
        """Return what finds a replicate that was not declared."""
        return ForgottenReplicate(self.owned)

    def trusts_seconds(self, trial: FrozenTrial) -> bool:
        """Return whether the seconds that a trial has noted are its own."""
        return False

    def objection_to(self, study: optuna.Study) -> str:
        """Return why a study cannot be run, or nothing."""
        return ""

    @abc.abstractmethod
    def check(self, known: Any, trial: FrozenTrial, state: TrialState) -> None:
        """Raise or warn if something is wrong that shows when a trial has ended."""

    @abc.abstractmethod
    def progress(self, known: Any) -> Progress:
        """Return where the experiment stands."""

    def content(self, known: Any, answer: Answer) -> dict[str, Any]:
        """Return the answer as the study records it, in plain JSON values."""
        return answer.to_dict()

    def promise(self, known: Any, answer: Answer) -> float:
        """Return the value of an answer at the end: a certificate's mean, or its bound."""
        if answer.certified or answer.arm is None:
            return answer.mean
        _, _, (low, high) = known.experiment.runner.leader()
        end = low if known.sign > 0.0 else high
        return float(end) if math.isfinite(end) or not answer.searched else answer.mean

    def is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return whether an earlier answer, as recorded, says all that this one says."""
        if any(earlier.get(name) != now.get(name) for name in ("arm", "limit", "certified")):
            return False
        if now.get("certified"):
            # Workers that end after the certificate change the mean a little, but not the claim.
            return bool(earlier["delta"] <= now["delta"] and earlier["epsilon"] <= now["epsilon"])
        return bool(earlier["trials"] == now["trials"])

    def lack(self, known: Any, answer: Answer) -> str | None:
        """Return why there is no answer at the end, "" if there is; None: others say so."""
        if answer.arm is not None and not math.isnan(answer.mean):
            return ""
        return f"{answer.reason}. Give it a larger budget, or mend the objective."

    def sure_value(self, known: Any, bound: float) -> float | None:
        """Return the least worth of the leader, maximised; None if it is not to be shown."""
        return bound

    def objection_to_value(
        self, known: Any, arm: int, name: str, value: Any, distribution: BaseDistribution
    ) -> str:
        """Return what is wrong with a value out of range, if it was given; "": it is drawn anew."""
        if not known.trials.values.is_declared:
            return ""
        return (
            f"{self.arms_option}[{arm}][{name!r}]={value!r} is not a value of the objective's "
            f"{distribution}; change the arm, or what the objective suggests."
        )

    def attributes_outside(self, known: Any, trial: FrozenTrial) -> dict[str, Any]:
        """Return the user attributes of a trial that begins, but claims nothing."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Return what a study is told about how it is run, by attribute."""
        if self.fidelity is None or not has_levels(self.fidelity):
            return {}
        return {attributes.FIDELITY_KEY: self.fidelity.name}

    def announcement(self, known: Any) -> str:
        """Return what the log is to say once about how a study is run; empty for nothing."""
        return ""
