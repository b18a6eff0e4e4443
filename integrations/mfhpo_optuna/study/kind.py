"""The contract between a study and what a sampler runs on it: a race, a search, a game."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Answer
from mfhpo.experiment.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.study.attributes import CENSORED_KEY, MEMORY_KEY, read_attribute
from mfhpo_optuna.study.ends import End
from mfhpo_optuna.study.loop.state import Progress

if TYPE_CHECKING:
    from mfhpo_optuna.study.arms import Params
    from mfhpo_optuna.study.attributes import PullNote
    from mfhpo_optuna.study.study_experiment import StudyExperiment


class Kind(abc.ABC):
    """Declares an experiment, and says what differs in how it is told by trials.

    Attributes
    ----------
    fidelity
        The parameter that sets the level, which the sampler decides; None: there is none.
    replicate
        The parameter that sets the split or the seed; None: evaluations are independent.
    arms_option
        The argument in which users give configurations.
    in_seconds
        Whether costs are seconds that are measured.
    certifies
        Whether a certificate is what it is after.
    """

    fidelity: Fidelity | None = None
    replicate: str | None = None
    arms_option = "arms"
    in_seconds = False
    certifies = True

    @property
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

    def objection_to(self, study: optuna.Study) -> str:
        """Return why a study cannot be run, or nothing."""
        return ""

    def stopped_at(self, trial: FrozenTrial, note: PullNote) -> float | None:
        """Return the limit at which a pruned trial was stopped; None if it was not."""
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

    def check(self, known: StudyExperiment) -> None:
        """Raise or warn if the experiment cannot go on as it is."""

    @abc.abstractmethod
    def progress(self, known: StudyExperiment) -> Progress:
        """Return where the experiment stands."""

    def content(self, known: StudyExperiment, answer: Answer) -> dict[str, Any]:
        """Return the answer as the study records it, in plain JSON values."""
        return answer.to_dict()

    def promise(self, known: StudyExperiment, answer: Answer) -> float:
        """Return the value of the trial that shows an answer at the end."""
        return answer.mean

    def sure_value(self, known: StudyExperiment, bound: float) -> float | None:
        """Return the leader's least worth, maximised, if its interval begins at `bound`.

        None if it is not to be shown as the answer so far.
        """
        return bound

    def values_of_draws(self, known: StudyExperiment) -> list[tuple[int, float]]:
        """Return arms and their comparable values, for another sampler that draws arms."""
        return []

    def warn_at_end(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Say once what is wrong with how a trial was run."""

    def end(self, end: End, note: PullNote, trial: FrozenTrial) -> End:
        """Return the end of a trial as it counts."""
        return end
