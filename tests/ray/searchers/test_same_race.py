"""The same race in Optuna, in Ray Tune and with the bare policy: the same pulls, the same arm."""

from collections import Counter

import numpy as np
import optuna
import pytest
from ray import tune

from mfhpo import IISE, Bias, Fidelity, Observation, Problem, Pull, SubGaussian
from mfhpo_optuna import IISESampler
from mfhpo_ray import IISESearch
from mfhpo_ray.experiment.pulls import replicate_seed
from tests.ray.searchers.searching import in_tune

LEVELS = (1, 3, 9, 27)
SEED = 7


class Table:
    """Recorded evaluations of ten arms: means that cross between levels, and noise by the seed."""

    def __init__(self, n_arms=10, scale=0.02):
        rng = np.random.default_rng(1)
        target = np.sort(rng.uniform(0.5, 0.9, n_arms))[::-1]
        distance = 1.0 / np.sqrt(np.array(LEVELS)) - 1.0 / np.sqrt(LEVELS[-1])
        self.means = target[:, None] - rng.uniform(0.05, 0.15, (n_arms, 1)) * distance
        self.arms = [{"row": row} for row in rng.permutation(n_arms).tolist()]
        self.scale = scale

    def accuracy(self, config):
        noise = self.scale * np.random.default_rng(config["seed"]).normal()
        return float(self.means[config["row"], LEVELS.index(config["epochs"])] + noise)


TABLE = Table()
OPTIONS = {"epsilon": 0.02, "seed": SEED, "pilot_arms": 4}
DECLARED = {"bias": [0.2, 0.1, 0.05, 0.0], "sigma": 0.02, "delta": 0.1, "measure": 2}


def _config(pull, replicate):
    seed = replicate_seed(
        SEED, pull.arm, pull.fidelity, replicate, n_arms=len(TABLE.arms), n_fidelities=len(LEVELS)
    )
    return {**TABLE.arms[pull.arm], "epochs": LEVELS[pull.fidelity], "seed": seed}


def _bare(workers, bias=None, sigma=None, **options):
    known = {} if bias is None else {"bias": Bias.max(*bias), "noise": SubGaussian(sigma)}
    problem = Problem(len(TABLE.arms), tuple(map(float, LEVELS)), **known)
    policy = IISE(problem, **OPTIONS, **options)
    begun = Counter()
    under_way = []
    configs = []
    while not policy.finished:
        while len(under_way) < workers:
            [pull] = policy.ask(1, [pull for pull, _ in under_way])
            configs.append(_config(pull, begun[pull.arm, pull.fidelity]))
            begun[pull.arm, pull.fidelity] += 1
            under_way.append((pull, configs[-1]))
        pull, config = under_way.pop(0)
        policy.tell(pull, Observation(TABLE.accuracy(config)))
    return configs, policy


def _in_tune(workers, folder, **options):
    fidelity = Fidelity("epochs", levels=LEVELS)
    options = {"metric": "accuracy", "mode": "max", **OPTIONS, **options}
    search = IISESearch(fidelity, TABLE.arms, **options)
    space = {"epochs": tune.randint(1, 28), "row": tune.randint(0, 10), "constant": 1}

    def result(config, number):
        return {"accuracy": TABLE.accuracy(config)}

    return in_tune(search, space, folder, workers, result), search


def _in_optuna():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    begun = Counter()
    configs = []

    def objective(trial):
        row = trial.suggest_int("row", 0, 9)
        epochs = trial.suggest_int("epochs", 1, 27)
        pull = Pull(TABLE.arms.index({"row": row}), LEVELS.index(epochs))
        configs.append(_config(pull, begun[pull.arm, pull.fidelity]))
        begun[pull.arm, pull.fidelity] += 1
        return TABLE.accuracy(configs[-1])

    sampler = IISESampler(Fidelity("epochs", levels=LEVELS), TABLE.arms, **OPTIONS)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective)
    return configs, sampler.recommendation(study)


def _check(config):
    target = TABLE.means[:, -1]
    assert target[config["row"]] >= target.max() - OPTIONS["epsilon"]


def test_one_worker_makes_the_same_pulls_everywhere(tmp_path):
    bare, policy = _bare(workers=1)
    by_tune, search = _in_tune(1, tmp_path)
    in_optuna, from_optuna = _in_optuna()
    assert len(bare) > 100
    assert by_tune == bare
    assert in_optuna == bare
    answer, expected = search.recommendation(), policy.recommend()
    assert expected.certified
    for field in ("arm", "mean", "interval"):
        assert getattr(answer, field) == getattr(expected, field) == getattr(from_optuna, field)
    assert answer.config == from_optuna.params
    _check(answer.config)


@pytest.mark.parametrize(("workers", "declared"), [(3, {}), (8, {}), (1, DECLARED)])
def test_several_workers_and_declarations_make_the_same_pulls_in_tune(workers, declared, tmp_path):
    bare, policy = _bare(workers, **declared)
    by_tune, search = _in_tune(workers, tmp_path, **declared)
    assert by_tune == bare
    answer, expected = search.recommendation(), policy.recommend()
    assert answer.certified
    assert (answer.arm, answer.mean) == (expected.arm, expected.mean)
    _check(search.recommendation().config)
