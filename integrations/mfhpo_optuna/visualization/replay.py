"""Tells the events of a race or a search once more, to see what happened."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from mfhpo.experiment import Experiment
from mfhpo.experiment.kinds.blind import with_levels
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.ledger import Result
from mfhpo.problem import Observation, Pull
from mfhpo_optuna.study.study_experiment import StudyExperiment


def told_again(known: StudyExperiment) -> Iterator[tuple[Runner, list[Result]]]:
    """Yield what a study's experiment has learned each time, and its runner after that."""
    experiment = Experiment(with_levels(known.experiment.settings, known.trials.levels))
    n_known = 0
    for event in known.experiment.events:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given before
            experiment.apply(event)
            learned = experiment.history()[n_known:]
        if learned:
            n_known += len(learned)
            yield experiment.runner, learned


@dataclass(frozen=True)
class Evaluation:
    """One trial: what it evaluated, and what was paid in all before and after it."""

    trial: int
    pull: Pull
    begin: float
    end: float
    value: float  # as the objective returned it; NaN without one
    failed: bool
    purpose: str  # see `mfhpo.experiment.Begun`

    @property
    def arm(self) -> int:
        """The arm that it evaluated."""
        return self.pull.arm

    @property
    def fidelity(self) -> int:
        """The index of its level."""
        return self.pull.fidelity

    @property
    def has_value(self) -> bool:
        """Whether it gave a value."""
        return math.isfinite(self.value)

    @property
    def is_replicate(self) -> bool:
        """True if it was made for the certificate."""
        return self.purpose == "certificate"

    @property
    def is_of_search(self) -> bool:
        """Whether it was made by the search, and gave a value."""
        return self.has_value and not self.is_replicate


class Replay:
    """A study's evaluations in the order in which they were learned."""

    def __init__(self, known: StudyExperiment) -> None:
        self.known = known
        self.evaluations: list[Evaluation] = []
        for runner, learned in told_again(known):
            self._learn(runner, learned)

    @property
    def cost(self) -> float:
        """The cost of all evaluations."""
        return self.evaluations[-1].end if self.evaluations else 0.0

    def _learn(self, runner: Runner, learned: list[Result]) -> None:
        """Take note of evaluations, and of what they have changed."""
        for result in learned[:-1]:  # these waited for the last one
            self._add(result, self.cost + runner.cost_of(result.pull, result.observation))
        self._add(learned[-1], runner.cost)

    def _add(self, result: Result, cost: float) -> None:
        seen = result.observation
        is_of_game = not isinstance(seen, Observation)
        value = None if is_of_game else seen.value
        evaluation = Evaluation(
            trial=int(result.id),
            pull=result.pull,
            begin=self.cost,
            end=cost,
            value=math.nan if value is None else self.known.sign * value,
            failed=None in seen if is_of_game else seen.failed,
            purpose=result.purpose,
        )
        self.evaluations.append(evaluation)
