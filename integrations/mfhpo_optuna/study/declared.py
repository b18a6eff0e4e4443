"""The part of a kind of experiment that a study is read by; see `mfhpo_optuna.kinds.kind.Kind`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from mfhpo.experiment import Assignment
    from mfhpo.experiment.kinds.settings import Settings
    from mfhpo.knowledge.fidelity import Fidelity
    from mfhpo_optuna.study.arms import Params
    from mfhpo_optuna.study.forgotten import ForgottenReplicate
    from mfhpo_optuna.study.trials.ends import End


Warn: TypeAlias = Callable[[str, str], None]
"""Warns about something with a message, unless that was said before."""


class Declared(Protocol):
    """Declares an experiment, and says how its trials are read."""

    fidelity: Fidelity | None
    replicate: str | None
    arms_option: str
    in_seconds: bool
    has_one_objective: bool
    is_whole: bool
    about_pruning: str
    chooses: str

    @property
    def owned(self) -> tuple[str, ...]:
        """The parameters that the sampler decides, of no configuration."""

    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn."""

    def settings(self, study: optuna.Study, seed: int, lease: float | None) -> Settings:
        """Return the settings of the experiment."""

    def stopped_at(self, trial: FrozenTrial, end: End, warn: Warn) -> float | None:
        """Return the limit at which a trial was stopped; None if it was not."""

    def cost_of(self, level: int | None, levels: Sequence[Any]) -> float:
        """Return the declared cost of an evaluation."""

    def forgotten(self) -> ForgottenReplicate:
        """Return what finds a replicate that was not declared."""

    def attributes(self, assignment: Assignment) -> dict[str, Any]:
        """Return further user attributes of a trial that begins."""

    def counts_as_single(self, trial: FrozenTrial) -> bool:
        """Return whether a trial is a single evaluation, and so no answer."""

    def trusts_seconds(self, trial: FrozenTrial) -> bool:
        """Return whether the seconds that a trial has noted are its own."""
