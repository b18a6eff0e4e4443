"""Tells the events of an experiment once more, to see what happened."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from mfhpo.experiment import Experiment
from mfhpo.experiment.kinds.blind import with_levels
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.ledger import Result
from mfhpo.problem import Observation
from mfhpo_optuna.study.study_experiment import StudyExperiment


@dataclass(frozen=True)
class Evaluation:
    """One trial: what it evaluated, and what was paid in all before and after it."""

    trial: int
    arm: int
    fidelity: int  # the index of its level
    begin: float
    end: float
    value: float  # as the objective returned it; NaN without one
    failed: bool
    purpose: str  # see `mfhpo.experiment.Begun`

    @property
    def has_value(self) -> bool:
        """Whether it gave a value."""
        return math.isfinite(self.value)

    @property
    def is_replicate(self) -> bool:
        """True if it was made for the certificate."""
        return self.purpose == "certificate"


def told_again(known: StudyExperiment) -> Iterator[tuple[Runner, list[Evaluation]]]:
    """Yield what a study's experiment has learned each time, and its runner after that."""
    experiment = Experiment(with_levels(known.experiment.settings, known.trials.levels))
    n_known, cost = 0, 0.0
    for event in known.experiment.events:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given before
            experiment.apply(event)
            learned = experiment.history()[n_known:]
        if not learned:
            continue
        runner, new = experiment.runner, []
        for result in learned:
            begin, cost = cost, cost + runner.cost_of(result.pull, result.observation)
            if result is learned[-1]:  # the others waited for it
                cost = runner.cost
            new.append(_evaluation(result, begin, cost, known.sign))
        n_known += len(learned)
        yield runner, new


def evaluations_of(known: StudyExperiment) -> list[Evaluation]:
    """Return a study's evaluations in the order in which they were learned."""
    return [evaluation for _, new in told_again(known) for evaluation in new]


def _evaluation(result: Result, begin: float, end: float, sign: float) -> Evaluation:
    pull, seen = result.pull, result.observation
    failed = seen.failed if isinstance(seen, Observation) else None in seen  # in a game
    value = getattr(seen, "value", None)
    value = math.nan if value is None else sign * value
    trial, purpose = int(result.id), result.purpose
    return Evaluation(trial, pull.arm, pull.fidelity, begin, end, value, failed, purpose)
