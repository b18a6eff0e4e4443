"""SMAC3: its multi-fidelity facade, which is Hyperband over a random forest's proposals."""

from __future__ import annotations

import logging
import math
import tempfile

from smac import MultiFidelityFacade, Scenario
from smac.runhistory import StatusType, TrialValue

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import same_configuration
from benchmarks.peers._config_space import config_space_of
from benchmarks.peers._levels import level_of, step_of
from benchmarks.peers._values import plain

# One round of Hyperband over levels 1, 3, 9, 27: 69 trials at the cost of 15.7 full evaluations.
_TRIALS_FOR_A_FULL_EVALUATION = 4.4


def _multi_fidelity(meter: Meter, seed: int) -> None:
    logging.getLogger("smac").setLevel(logging.ERROR)
    levels = len(meter.problem.fidelity.levels)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            config_space_of(meter.problem.space, seed),
            deterministic=True,
            min_budget=step_of(0),
            max_budget=step_of(levels - 1),
            n_trials=math.ceil(_TRIALS_FOR_A_FULL_EVALUATION * meter.budget),
            seed=seed,
            output_directory=folder,
        )
        smac = MultiFidelityFacade(scenario, _not_called, overwrite=True, logging_level=False)
        _ask_and_tell(meter, smac)


def _ask_and_tell(meter: Meter, smac: MultiFidelityFacade) -> None:
    values = {}
    incumbent = None
    while True:
        trial = smac.ask()
        configuration = plain(trial.config)
        value = meter.evaluate(configuration, level_of(trial.budget))
        if math.isfinite(value):
            told = TrialValue(cost=-value)
        else:
            told = TrialValue(cost=math.inf, status=StatusType.CRASHED)
        # Saving is for resuming, and would be paid by every evaluation.
        smac.tell(trial, told, save=False)
        values[same_configuration(configuration)] = value
        incumbent = smac.intensifier.get_incumbent()
        if incumbent is not None:
            best = plain(incumbent)
            meter.recommend(best, claim=values[same_configuration(best)])


def _not_called(config: object, seed: int = 0, budget: float = 0.0) -> float:
    raise RuntimeError("SMAC called the objective, although it is only asked and told")


METHODS: dict[str, Method] = {"smac multi-fidelity": _multi_fidelity}
