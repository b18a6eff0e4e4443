"""Races that several tests of the searchers share, run by plain calls."""

import json

import numpy as np
from pyarrow.fs import _MockFileSystem
from ray import cloudpickle, tune

from mfhpo import Fidelity
from mfhpo.censored import Linear
from mfhpo_ray import IISESearch, MFGradSearch, MFLUCBSearch, MFSearch, RCUCBSearch
from mfhpo_ray.experiment.journal import Journal

EPOCHS = Fidelity("epochs", levels=[1, 3, 9])
ARMS = [{"x": x} for x in (-0.9, -0.5, 0.0, 0.6)]
SPACE = {"x": tune.uniform(-1, 1), "epochs": tune.randint(1, 10)}

# Name -> how to make it, given the arguments that all have in common.
BEST_ARM = {"IISE": IISESearch, "LUCB": MFLUCBSearch, "grad": MFGradSearch, "choice": MFSearch}


class Memory(Journal):
    """A journal on no disk."""

    run = "run"

    def __init__(self):
        super().__init__(_MockFileSystem(), "run")

    def to_record(self):
        return None  # so that states have the events


def bowl(config, scale=0.05):
    noise = scale * np.random.default_rng(config["seed"]).normal()
    return float(config["x"] ** 2 + 0.1 / config["epochs"] + noise)


def make(cls=IISESearch, **options):
    arguments = {"fidelity": EPOCHS, "arms": ARMS, "metric": "loss", "mode": "min", "epsilon": 0.1}
    return cls(**{**arguments, "seed": 0, **options})


def limited(arms, **options):
    """A search for the gain of trials, with its companion."""
    arguments = {"metric": "loss", "mode": "min", "reward_range": (0, 1), "seed": 0}
    arguments |= {"limits": [1.0, 2.0], "cost": Linear(0.1), **options}
    search = RCUCBSearch(arms, **arguments)
    search.evaluations.watch("none")
    return search


def run(search, objective=bowl, prefix="trial", at_most=3000):
    """Run a race, one trial after the other, and return the configurations of its trials."""
    configs = []
    while len(configs) < at_most:
        trial_id = f"{prefix}_{len(configs):05d}"
        config = search.suggest(trial_id)
        if config == search.FINISHED:
            break
        configs.append(config)
        search.on_trial_complete(trial_id, {"loss": objective(config)})
    return configs


class Driver:
    """Keeps three trials under way; the one that ends next is a function of the step."""

    def __init__(self, search, result, first=0):
        self.search = search
        self.result = result
        self.running = {}
        self.history = []
        self.n_trials = first

    @property
    def configs(self):
        return [config for config in self.history if isinstance(config, dict)]

    def step(self):
        if len(self.running) < 3:
            trial_id = f"trial_{self.n_trials:05d}"
            config = self.search.suggest(trial_id)
            self.history.append(config)
            if isinstance(config, dict):
                # As its scheduler does.
                self.search.evaluations.watch(trial_id)
                self.n_trials += 1
                self.running[trial_id] = config
                return True
        if not self.running:
            return False
        ending = sorted(self.running)[len(self.history) % len(self.running)]
        self.search.on_trial_complete(ending, self.result(self.running.pop(ending)))
        self.history.append(ending)
        return True

    def to_the_end(self, at_most=3000):
        for _ in range(at_most):
            if not self.step():
                break
        return self


def _by_file(search, make_search, folder):
    search.save(str(folder / "state"))
    again = make_search()
    again.restore(str(folder / "state"))
    return again


def _by_state(search, make_search, folder):
    again = make_search()
    again.set_state(json.loads(json.dumps(search.get_state())))
    return again


def _by_pickle(search, make_search, folder):
    return cloudpickle.loads(cloudpickle.dumps(search))


WAYS = {"file": _by_file, "state": _by_state, "pickle": _by_pickle}


def experiment_of(search):
    return search.evaluations.log.experiment


def history_of(search):
    """What the search has learned, in order."""
    return [(told.id, told.pull, told.observation) for told in experiment_of(search).history()]


def same_state(one, other):
    """Whether two searches know the same."""
    return repr(history_of(one)) == repr(history_of(other)) and sorted(
        experiment_of(one).open
    ) == sorted(experiment_of(other).open)
