"""SMAC3: its multi-fidelity facade, which is Hyperband over a random forest's proposals."""

from __future__ import annotations

import logging
import math
import tempfile
from typing import Any

from smac import MultiFidelityFacade, Scenario
from smac.runhistory import StatusType, TrialValue

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import same_configuration
from benchmarks.peers._config_space import config_space_of
from benchmarks.peers._levels import level_of, step_of
from benchmarks.peers._values import plain

# One round of Hyperband over levels 1, 3, 9, 27: 69 trials at the cost of 15.7 full evaluations.
_TRIALS_FOR_A_FULL_EVALUATION = 4.4


class Facade:
    """SMAC's multi-fidelity facade, asked and told."""

    def __init__(self, setting: Setting) -> None:
        logging.getLogger("smac").setLevel(logging.ERROR)
        self._folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            config_space_of(setting.problem.space, setting.seed),
            deterministic=True,
            min_budget=step_of(0),
            max_budget=step_of(setting.target),
            n_trials=math.ceil(_TRIALS_FOR_A_FULL_EVALUATION * setting.budget),
            seed=setting.seed,
            output_directory=self._folder.name,
        )
        self._smac = MultiFidelityFacade(scenario, _not_called, overwrite=True, logging_level=False)
        self._values: dict[Any, float] = {}

    def ask(self) -> Job:
        """The next evaluation."""
        trial = self._smac.ask()
        return Job(plain(trial.config), level_of(trial.budget), trial)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Take in a value."""
        if math.isfinite(value):
            told = TrialValue(cost=-value)
        else:
            told = TrialValue(cost=math.inf, status=StatusType.CRASHED)
        # Saving is for resuming, and would be paid by every evaluation.
        self._smac.tell(job.handle, told, save=False)
        self._values[same_configuration(job.configuration)] = value

    def advice(self) -> Advice | None:
        """The incumbent, by the highest level of each configuration."""
        incumbent = self._smac.intensifier.get_incumbent()
        if incumbent is None:
            return None
        best = plain(incumbent)
        return Advice(best, self._values[same_configuration(best)])


def _not_called(config: object, seed: int = 0, budget: float = 0.0) -> float:
    raise RuntimeError("SMAC called the objective, although it is only asked and told")


CLOCKED: dict[str, Make] = {"smac multi-fidelity": Facade}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
