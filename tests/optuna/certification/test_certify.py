import math
import time
import warnings

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from mfhpo import NoNoiseWarning
from mfhpo_optuna import Fidelity, IISESampler, SearchSampler, certify, time_limited, training_of

SIGMA = 0.1


def noise(number, scale=SIGMA):
    return scale * float(np.random.default_rng([7, number]).normal())


def bowl(trial):
    return trial.suggest_float("x", -1, 1) ** 2 + noise(trial.number)


def searched(objective=bowl, n_trials=30, direction="minimize", **options):
    sampler = optuna.samplers.TPESampler(seed=0)
    # The order of evaluations is drawn by the name.
    options = {"study_name": "searched", **options}
    study = optuna.create_study(direction=direction, sampler=sampler, **options)
    study.optimize(objective, n_trials=n_trials, catch=(ZeroDivisionError,))
    return study


def points(values, direction="minimize", keys=range(99)):
    """A study whose k-th trial has the k-th key and value; None is a pruned trial."""
    study = optuna.create_study(study_name="points", direction=direction)
    for k, value in zip(keys, values, strict=False):
        end = {"state": TrialState.PRUNED} if value is None else {"value": value}
        distributions = {"k": optuna.distributions.IntDistribution(0, 99)}
        study.add_trial(create_trial(params={"k": k}, distributions=distributions, **end))
    return study


def table(truth, scale=SIGMA):
    return lambda trial: truth[trial.suggest_int("k", 0, 99)] + noise(trial.number, scale)


def record_of(study, answer):
    return optuna.load_study(study_name=answer.study_name, storage=study._storage)


def values_by_candidate(record):
    found = {}
    for trial in record.trials:
        if "mfhpo:pull" in trial.user_attrs:
            found.setdefault(trial.user_attrs["mfhpo:pull"]["arm"], []).append(trial.value)
    return found


def test_answer_is_made_of_new_evaluations_alone():
    study = searched()
    before = [(t.number, t.value, t.params, t.user_attrs) for t in study.trials]
    answer = certify(study, bowl, top=4)
    record = record_of(study, answer)
    found = values_by_candidate(record)
    assert answer.certified
    assert answer.evaluations == sum(map(len, found.values()))
    for place, result in enumerate(answer.candidates):
        assert result.evaluations == len(found[place])
        assert result.mean == pytest.approx(np.mean(found[place]))
        assert result.gap == pytest.approx(result.mean - result.claim)
    assert record.best_params == answer.params
    assert record.best_value == answer.mean
    assert [(t.number, t.value, t.params, t.user_attrs) for t in study.trials] == before


def test_a_plan_evaluates_nothing(caplog):
    study = searched()
    plan = certify(study, lambda trial: 1 / 0, plan=True, budget=9)
    assert optuna.get_all_study_names(study._storage) == [study.study_name]
    assert len(plan.finalists) == 6
    assert plan.at_twice_epsilon < plan.evaluations < plan.at_half_epsilon
    with caplog.at_level("INFO", logger="optuna"):
        optuna.logging.enable_propagation()
        answer = certify(study, bowl, progress=True, budget=9)
        certify(study, bowl, progress=True, budget=12)
        optuna.logging.disable_propagation()
    assert {text for text in caplog.messages if text.startswith("about")} == {str(plan)}
    assert [dict(one.params) for one in answer.candidates] == [*plan.finalists]
    assert plan.about == answer.about


def test_those_that_repeats_have_far_below_the_best_are_left_out():
    values = [0.30, 0.31, 0.29, 0.33, 0.9, 0.91, 0.92, 0.89]
    study = points(values, keys=[0, 0, 1, 1, 2, 2, 2, 3])
    plan = certify(study, bowl, plan=True)
    assert [one["k"] for one in plan.finalists] == [0, 1]
    assert "2 more left out, whose own values are far below the best" in plan.shortlist
    assert len(certify(study, bowl, plan=True, top=4).finalists) == 4


def test_repeats_are_one_candidate_and_the_best_trial_is_compared():
    study = points([0.9, 0.1, 0.6, 0.7, 0.65], "maximize", keys=[0, 0, 1, 2, 3])
    answer = certify(study, table([0.5, 0.6, 0.7, 0.65]), top=2, epsilon=0.2)
    # The best trial's configuration has a mean of 0.5, which is the last.
    found = [(result.name, round(result.claim, 9)) for result in answer.candidates]
    assert found == [("trial 3", 0.7), ("trial 0", 0.5)]
    assert answer.luckiest == 1


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SearchSampler("epochs", budget=9 * 20, seed=0), None),
        (lambda: IISESampler("epochs", arms=4, epsilon=0.5, sigma=SIGMA, seed=0), "epochs"),
    ],
    ids=["search with a certificate", "race"],
)
def test_of_a_race_the_pulls_at_the_highest_level_are_the_candidates(make, name):
    def rising(trial):
        epochs = trial.suggest_int("epochs", 1, 9)
        return (trial.suggest_float("x", -1, 1) - 0.3) ** 2 + 0.1 * epochs + noise(trial.number)

    study = optuna.create_study(study_name="study", sampler=make())
    study.optimize(rising)
    pulls = [trial for trial in study.trials if "mfhpo:pull" in trial.user_attrs]
    whole = [trial for trial in pulls if trial.params["epochs"] == 9]
    answer = certify(study, rising, budget=60, fidelity=name)
    assert {tuple(sorted(result.params.items())) for result in answer.candidates} <= {
        tuple(sorted(trial.params.items())) for trial in whole
    }
    assert f"of {len(whole)} completed trials" in answer.about
    for result in answer.candidates:
        values = [t.value for t in whole if t.params["x"] == result.params["x"]]
        assert result.claim == pytest.approx(np.mean(values))
    luckiest = min(whole, key=lambda trial: trial.value)
    assert answer.candidates[answer.luckiest].params["x"] == luckiest.params["x"]
    assert ("infeasible, at lower levels" in answer.shortlist) == (len(whole) < len(pulls))


def test_each_evaluation_has_a_training_of_its_own():
    done = {}

    def trained(trial):
        x, epochs = trial.suggest_float("x", -1, 1), trial.suggest_int("epochs", 1, 9)
        name = training_of(trial)
        begun, done[name] = done.get(name, 0), epochs
        if certifying:
            assert begun == 0
        return x**2 + noise(trial.number)

    certifying = False
    sampler = SearchSampler("epochs", budget=300, checkpoints=True, seed=0)
    study = optuna.create_study(study_name="study", sampler=sampler)
    study.optimize(trained)
    of_search, certifying = len(done), True
    for name in ("first", "second"):
        certify(study, trained, budget=30, name=name)
    assert len(done) > of_search + 30


def test_pruned_failed_infinite_and_infeasible_trials_are_no_candidates():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        if trial.number == 1:
            raise optuna.TrialPruned
        if trial.number == 2:
            raise ZeroDivisionError
        trial.set_constraint("c", 1.0 if trial.number == 3 else -1.0)
        return {4: -math.inf, 3: -9.0}.get(trial.number, x**2 + noise(trial.number))

    study = searched(objective, n_trials=10)
    answer = certify(study, bowl, top=9)
    assert {r.name for r in answer.candidates} == {f"trial {k}" for k in (0, 5, 6, 7, 8, 9)}
    assert (
        "4 trials left out (pruned, failed, infeasible, at lower levels or out of range)"
        in answer.shortlist
    )


@pytest.mark.filterwarnings("ignore:repeated evaluations")
def test_fixed_seed_is_noticed_and_a_mended_objective_begins_anew():
    study = searched()
    with pytest.warns(NoNoiseWarning, match=r"seed_of\(trial\)") as caught:
        answer = certify(study, lambda trial: trial.suggest_float("x", -1, 1) ** 2, top=4)
    assert any("sigma=0" in str(warning.message) for warning in caught)
    assert (answer.finished, answer.certified, answer.evaluations) == (True, False, 8)
    assert math.isinf(answer.within)
    assert answer.interval == (-math.inf, math.inf)
    assert "exactly the same value" in str(answer)
    with pytest.raises(ValueError, match="feasible"):
        _ = record_of(study, answer).best_trial
    mended = certify(study, bowl, top=4)
    assert mended.certified
    assert mended.study_name == f"{answer.study_name} (2)"
    assert certify(study, bowl, top=4) == mended
    assert certify(study, bowl, top=4, timeout=0) == mended


def test_time_limited_objectives_are_limited():
    def objective(trial):
        if trial.suggest_int("k", 0, 99) == 0:
            time.sleep(3600.0)
        return table([0, 0.1, 0.5])(trial)

    study = points([0.0, 0.1, 0.5])
    with time_limited(objective, limit=0.5) as limited, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = certify(study, limited, budget=20, max_failures=1)
    assert answer.candidates[0].standing == "failed"
    assert answer.params == {"k": 1}
    numbers = [trial.number for trial in record_of(study, answer).trials]
    assert numbers == list(range(answer.evaluations + 1))


def test_exceptions_end_the_call_unless_they_are_caught_and_it_goes_on_afterwards():
    calls = []

    def objective(trial):
        calls.append(trial.number)
        if len(calls) == 5:
            raise ZeroDivisionError
        return bowl(trial)

    study = searched()
    with pytest.raises(ZeroDivisionError):
        certify(study, objective, top=3)
    answer = certify(study, objective, top=3)
    assert (answer.certified, answer.evaluations) == (True, len(calls))
    calls.clear()
    caught = certify(study, objective, top=3, catch=iter([ZeroDivisionError]), name="again")
    assert (caught.certified, caught.evaluations) == (True, len(calls))


def test_larger_budget_goes_on_and_a_timeout_of_zero_only_looks():
    study = points([0.3, 0.2, 0.4])
    objective = table([0.3, 0.2, 0.4])
    first = certify(study, objective, budget=10, epsilon=0.02)
    assert (first.evaluations, first.certified) == (10, False)
    looked = certify(study, objective, timeout=0, epsilon=0.02)
    assert (looked.evaluations, looked.finished) == (10, False)
    more = certify(study, objective, budget=10_000, epsilon=0.02)
    assert more.certified
    assert more.evaluations > 10
    record = record_of(study, more)
    assert len(values_by_candidate(record)) == 3
    assert record.best_value == more.mean
    again = certify(study, objective, budget=10_000, epsilon=0.02)
    assert again == more
    assert len(record.trials) == len(record_of(study, again).trials)


def test_fidelity_is_at_its_target_and_claims_are_those_of_the_highest_level():
    asked = []

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        asked.append(epochs)
        return x**2 + 1.0 / epochs + noise(trial.number)

    study = searched(objective)
    asked.clear()
    answer = certify(study, objective, top=3, fidelity="epochs", budget=20)
    assert set(asked) == {9}
    assert answer.params["epochs"] == 9
    assert "at epochs=9" in answer.about
    asked.clear()
    certify(study, objective, top=3, budget=6, fidelity=Fidelity("epochs", levels=[1, 5]))
    assert set(asked) == {5}
    asked.clear()
    certify(study, objective, top=3, budget=6)
    assert set(asked) <= {trial.params["epochs"] for trial in study.trials}
    study = optuna.create_study(study_name="study")
    distributions = {
        "x": optuna.distributions.IntDistribution(0, 1),
        "size": optuna.distributions.CategoricalDistribution(["few", "all"]),
    }
    for x, size, value in ((0, "few", 9.0), (0, "all", 0.5), (0, "all", 0.7), (1, "few", 0.9)):
        params = {"x": x, "size": size}
        study.add_trial(create_trial(params=params, distributions=distributions, value=value))
    answer = certify(study, objective, fidelity="size", timeout=0)
    assert [round(result.claim, 9) for result in answer.candidates] == [0.6, 0.9]


def test_what_the_objective_sees():
    seen = []

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float(f"x_{kind}", 1e-3, 1, log=True)
        seen.append(trial.number)
        trial.set_user_attr("square", x**2)
        for step in range(3):
            trial.report(x + step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x + noise(trial.number)

    pruner = optuna.pruners.ThresholdPruner(upper=2.1, n_warmup_steps=1)
    study = searched(objective, n_trials=40, pruner=pruner)
    assert study.get_trials(states=(TrialState.PRUNED,))
    study.pruner = optuna.pruners.ThresholdPruner(upper=-1.0)
    study.set_user_attr("data", "here")
    seen.clear()
    answer = certify(study, objective, top=5, budget=30)
    assert min(seen) == 40
    assert len(set(seen)) == len(seen)
    record = record_of(study, answer)
    assert record.user_attrs["data"] == "here"
    params = {f"trial {t.number}": t.params for t in study.trials}
    trials = [t for t in record.trials if "mfhpo:pull" in t.user_attrs]
    assert {t.state for t in trials} == {TrialState.COMPLETE}
    for trial in trials:
        candidate = answer.candidates[trial.user_attrs["mfhpo:pull"]["arm"]]
        assert trial.params == candidate.params == params[candidate.name]
        assert len(trial.intermediate_values) == 3
        assert "square" in trial.user_attrs


def test_threads_share_the_work_until_the_timeout():
    study = searched()
    answer = certify(study, bowl, top=4, n_jobs=4, timeout=0.5, epsilon=0.0)
    assert not answer.finished
    found = values_by_candidate(record_of(study, answer))
    assert answer.evaluations == sum(map(len, found.values())) > 3


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.filterwarnings("ignore:Choices for a categorical")
def test_choices_are_equal_by_type_and_representation(is_stored, tmp_path):
    choices = [math.nan, None, (1, "a"), {"b": 1, "a": math.nan}]

    def objective(trial):
        kind = trial.suggest_categorical("kind", choices)
        place = [choice is kind for choice in choices].index(True)
        return place + noise(trial.number)

    storage = f"sqlite:///{tmp_path / 'study.db'}" if is_stored else None
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(storage=storage, study_name="kinds", sampler=sampler)
    study.optimize(objective, n_trials=20)
    answer = certify(study, objective, top=4, epsilon=0.5)
    assert (answer.certified, len(answer.candidates)) == (True, 4)
    assert math.isnan(answer.params["kind"])
    found = values_by_candidate(record_of(study, answer))
    assert answer.evaluations == sum(map(len, found.values()))


def test_a_reader_writes_nothing():
    def written():
        names = optuna.get_all_study_names(study._storage)
        studies = [optuna.load_study(study_name=name, storage=study._storage) for name in names]
        return [(each.study_name, each.trials, each.user_attrs) for each in studies]

    study = searched()
    before = written()
    answer = certify(study, bowl, top=3, timeout=0)
    assert (answer.evaluations, answer.finished) == (0, False)
    assert written() == before
    certify(study, bowl, top=3, budget=5)
    before = written()
    # By its own budget it is over, and the record has no such answer.
    assert certify(study, bowl, top=3, budget=4, timeout=0).finished
    assert written() == before
