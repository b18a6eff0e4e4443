import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution

from mfhpo import Fidelity
from mfhpo.search import BudgetedSearch, ModelSearch
from mfhpo_optuna import (
    IISESampler,
    MFGradSampler,
    MFLUCBSampler,
    MFSampler,
    MFTopTwoSampler,
    plot_race,
    seed_of,
)
from mfhpo_optuna.study.trials.attributes import ARM_KEY

FULL = 27  # epochs
N = 40
BUDGET = 30.0 * FULL
CERTIFIERS = {
    MFSampler: "GroupSequential",
    IISESampler: "IISE",
    MFLUCBSampler: "MFLUCB",
    MFTopTwoSampler: "MFTopTwo",
    MFGradSampler: "MFGrad",
}


def bowl(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, FULL)
    noise = np.random.default_rng(seed_of(trial)).normal(0.0, 0.02)
    return (x - 0.3) ** 2 + 0.2 / epochs + noise


def run(sampler, objective=bowl, storage=None, direction="minimize", **options):
    study = optuna.create_study(
        sampler=sampler, study_name="s", storage=storage, load_if_exists=True, direction=direction
    )
    study.optimize(objective, **options)
    return study


def at_target(study):
    return {t.user_attrs[ARM_KEY]["arm"] for t in study.trials if is_full(t)}


def is_full(trial):
    return ARM_KEY in trial.user_attrs and trial.params.get("epochs") == FULL


@pytest.mark.parametrize(("make", "name"), CERTIFIERS.items())
def test_finalists_are_chosen_by_cheap_levels_and_compared_anew_by_the_policy_of_the_name(
    make, name
):
    fidelity = "epochs" if make is IISESampler else Fidelity("epochs", levels=[1, 3, 9, 27])
    sampler = make(fidelity, N, budget=BUDGET, epsilon=0.1, seed=0)
    study = run(sampler)
    answer = sampler.recommendation(study)
    assert answer.searched
    assert answer.finished
    assert answer.cost <= BUDGET
    assert abs(study.best_params["x"] - 0.3) < 0.3
    assert len(at_target(study)) < N / 2
    n = len(answer.certificate.candidates)
    words = str(answer)
    says_what_holds = math.isfinite(answer.certificate.within)
    assert (f"best of the {n} finalists of {N} candidates" in words) == says_what_holds
    assert "left at epochs=" in words
    assert sum(answer.left.values()) + answer.at_target == N
    assert answer.compared == n <= 4
    assert plot_race(study) is not None
    assert type(sampler.known(study).policy._finalists.certification().policy).__name__ == name
    if make is MFSampler:
        assert sampler.choice(study).policy is BudgetedSearch
        assert f"comparing all {N} configurations" in sampler.choice(study).reason


def test_a_certificate_is_about_the_finalists_where_one_blooms_late():
    def objective(trial):
        arm, epochs = trial.suggest_int("arm", 0, N - 1), trial.suggest_int("epochs", 1, FULL)
        late = 1.0 if epochs == FULL else -1.0
        noise = np.random.default_rng(seed_of(trial)).normal(0.0, 0.01)
        return (late if arm == 7 else arm / N) + noise

    arms = [{"arm": k} for k in range(N)]
    sampler = MFSampler("epochs", arms, budget=BUDGET, epsilon=0.1, seed=0)
    study = run(sampler, objective, direction="maximize")
    answer = sampler.recommendation(study)
    assert answer.certified
    assert study.best_params["arm"] != 7
    assert "best of the 2 finalists of 40 candidates" in str(answer)
    assert {c.params["arm"] for c in answer.certificate.candidates}.isdisjoint({7})


def test_workers_and_resumed_studies_agree():
    storage = optuna.storages.InMemoryStorage()

    def sampler():
        arms = {"x": FloatDistribution(-1, 1)}
        return IISESampler("epochs", arms, budget=BUDGET, epsilon=0.1, seed=0)

    for _ in range(2):
        run(sampler(), storage=storage, n_trials=20)
    study = run(sampler(), storage=storage, n_jobs=3)
    answer = sampler().recommendation(study)
    assert answer.finished
    assert answer.cost <= BUDGET
    assert isinstance(sampler().known(study).policy.search, ModelSearch)
    assert str(answer) == str(study.sampler.recommendation(study))


def test_replicates_are_shared_by_the_finalists():
    def objective(trial):
        x, epochs = trial.suggest_float("x", -1, 1), trial.suggest_int("epochs", 1, FULL)
        split = trial.suggest_int("split", 0, 99)
        shared, own = np.random.default_rng(split), np.random.default_rng(seed_of(trial))
        return (x - 0.3) ** 2 + 0.2 / epochs + shared.normal(0, 0.2) + own.normal(0, 0.01)

    sampler = MFSampler("epochs", N, budget=BUDGET, replicate="split", epsilon=0.1, seed=0)
    study = run(sampler, objective)
    answer = sampler.recommendation(study)
    assert answer.finished
    assert answer.chance is None
    assert abs(study.best_params["x"] - 0.3) < 0.3
    search, finals = splits_of(study)
    assert len(search) == 1
    arms = {arm for _, arm in finals}
    assert arms in [{arm for split, arm in finals if split == each} for each, _ in finals]
    assert search.isdisjoint({split for split, _ in finals})


def splits_of(study):
    """The splits of the search's values, and the finalists with theirs."""
    noted = [(t.params, t.user_attrs[ARM_KEY]) for t in study.trials if ARM_KEY in t.user_attrs]
    finals = [(params["split"], tag["arm"]) for params, tag in noted if "shortlist" in tag]
    search = {params["split"] for params, tag in noted if not tag["block"] and "split" in params}
    return search, finals


def test_a_certificate_has_no_split_of_the_search_after_early_failures():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        if trial.number < 13:
            raise ValueError
        epochs, split = trial.suggest_int("epochs", 1, FULL), trial.suggest_int("split", 0, 999)
        return (x - 0.3) ** 2 + 0.2 / epochs + np.random.default_rng(split).normal(0, 0.2)

    sampler = MFSampler("epochs", 12, budget=23.5 * FULL, replicate="split", epsilon=0.1, seed=0)
    study = run(sampler, objective, catch=(ValueError,))
    answer = sampler.recommendation(study)
    assert answer.finished
    _, finals = splits_of(study)
    of_search = [
        t.user_attrs[ARM_KEY]["arm"]
        for t in study.trials
        if t.params.get("split") in {split for split, _ in finals}
        and ARM_KEY in t.user_attrs
        and "shortlist" not in t.user_attrs[ARM_KEY]
    ]
    race = sampler.known(study).policy
    # What the first one evaluated on the certificate's split counts for nothing in the search.
    assert sum(len(values) for level in race.search._values for values in level.values()) == sum(
        t.value is not None and ARM_KEY in t.user_attrs and "shortlist" not in t.user_attrs[ARM_KEY]
        for t in study.trials
    ) - len(of_search)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (MFSampler, {"budget": 4.0 * N * FULL}),
        (MFSampler, {"budget": 2.0 * N * FULL, "sigma": 0.02}),
        (MFSampler, {"budget": BUDGET, "bias": [0.2, 0.1, 0.05, 0.0]}),
        (MFSampler, {"budget": BUDGET, "aim": "reward per cost"}),
        (IISESampler, {"budget": BUDGET, "estimated_bias": "eliminate"}),
        (IISESampler, {"budget": BUDGET, "variant": "se"}),
        (MFLUCBSampler, {}),
    ],
)
def test_all_are_compared_where_that_is_paid_for_or_something_is_declared(make, options):
    fidelity = Fidelity("epochs", levels=[1, 3, 9, 27])
    sampler = make(fidelity, N, seed=0, **options)
    study = run(sampler, n_trials=3)
    assert not sampler.known(study).searches
    assert not isinstance(sampler.known(study).policy, BudgetedSearch)
