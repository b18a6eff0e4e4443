"""A seed, a split or a fold among the parameters is noticed, and no ordinary parameter is."""

import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mfhpo_optuna import (
    Fidelity,
    ForgottenReplicateWarning,
    IISESampler,
    MFSampler,
    MFUCBSampler,
    SearchSampler,
    certify,
)
from mfhpo_optuna.study.forgotten import ForgottenReplicate

NAMES = [
    *("split", "fold", "seed", "random_state", "rng", "cv", "replicate", "repeat", "data_split"),
    *("fold_2", "Seed", "splitSeed", "model__random_state", "cv_fold"),
]
SEED = IntDistribution(0, 2**31 - 1)
N = 60


def notice(space, result, n=N, seed=0, owned=()):
    """What is found in n evaluations of configurations drawn at random from a space."""
    rng = np.random.default_rng(seed)
    forgotten = ForgottenReplicate(owned)
    for _ in range(n):
        params = {name: each.to_external_repr(drawn(each, rng)) for name, each in space.items()}
        forgotten.learn(params, space, result(params, rng))
    return forgotten.notice


def drawn(distribution, rng):
    if isinstance(distribution, CategoricalDistribution):
        return rng.integers(len(distribution.choices))
    if isinstance(distribution, IntDistribution):
        return int(rng.integers(distribution.low, distribution.high + 1))
    return rng.uniform(distribution.low, distribution.high)


def only_noise(params, rng):
    return rng.normal()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_enough(name):
    for distribution in (SEED, IntDistribution(0, 4), CategoricalDistribution([0, 1, 2])):
        found = notice({"x": FloatDistribution(0, 1), name: distribution}, only_noise, n=20)
        assert found.startswith(f"{name!r} looks like a seed, a split or a fold (by its name)")
    assert f"replicate={name!r}" in found
    assert all(words in found for words in ("seed_of(trial)", "says nothing about"))


ORDINARY = {
    "n_estimators": IntDistribution(10, 1000),
    "max_depth": IntDistribution(1, 32),
    "num_leaves": IntDistribution(2, 31),
    "hidden_units": IntDistribution(1, 10_000),
    "batch_size": CategoricalDistribution([16, 32, 64, 128]),
    "batch": IntDistribution(1, 1024),
    "n_splits": IntDistribution(2, 10),
    "num_folds": IntDistribution(2, 10),
    "n_repeat": IntDistribution(1, 5),
    "min_samples_split": IntDistribution(2, 20),
    "min_split_gain": FloatDistribution(0, 1),
    "split_ratio": FloatDistribution(0.1, 0.9),
    "split": CategoricalDistribution(["best", "random"]),
    "repeat": CategoricalDistribution([True, False]),
    "splitter": IntDistribution(0, 3),
    "seedling": IntDistribution(0, 3),
    "random_features": IntDistribution(0, 3),
    "cache_bytes": IntDistribution(1, 2**31 - 1, log=True),
    "shuffle_buffer": IntDistribution(1000, 1_000_000, step=1000),
}


@pytest.mark.parametrize("seed", range(4))
def test_ordinary_parameters_that_change_nothing_are_no_replicates(seed):
    assert notice(ORDINARY, only_noise, seed=seed, n=120) == ""


@pytest.mark.parametrize("name", ["split", "steps"])
def test_the_fidelity_a_fixed_parameter_and_equal_results_are_no_replicates(name):
    space = {"x": FloatDistribution(0, 1), name: SEED}
    assert notice(space, only_noise, owned=(name,)) == ""
    assert notice(space | {name: IntDistribution(7, 7)}, only_noise) == ""
    assert notice(space | {name: CategoricalDistribution([7])}, only_noise) == ""
    if name == "steps":
        assert notice(space, lambda params, rng: 0.5) == ""
        assert notice(space, lambda params, rng: None) == ""


def of_split(params, rng):
    return (params["x"] - 0.4) ** 2 + 0.2 * np.random.default_rng(params["s"]).normal()


def test_a_wide_range_without_a_name_is_noticed():
    space = {"x": FloatDistribution(0, 1), "s": SEED}
    found = [notice(space, of_split, seed=seed) for seed in range(40)]
    assert all("lies in 0 to 2147483647" in words for words in found if words)
    # 98 % on average: fewer than 36 happen in one case of a hundred.
    assert sum(map(bool, found)) >= 36
    assert notice({**space, "s": IntDistribution(0, 10_000)}, of_split) == ""
    assert notice(space, of_split, n=29) == ""


def test_the_places_of_results_at_other_levels_are_looked_at_apart():
    space = {"s": SEED, "epochs": IntDistribution(1, 5)}
    results = {"owned": ("epochs",), "n": 100}
    assert notice(space, lambda params, rng: params["epochs"], **results) == ""


@pytest.mark.parametrize(
    "effect", [lambda p: p, lambda p: np.exp(-5.0 * p), lambda p: 2.0 * np.abs(p - 0.5)]
)
def test_a_wide_range_on_which_results_depend_is_no_replicate(effect):
    space = {"x": FloatDistribution(0, 1), "steps": IntDistribution(1, 100_000)}

    def result(params, rng):
        return effect(params["steps"] / 100_000) + 0.1 * params["x"] + 0.1 * rng.normal()

    found = [notice(space, result, seed=seed) for seed in range(40)]
    assert sum(map(bool, found)) <= 1


# In studies.


def objective(trial):
    """A declared scale hides that the repeats of a configuration are equal."""
    x = trial.suggest_float("x", -1, 1)
    split = trial.suggest_int("split", 0, 2**31 - 1)
    level = trial.suggest_float("level", 0.5, 1.0)
    return x**2 + 0.1 / level + 0.02 * np.random.default_rng(split).normal()


LEVELS = Fidelity("level", levels=[0.5, 1.0])
ARMS = [{"x": x} for x in (-0.9, -0.3, 0.0, 0.6)]
SPLIT_ARMS = [arm | {"split": k} for k, arm in enumerate(ARMS)]
GIVEN = {"epsilon": 0.1, "seed": 0}
SAMPLERS = {
    "drawn": lambda: IISESampler(LEVELS, ARMS, bias=[0.3, 0.0], sigma=0.02, **GIVEN),
    "given": lambda: IISESampler(LEVELS, SPLIT_ARMS, bias=[0.3, 0.0], sigma=0.02, **GIVEN),
    "all drawn": lambda: MFSampler(LEVELS, arms=6, sigma=0.02, **GIVEN),
    "search": lambda: SearchSampler(LEVELS, budget=60, certify_share=0.4, **GIVEN),
    "reward": lambda: MFUCBSampler(LEVELS, ARMS, bias=[0.3, 0.0], sigma=0.02, budget=20, seed=0),
}


def caught(run):
    """The warnings of a run, about forgotten replicates."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        run()
    return [w for w in given if issubclass(w.category, ForgottenReplicateWarning)]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_study_is_warned_of_once_and_its_answer_has_a_notice(name):
    sampler = SAMPLERS[name]()
    study = optuna.create_study(study_name="study", sampler=sampler)
    [warning] = caught(lambda: study.optimize(objective))
    assert issubclass(warning.category, UserWarning)
    answer = sampler.recommendation(study)
    assert str(warning.message) in answer.notices
    assert str(answer).count("'split' looks like a seed") == 1
    shown = study.best_trial.user_attrs["mfhpo:certificate"]
    assert str(warning.message) in shown["notices"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = SAMPLERS[name]().recommendation(study)  # who reads the study later knows it, too
    assert again.notices == answer.notices


@pytest.mark.parametrize(
    "sampler",
    [
        MFSampler(LEVELS, arms=4, replicate="split", **GIVEN),
        SearchSampler(LEVELS, budget=60, certify_share=0.4, replicate="split", **GIVEN),
        MFSampler(LEVELS, [arm | {"split": 1} for arm in ARMS], sigma=0.02, **GIVEN),
    ],
)
def test_a_declared_or_a_fixed_one_gives_no_warning(sampler):
    study = optuna.create_study(study_name="study", sampler=sampler)
    assert caught(lambda: study.optimize(objective)) == []
    assert not any("looks like" in notice for notice in sampler.recommendation(study).notices)


def searched(objective):
    study = optuna.create_study(study_name="study", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=40)
    return study


@pytest.mark.parametrize("has_own_noise", [False, True])
def test_certify_warns_before_it_evaluates(has_own_noise):
    study, evaluations, answers = searched(objective), [], []

    def counted(trial):
        evaluations.append(trial.number)
        own = np.random.default_rng(trial.number).normal() if has_own_noise else 0.0
        return objective(trial) + 0.02 * own

    def certified():
        answers.append(certify(study, counted, top=4, epsilon=0.1))

    with warnings.catch_warnings():
        warnings.simplefilter("error", ForgottenReplicateWarning)
        with pytest.raises(ForgottenReplicateWarning):
            certified()
    assert evaluations == []
    [warning] = caught(certified)
    assert warning.filename == __file__
    [answer] = answers
    assert str(warning.message) in answer.notices
    assert "'split' looks like a seed" in str(answer)
    assert answer.certified is has_own_noise
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    if has_own_noise:
        recorded = record.best_trial.user_attrs["mfhpo:certificate"]
        assert str(warning.message) in recorded["notices"]
