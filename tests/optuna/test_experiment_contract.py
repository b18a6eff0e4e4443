"""Optuna's samplers do what the engine says, by ask and tell with an invented clock."""

import math
from typing import ClassVar
from unittest import mock

import optuna
from optuna.trial import TrialState

from mfhpo_optuna import MFSampler
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY
from mfhpo_optuna.study.trials.under_way import UnderWay
from tests.contract.experiment_contract import Host, conformance, settings_of_finalists
from tests.optuna.samplers.races import PULL

_ONE_BY_ONE = "its configurations are drawn value by value: tests/core/experiment/test_draws.py"


class Samplers(Host):
    cannot: ClassVar = {
        "certify": "its evaluations are trials of another study: tests/optuna/certification",
        "search": _ONE_BY_ONE,
        "independent search": _ONE_BY_ONE,
        "types": "Optuna takes 1, 1.0 and True for one another: they are refused",
        "equal entries": "a list of arms with equal ones is refused",
    }

    def run(self, task, world):
        now, running, study = 0.0, {}, None
        with mock.patch.object(UnderWay, "clock", staticmethod(lambda: now)):
            while True:
                study = self.study(task, study)
                while len(running) < task.workers and (trial := study.ask()):
                    if PULL not in study.trials[trial.number].user_attrs:
                        study.tell(trial, state=TrialState.PRUNED)  # nothing to evaluate
                        break
                    begun = now + self.begin(trial, task, world)
                    running[trial.number] = begun, trial
                soonest = min(running.values(), key=lambda each: each[0], default=(math.inf,))
                if soonest[0] == math.inf:
                    return study.sampler.recommendation(study)
                now, trial = soonest
                del running[trial.number]
                self.end(study, trial, world)
                if world.driver_dies:
                    study = self.restarted(study, task, running, world)

    def study(self, task, study=None):
        if study is not None:
            return study
        names = ("seed", "epsilon", "sigma", "budget", "max_failures", "bias")
        options = {name: getattr(task, name) for name in names}
        if task.shares:
            options["replicate"] = "split"
        sampler = MFSampler(task.fidelity, list(task.candidates), **options)
        return optuna.create_study(direction="maximize", sampler=sampler, study_name="task")

    def restarted(self, study, task, running, world):
        """Return the study as another process reads it; what was under way is lost, or goes on."""
        if world.n_ended % 2:
            for _, trial in running.values():
                study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
                world.lose(str(trial.number), None)
            running.clear()
        anew = self.study(task)
        anew._storage, anew._study_id = study._storage, study._study_id
        return anew

    def begin(self, trial, task, world):
        """Begin an evaluation; return its seconds."""
        asked = task.candidates[trial.user_attrs[PULL]["arm"]]
        level = trial.suggest_categorical("epochs", list(task.levels))
        split = trial.suggest_int("split", 0, 10**6) if task.shares else None
        outcome = world.begin(str(trial.number), asked, level, split)
        if outcome.instead is None:
            assert trial.suggest_float("x", -10.0, 10.0) == asked["x"]
        else:  # a range of one value is nothing that a sampler is asked about
            trial.suggest_float("x", outcome.instead["x"], outcome.instead["x"])
        return min(outcome.seconds, task.limit or math.inf)

    def end(self, study, trial, world):
        id, outcome = str(trial.number), world.outcomes[str(trial.number)]
        if outcome.dies:
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            world.lose(id, None)
            return
        world.end(id)
        stopped_at = world.stopped_at(id)
        if stopped_at is not None:
            trial.set_user_attr(CENSORED_KEY, stopped_at)
            study.tell(trial, state=TrialState.PRUNED)
        elif outcome.value is None or math.isnan(outcome.value):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, outcome.value)

    def settings_of(self, task):
        return settings_of_finalists(task) or super().settings_of(task)


TestSamplers = conformance(Samplers())
