import math
import warnings
from collections import Counter

import numpy as np
import optuna
import pytest
from optuna.samplers import QMCSampler, RandomSampler, TPESampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import SearchSampler, plot_race, training_of
from tests.optuna.samplers.races import (
    PULL,
    Recorder,
    answers,
    arms_of,
    configurations,
    noise,
    pulls,
    sequence,
    takes,
    valley,
    worker,
)


def flat(trial):
    x = trial.suggest_float("x", -1, 1)
    return (x - 0.3) ** 2 + noise(trial)


def run(sampler, objective=valley, n_trials=3000, direction="minimize", catch=(), **options):
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(objective, n_trials=n_trials, catch=catch, **options)
    assert len(study.trials) < n_trials, "the search did not end by itself"
    return study


def paid(study, name="epochs"):
    return sum(trial.params[name] for trial in pulls(study))


def replicates(study):
    return [
        trial for trial in pulls(study) if trial.user_attrs[PULL].get("purpose") == "certificate"
    ]


@pytest.mark.parametrize("proposer", [None, RandomSampler(seed=0)], ids=["model", "random"])
def test_a_search_ends_with_an_answer_within_its_budget(proposer):
    study = run(SearchSampler("epochs", budget=200, certify_share=0.2, proposer=proposer, seed=0))
    answer = study.sampler.recommendation(study)
    assert answer.finished
    assert answer.cost == paid(study)
    # Neither a full evaluation more of the search nor another look of the certificate's was left.
    assert 200 - 2 * 9 < answer.cost <= 200
    assert abs(answer.params["x"] - 0.3) < 0.4
    (best,) = answers(study)
    assert study.best_trial.number == best.number == len(study.trials) - 1
    assert study.best_params == {**answer.params, "epochs": 9}
    assert all(trial.constraints == {"mfhpo": 1.0} for trial in pulls(study))
    shortlist = replicates(study)[0].user_attrs[PULL]["shortlist"]
    assert len(shortlist) >= 2
    assert all(t.user_attrs[PULL]["shortlist"] == shortlist for t in replicates(study))
    assert all(t.params["epochs"] == 9 for t in replicates(study))
    assert answer.tried == len(configurations(study))
    at_target = {t.user_attrs[PULL]["arm"] for t in pulls(study) if t.params["epochs"] == 9}
    assert answer.at_target == len(at_target)


def test_the_mean_is_of_the_replicates_alone():
    study = run(SearchSampler("epochs", budget=300, certify_share=0.4, sigma=0.05, seed=0))
    answer = study.sampler.recommendation(study)
    own = [t.value for t in replicates(study) if t.user_attrs[PULL]["arm"] == answer.arm]
    assert len(own) > 2
    assert answer.mean == pytest.approx(np.mean(own))
    certificate = answer.certificate
    assert certificate.candidates[certificate.winner].evaluations == len(own)
    assert answer.interval == certificate.interval
    low, high = certificate.interval
    assert low <= (answer.params["x"] - 0.3) ** 2 + 0.2 / 9 <= high


def test_maximising_is_the_mirror_image():
    down = run(SearchSampler("epochs", budget=150, certify_share=0.3, seed=0))
    up = run(
        SearchSampler("epochs", budget=150, certify_share=0.3, seed=0),
        lambda trial: -valley(trial),
        direction="maximize",
    )
    assert sequence(up) == sequence(down)
    assert up.best_params == down.best_params
    assert up.best_value == pytest.approx(-down.best_value)
    low, high = down.sampler.recommendation(down).interval
    assert up.sampler.recommendation(up).interval == pytest.approx((-high, -low))


@pytest.mark.parametrize(("budget", "share"), [(0.5, 0.1), (2, 0.0), (8.9, 0.6), (50, 0.1)])
def test_tiny_budgets(budget, share):
    sampler = SearchSampler("epochs", budget=budget, certify_share=share, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = run(sampler, n_trials=100)
    assert paid(study) <= max(budget, 1)  # the first trial tells what the levels are
    (answer,) = answers(study)
    recommended = sampler.recommendation(study)
    assert recommended.finished
    assert not recommended.certified
    assert study.best_trial.number == answer.number
    assert recommended.level in (1, 3, 9)
    assert all(t.state == TrialState.COMPLETE for t in pulls(study))


@pytest.mark.parametrize(("trials", "fidelity"), [(1, "epochs"), (3, None), (20, "epochs")])
def test_budgets_in_trials_are_kept_exactly(trials, fidelity):
    objective = flat if fidelity is None else valley
    study = run(SearchSampler(fidelity, trials=trials, seed=0), objective, n_trials=200)
    assert len(pulls(study)) == trials
    assert len(answers(study)) == 1
    assert study.sampler.recommendation(study).level == (None if fidelity is None else 9)


def test_a_budget_in_seconds_without_a_fidelity(clock):
    def seconds_of(trial):
        return 1.0 + abs(trial.params["x"])

    def timed(trial):
        value = flat(trial)
        takes(seconds_of(trial))
        return value

    options = {"seconds": 60.0, "certify_share": 0.5, "sigma": 0.05, "seed": 0}
    study = run(SearchSampler(**options), timed)
    seconds = [seconds_of(trial) for trial in pulls(study)]
    again = [seconds_of(trial) for trial in replicates(study)]
    assert 28.0 < sum(seconds) - sum(again) <= 32.0
    assert len(again) >= 10
    assert sum(again) <= 32.0
    # Whoever reads the study later finds the same costs.
    for sampler in (study.sampler, SearchSampler(**options)):
        answer = sampler.recommendation(study)
        assert answer.cost == pytest.approx(sum(seconds))
        assert answer.certificate is not None
        assert answer.params["x"] == pytest.approx(0.3, abs=0.2)
    assert plot_race(study).layout.xaxis.title.text == "cost paid in seconds"


def test_a_larger_budget_goes_on_with_the_same_shortlist():
    study = run(SearchSampler("epochs", budget=150, sigma=0.3, certify_share=0.3, seed=0))
    shortlist = replicates(study)[0].user_attrs[PULL]["shortlist"]
    before = study.sampler.recommendation(study)
    study.sampler = SearchSampler("epochs", budget=300, sigma=0.3, certify_share=0.3, seed=0)
    study.optimize(valley, n_trials=500)
    after = study.sampler.recommendation(study)
    assert not before.certified
    assert after.cost > before.cost
    assert {tuple(t.user_attrs[PULL]["shortlist"]) for t in replicates(study)} == {tuple(shortlist)}
    assert after.tried == before.tried


def test_a_conditional_space():
    def objective(trial):
        epochs = trial.suggest_int("epochs", 1, 9)
        model = trial.suggest_categorical("model", ["linear", "tree"])
        if model == "linear":
            value = 0.5 + 0.1 * abs(math.log10(trial.suggest_float("ridge", 1e-3, 1e3, log=True)))
        else:
            value = 0.1 * trial.suggest_int("depth", 1, 9)
        return value + 0.1 / epochs + noise(trial)

    study = run(SearchSampler("epochs", budget=300, seed=1), objective)
    kinds = {tuple(sorted(params)) for params in configurations(study).values()}
    assert kinds == {("model", "ridge"), ("depth", "model")}
    assert study.best_params["model"] == "tree"
    assert study.best_params["depth"] <= 3


def test_the_pruner_of_a_study_that_was_given_none_is_switched_off():
    def objective(trial):
        x, epochs = trial.suggest_float("x", -1, 1), trial.suggest_int("epochs", 1, 9)
        for epoch in range(epochs):
            trial.report(x**2, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x**2

    study = optuna.create_study(sampler=SearchSampler("epochs", budget=300, seed=0))
    study.optimize(objective, n_trials=12)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}
    assert isinstance(study.pruner, optuna.pruners.NopPruner)


@pytest.mark.filterwarnings("ignore:.*was pruned")
@pytest.mark.parametrize("way", ["inf", "raises", "prunes"])
def test_failures(way):
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        if x < 0:
            if way == "raises":
                raise ArithmeticError
            if way == "prunes":
                trial.report(-9.0, 0)
                raise optuna.TrialPruned
            return -math.inf
        return (x - 0.3) ** 2 + 0.2 / epochs + noise(trial)

    study = run(SearchSampler("epochs", budget=200, seed=0), objective, catch=(ArithmeticError,))
    states = Counter(t.state for t in pulls(study))
    assert states[TrialState.COMPLETE] > 10
    if way != "inf":
        assert len(states) == 2
    answer = study.sampler.recommendation(study)
    assert abs(answer.params["x"] - 0.3) < 0.3
    assert answer.mean > -1.0
    assert paid(study) <= 200  # failures are paid for, too
    configurations(study)


def test_enqueueing_in_mid_search_and_what_was_tried_before():
    sampler = SearchSampler("epochs", budget=120, checkpoints=True, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(valley, n_trials=15)
    begun = len(study.trials)
    furthest = max(pulls(study), key=lambda trial: trial.params["epochs"])
    before = sampler.recommendation(study).cost
    study.enqueue_trial({"x": furthest.params["x"], "epochs": 1})
    study.optimize(valley, n_trials=1)
    again = study.trials[begun]
    assert again.user_attrs[PULL]["arm"] == furthest.user_attrs[PULL]["arm"]
    assert sampler.recommendation(study).cost == before + 1
    study.enqueue_trial({"x": 0.123})
    study.optimize(valley, n_trials=1)
    new = pulls(study)[16]
    assert new.params["x"] == 0.123
    assert new.user_attrs[PULL]["arm"] not in {t.user_attrs[PULL]["arm"] for t in pulls(study)[:16]}
    study.optimize(valley, n_trials=500)
    configurations(study)
    assert sampler.recommendation(study).cost <= 120


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("make", "fidelity"),
    [
        (lambda: TPESampler(seed=0), "epochs"),
        (lambda: TPESampler(seed=0, multivariate=True, group=True), None),
        (lambda: QMCSampler(seed=0, warn_independent_sampling=False), "epochs"),
    ],
    ids=["TPE", "group", "QMC"],
)
def test_proposers(make, fidelity):
    def objective(trial):
        y = trial.suggest_int("y", 0, 3)
        if trial.suggest_categorical("branch", ["a", "b"]) == "b":
            y += trial.suggest_float("z", 0.5, 1.0)
        return (valley if fidelity else flat)(trial) + y

    budget = {"budget": 300} if fidelity else {"trials": 60}
    study = run(SearchSampler(fidelity, proposer=make(), seed=0, **budget), objective)
    configurations(study)
    assert study.best_params["y"] == 0
    assert study.best_params["branch"] == "a"


def test_a_proposer_sees_one_trial_per_configuration_at_the_target():
    recorder = Recorder()
    study = run(SearchSampler("epochs", budget=100, proposer=recorder, seed=0), valley)
    arms = arms_of(study)
    assert recorder.shown[-1]
    for trial in recorder.shown[-1]:
        assert trial.params in arms.values()
        assert trial.constraints == {}


def test_a_proposer_that_is_resumed_draws_anew():
    """With a seed it begins anew in a new process; its first draws must not come twice."""
    storage = InMemoryStorage()
    for n_trials in (3, 20):
        proposer = TPESampler(seed=0, n_startup_trials=3, multivariate=True)
        study = worker(storage, SearchSampler(proposer=proposer, trials=12, seed=0))
        study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=n_trials)
    found = [arm["x"] for arm in arms_of(study).values()]
    assert len(set(found)) == len(found) > 5


def test_checkpoints_are_paid_by_the_increment():
    done = {}
    spent = []

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        before = done.get(training_of(trial), 0)
        assert before < epochs
        done[training_of(trial)] = epochs
        spent.append(epochs - before)
        return (x - 0.3) ** 2 + 0.2 / epochs + noise(trial)

    sampler = SearchSampler("epochs", budget=150, certify_share=0.3, checkpoints=True, seed=0)
    study = run(sampler, objective)
    assert sampler.recommendation(study).cost == sum(spent)
    assert 132 < sum(spent) <= 150
    assert len(spent) < len(set(done)) + paid(study)
    assert sum(spent) < paid(study)


def test_studies_share_no_trainings():
    def trained(trial):
        trial.suggest_int("epochs", 1, 9)
        names[trial.study.study_name].add(training_of(trial))
        return trial.suggest_float("x", -1, 1) + noise(trial)

    names = {"first": set(), "second": set()}
    for name in names:
        sampler = SearchSampler("epochs", budget=100, certify_share=0.4, checkpoints=True, seed=0)
        optuna.create_study(study_name=name, sampler=sampler).optimize(trained)
    assert len(names["first"]) == len(names["second"])
    assert names["first"].isdisjoint(names["second"])


def test_asking_beyond_the_end_changes_nothing():
    sampler = SearchSampler("epochs", trials=12, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(valley, n_trials=100)
    before, best = sampler.recommendation(study), study.best_trial
    with pytest.warns(UserWarning, match=r"has nothing to evaluate.*runs, but does not count"):
        trial = study.ask()
    valley(trial)
    study.tell(trial, -100.0)
    after = sampler.recommendation(study)
    assert (after.arm, after.mean, after.cost) == (before.arm, before.mean, before.cost)
    assert study.best_trial == best


def test_only_optuna_goes_through_all_trials_once_per_trial(monkeypatch):
    reads = []
    read = InMemoryStorage.get_all_trials

    def counted(self, *args, **options):
        reads.append(1)
        return read(self, *args, **options)

    monkeypatch.setattr(InMemoryStorage, "get_all_trials", counted)

    def objective(trial):  # does not read the study itself
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        return (x - 0.3) ** 2 + 0.2 / epochs + 0.05 * np.random.default_rng(trial.number).normal()

    study = optuna.create_study(sampler=SearchSampler("epochs", seed=0))
    study.optimize(objective, n_trials=60)
    assert len(reads) == 60
