"""scikit-learn's searches do what the engine says."""

from contextlib import contextmanager
from typing import ClassVar
from unittest import mock

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_random_state

from mfhpo_sklearn import MFSearchCV, SpaceSearchCV, certify
from mfhpo_sklearn import evaluation as evaluations
from tests.contract.experiment_contract import Host, conformance

X = np.arange(40.0)[:, np.newaxis]


class Evaluated(BaseEstimator):
    """Its score is the outcome of an evaluation in a world, or else what is promised."""

    world = None

    def __init__(self, x=None, epochs=1):
        self.x = x
        self.epochs = epochs

    def fit(self, X, y=None):
        return self

    def score(self, X, y=None):
        if Evaluated.world is None:
            return self.x
        id = str(len(Evaluated.world.begun))
        outcome = Evaluated.world.begin(id, {"x": self.x}, self.epochs, X.tobytes())
        if outcome.value is None:
            raise RuntimeError("it fails")
        return outcome.value


class Rounds:
    """Stands for joblib: evaluates a round, and hands it over in its order."""

    def __init__(self, world):
        self.world = world

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __call__(self, calls):
        first = len(self.world.begun)
        found = [function(*given, **named) for function, given, named in calls]
        for id in list(self.world.begun)[first:]:
            self.world.end(id)
        return found


@contextmanager
def evaluated_in(world):
    with mock.patch.object(evaluations, "Parallel", return_value=Rounds(world)):
        Evaluated.world = world
        try:
            yield
        finally:
            Evaluated.world = None


def certified(task, world, options):
    promised = GridSearchCV(Evaluated(), {"x": [each["x"] for each in task.candidates]}).fit(X)
    with evaluated_in(world):
        return certify(promised, X, budget=task.budget, baseline=None, **options)


class Searches(Host):
    in_rounds = True
    cannot: ClassVar = {
        "deaths": "joblib raises if a process dies, and the search ends",
        "hangs": "a round ends as a whole, and an interrupt is raised again",
        "independent search": "SpaceSearchCV takes no sigma",
        "limits": "no fit is stopped",
        "measured": "seconds are those of the clock: test_searches",
        "mistakes": "what is fitted is what was asked for, by construction",
        "restarts": "a search is in memory",
    }

    def run(self, task, world):
        options = {"n_jobs": task.workers, "refit": False, "random_state": task.seed}
        options |= {"epsilon": task.epsilon, "max_failures": task.max_failures}
        if task.certifies:
            return certified(task, world, options)
        if task.budget is not None:
            options["budget"] = task.budget / task.levels[-1]
        if len(task.levels) > 1:
            options |= {"resource": "epochs", "levels": list(task.levels)}
        if task.space is None:
            options |= {"bias": task.bias, "sigma": task.sigma}
            search = MFSearchCV(Evaluated(), list(task.candidates), **options)
        else:
            search = SpaceSearchCV(Evaluated(), dict(task.space), **options)
        with evaluated_in(world):
            try:
                return search.fit(X).certificate_
            except ValueError as error:
                if "fits failed" not in str(error) and "scores is finite" not in str(error):
                    raise
                return None

    def seed_of(self, task):
        if task.certifies:
            return 0  # random_state seeds its splits alone
        return int(check_random_state(task.seed).randint(2**31 - 1))

    def cost_of(self, answer, task):
        return answer.cost * task.levels[-1]

    def configuration_of(self, answer):
        return {"x": answer.params["x"]}


TestSearches = conformance(Searches())
