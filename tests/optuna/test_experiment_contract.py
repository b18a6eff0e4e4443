"""Optuna's samplers do what the engine says, as far as they are not on it yet."""

from typing import ClassVar

import optuna

from mfhpo_optuna import MFSampler
from tests.contract.experiment_contract import Host, conformance, settings_of_finalists

_LATER = "Optuna's samplers are not on the engine yet"


class Samplers(Host):
    cannot: ClassVar = {
        "certify": "its search is a study",
        "the worst value": _LATER,
        **dict.fromkeys(("search", "independent search", "measured"), _LATER),
        **dict.fromkeys(
            ("several workers", "types", "equal entries", "mistakes", "deaths"), _LATER
        ),
    }

    def run(self, task, world):
        options = {"seed": task.seed, "epsilon": task.epsilon, "sigma": task.sigma}
        options |= {"budget": task.budget, "max_failures": task.max_failures, "bias": task.bias}
        if task.shares:
            options["replicate"] = "split"
        sampler = MFSampler(task.fidelity, list(task.candidates), **options)
        study = optuna.create_study(direction="maximize", sampler=sampler)

        def objective(trial):
            configuration = {"x": trial.suggest_float("x", 0.0, 1.0)}
            level = trial.suggest_int("epochs", 1, task.levels[-1])
            split = trial.suggest_int("split", 0, 10**6) if task.shares else None
            id = str(trial.number)
            outcome = world.begin(id, configuration, level, split)
            world.end(id)
            if outcome.value is None:
                raise RuntimeError("it fails")
            return outcome.value

        study.optimize(objective, catch=(RuntimeError,))
        return sampler.recommendation(study)

    def settings_of(self, task):
        return settings_of_finalists(task) or super().settings_of(task)


TestSamplers = conformance(Samplers())
