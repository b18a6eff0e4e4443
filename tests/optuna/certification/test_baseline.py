"""`certify` of a study with the configuration that is in use today."""

import optuna
import pytest

from mfhpo_optuna import Fidelity, certify
from mfhpo_optuna.report import ledger, summary
from mfhpo_optuna.visualization import plot_race, reading
from tests.optuna.certification.test_certify import noise, points, table
from tests.optuna.visualization.figures import row_labels

TRUTH = [k / 10 for k in range(100)]
OPTIONS = {"top": 3, "epsilon": 0.05, "measure": 0}


def study_of(n=6):
    return points([k / 10 for k in range(n)])


def test_configuration_beyond_the_best_is_compared_too():
    study = study_of()
    answer = certify(study, table(TRUTH), baseline={"k": 5}, **OPTIONS)
    assert [one.name for one in answer.candidates] == ["trial 0", "trial 1", "trial 2", "trial 5"]
    assert answer.params == {"k": 0}
    assert (answer.baseline.name, answer.baseline.params) == ("trial 5", {"k": 5})
    assert answer.baseline.verdict == "better"
    assert 0.0 < answer.baseline.at_least < 0.5
    assert answer.about == "the 3 best of 6 completed trials and the baseline"
    assert str(answer).splitlines()[1].startswith("  baseline    better than the baseline by 0.")
    again = certify(study, table(TRUTH), baseline={"k": 5}, timeout=0, **OPTIONS)
    assert again == answer  # the record holds it


def test_configuration_that_the_study_has_not_tried_has_no_claim():
    study = study_of()
    answer = certify(study, table(TRUTH), baseline={"k": 9}, **OPTIONS)
    assert answer.candidates[-1].name == "baseline"
    assert answer.candidates[-1].params == {"k": 9}
    assert answer.baseline.verdict == "better"
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    assert record.user_attrs["mfhpo:shortlist"]["candidates"][-1] == ["baseline", "k=9"]
    assert record.study_name.endswith(": best 3 of 6 and the baseline, k=9")
    found = reading.read_study(study)
    rows = dict(summary.summary_of(found, ledger.ledger_of(found)).rows)
    assert rows["baseline"] == str(answer.baseline)
    figure = plot_race(record)
    assert str(answer.baseline)[1:30] in figure.layout.title.text
    assert "baseline: k=9" in row_labels(figure)


def test_best_alone_beside_the_baseline():
    answer = certify(study_of(), table(TRUTH), baseline={"k": 8}, **{**OPTIONS, "top": 1})
    assert [one.name for one in answer.candidates] == ["trial 0", "baseline"]
    assert answer.baseline.verdict == "better"
    with pytest.raises(ValueError, match="top must be at least 2"):
        certify(study_of(), table(TRUTH), **{**OPTIONS, "top": 1})


def test_marked_trial_is_the_baseline():
    study = study_of()
    study.enqueue_trial({"k": 7}, user_attrs={"baseline": True})
    study.optimize(table(TRUTH), n_trials=1)
    answer = certify(study, table(TRUTH), **OPTIONS)
    assert (answer.baseline.name, answer.baseline.params) == ("trial 6", {"k": 7})
    given = certify(study, table(TRUTH), baseline={"k": 5}, **{**OPTIONS, "epsilon": 0.5})
    assert given.baseline.params == {"k": 5}  # what is given comes first


def test_marked_trial_counts_though_it_failed_or_waits():
    study = study_of()
    study.enqueue_trial({"k": 7}, user_attrs={"baseline": True})
    assert certify(study, table(TRUTH), **OPTIONS).baseline.params == {"k": 7}
    study.optimize(lambda trial: trial.suggest_int("k", 0, 99) / 0, n_trials=1, catch=Exception)
    assert certify(study, table(TRUTH), **OPTIONS).baseline.params == {"k": 7}


def test_fidelity_is_at_its_target_and_numbers_have_their_type():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 9.0)
        return x + 1.0 / trial.suggest_int("epochs", 1, 9) + noise(trial.number)

    study = optuna.create_study(study_name="study", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    fidelity = Fidelity("epochs", levels=[1, 3, 9])
    answer = certify(study, objective, baseline={"x": 9, "epochs": 3}, fidelity=fidelity, **OPTIONS)
    assert answer.baseline.params == {"x": 9.0, "epochs": 9}
    assert isinstance(answer.baseline.params["x"], float)


@pytest.mark.parametrize(
    ("baseline", "error", "words"),
    [
        ({"j": 1}, ValueError, "must have the parameters of study .*; look at 'j'"),
        ({}, ValueError, "look at 'k'"),
        ({"k": 300}, ValueError, "k=300 is not a value of the objective's IntDistribution"),
        ({"k": "a"}, ValueError, "k='a' is not a value"),
        (3, TypeError, "baseline must be a dictionary of parameters or None, got 3"),
    ],
)
def test_baseline_that_cannot_be_evaluated_is_refused(baseline, error, words):
    with pytest.raises(error, match=words):
        certify(study_of(), table(TRUTH), baseline=baseline, **OPTIONS)


def branching(trial):
    """A kernel of which one has a degree."""
    kernel = trial.suggest_categorical("kernel", ["linear", ["poly", 2], "rbf"])
    value = trial.suggest_float("C", 0.0, 1.0)
    if kernel == ["poly", 2]:
        value += trial.suggest_int("degree", 1, 5)
    return value + noise(trial.number)


def branches(n=3):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for kernel in ("linear", ["poly", 2], "rbf"):
        for _ in range(n):
            study.enqueue_trial({"kernel": kernel})
    study.optimize(branching, n_trials=3 * n)
    return study


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kernel": "rbf", "degree": 2}, "did not ask for 'degree', which the study's trials have"),
        ({"kernel": ["poly", 2]}, "asks for 'degree', which baseline of the study does not have"),
    ],
)
def test_baseline_of_another_branch_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        certify(branches(), branching, baseline={"C": 0.5, **given})


@pytest.mark.parametrize("given", [{"kernel": ["poly", 2], "degree": 3}, {"kernel": "linear"}])
def test_baseline_of_its_branch_is_compared(given):
    answer = certify(branches(), branching, baseline={"C": 0.5, **given}, budget=40)
    assert answer.baseline.params == {"C": 0.5, **given}
