"""The comparison's runs of our search: what it evaluates, what that costs, what it recommends."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import HEADLINE, OURS, methods_of
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.scores import BUDGETS
from benchmarks.hpo.space import Configuration


class _RecordingMeter(Meter):
    """Notes what the optimiser evaluates."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.trials: list[dict[str, Any]] = []

    def evaluate(self, configuration: Configuration, level: int) -> float:
        value = super().evaluate(configuration, level)
        trial = {"configuration": configuration, "level": level, "value": value, "paid": self.cost}
        self.trials.append(trial)
        return value


def _searched(task: str, seed: int, data: Path) -> dict[str, Any]:
    meter = _RecordingMeter(problem_named(task, data / "yahpo"), BUDGETS[-1], seed)
    with suppress(BudgetSpent):
        methods_of(OURS)[HEADLINE](meter, seed)
    answer = meter.steps[-1]
    recommendation = {"configuration": answer.configuration, "claim": answer.claim}
    return {"trials": meter.trials, "recommendation": recommendation}


SEARCHES = {
    f"search {task}, seed {seed}": partial(_searched, task, seed)
    for task in DEVELOPMENT_TASKS
    for seed in (0, 1)
}
"""By name, what plays a run, given the folder of the data."""
