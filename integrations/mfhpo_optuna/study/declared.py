"""The part of a kind of experiment that a study is read by; see `mfhpo_optuna.kinds.kind.Kind`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Assignment
from mfhpo.experiment.kinds.runner import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.study.arms import Params
from mfhpo_optuna.study.distributions import described
from mfhpo_optuna.study.forgotten import ForgottenReplicate
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY, MEMORY_KEY, read_attribute
from mfhpo_optuna.study.trials.under_way import End

Warn: TypeAlias = Callable[[str, str], None]
"""Warns about something with a message, unless that was said before."""


class Declared(abc.ABC):
    """Declares an experiment, and says how its trials are read."""

    fidelity: Fidelity | None = None  # the parameter that sets the level, if there is one
    replicate: str | None = None  # the parameter that sets the split; None: all are independent
    baseline: Params | None = None  # the configuration in use today, if it is to be enqueued
    arms_option = "arms"  # the argument in which users give configurations
    in_seconds = False  # whether costs are seconds that are measured
    has_one_objective = True
    is_whole = False  # whether configurations have all parameters that an objective may ask for
    chooses = "levels of a fidelity"  # besides configurations: others' claims are not its own
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
    def settings(self, study: optuna.Study, seed: int, lease: float | None) -> Settings:
        """Return the settings of the experiment."""

    def stopped_at(self, trial: FrozenTrial, end: End, warn: Warn) -> float | None:
        """Return the limit at which a trial was stopped; None if it was not."""
        if end.state != TrialState.PRUNED:
            return None
        # A larger limit of time may be worth it, one of memory there will not be.
        if read_attribute(trial, MEMORY_KEY) is not None:
            return float("inf")
        stopped_at: float | None = read_attribute(trial, CENSORED_KEY)
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

    def attributes(self, assignment: Assignment) -> dict[str, Any]:
        """Return further user attributes of a trial that begins."""
        return {}

    def counts_as_single(self, trial: FrozenTrial) -> bool:
        """Return whether a trial is a single evaluation, and so no answer."""
        return self.fidelity is None or self.fidelity.name in trial.params

    def trusts_seconds(self, trial: FrozenTrial) -> bool:
        """Return whether the seconds that a trial has noted are its own."""
        return False


def common_settings(study: optuna.Study, seed: int, lease: float | None) -> dict[str, Any]:
    """Return the settings that all kinds with one objective have."""
    return {
        "seed": seed,
        "sign": 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0,
        "lease_seconds": lease,
        "describe": described,
    }
