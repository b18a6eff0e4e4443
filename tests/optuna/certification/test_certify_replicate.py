import math

import numpy as np
import optuna
import pytest
from optuna.trial import create_trial

from mfhpo import Bounded
from mfhpo_optuna import certify
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.summary import summary_of
from mfhpo_optuna.visualization.reading import read_study
from tests.optuna.workers import certified_in_blocks, kill, start, wait

WORTH = [0.0, 0.1, 0.2, 0.3]
DISTRIBUTIONS = {
    "k": optuna.distributions.IntDistribution(0, 3),
    "split": optuna.distributions.IntDistribution(0, 2**31 - 1),
}


def on_split(trial):
    """What a split does to all candidates is ten times the noise of an evaluation."""
    k, split = trial.suggest_int("k", 0, 3), trial.suggest_int("split", 0, 2**31 - 1)
    of_split = np.random.default_rng(split).normal()
    return WORTH[k] + of_split + 0.1 * np.random.default_rng([split, k]).normal()


def unshared(trial):
    """The same with a split of its own for each evaluation."""
    rng = np.random.default_rng(trial.number)
    return WORTH[trial.suggest_int("k", 0, 3)] + rng.normal() + 0.1 * rng.normal()


def searched(storage=None, splits=range(8)):
    """Two trials of each configuration, with different splits."""
    study = optuna.create_study(direction="maximize", storage=storage, study_name="searched")
    for number, split in enumerate(splits):
        params, value = {"k": number % 4, "split": split}, WORTH[number % 4] + number / 100
        study.add_trial(create_trial(params=params, distributions=DISTRIBUTIONS, value=value))
    return study


def evaluations(study, answer):
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    return [trial for trial in record.trials if "mfhpo:pull" in trial.user_attrs]


def blocks_of(trials):
    found = {}
    for trial in trials:
        found.setdefault(trial.user_attrs["mfhpo:pull"]["block"], []).append(trial)
    return found


def test_what_a_split_does_to_all_is_no_noise():
    study = searched()
    answer = certify(study, on_split, replicate="split", top=4, epsilon=0.05)
    assert (answer.certified, answer.params) == (True, {"k": 3})
    assert answer.evaluations < 100
    assert [each.name for each in answer.candidates] == [f"trial {k}" for k in (7, 6, 5, 4)]
    assert answer.candidates[0].claim == pytest.approx(np.mean([WORTH[3] + 0.03, WORTH[3] + 0.07]))
    assert any("the mean over replicates" in words for words in answer.assumptions)
    plain = optuna.create_study(study_name="plain", direction="maximize")
    for k in range(4):
        plain.enqueue_trial({"k": k})
    plain.optimize(unshared, n_trials=4)
    alone = certify(plain, unshared, epsilon=0.05, budget=5 * answer.evaluations)
    assert not alone.certified
    assert alone.within > 5 * answer.within
    blocks = blocks_of(evaluations(study, answer))
    shared = [{trial.params["split"] for trial in trials} for trials in blocks.values()]
    assert all(len(splits) == 1 for splits in shared)
    assert len(set.union(*shared)) == len(blocks) == answer.candidates[0].evaluations
    assert len(blocks[0]) == 4


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize(("sd", "folds"), [(0.001, 12), (0.5, 5)])
def test_few_folds(sd, folds, n_jobs):
    def on_fold(trial):
        k, fold = trial.suggest_int("k", 0, 3), trial.suggest_int("split", 0, folds - 1)
        return WORTH[k] + fold + sd * np.random.default_rng([fold, k]).normal()

    study = searched()
    answer = certify(study, on_fold, replicate="split", top=4, epsilon=0.05, n_jobs=n_jobs)
    assert (answer.finished, answer.certified, answer.replicates) == (True, True, folds)
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    assert record.best_params == answer.params
    assert certify(study, on_fold, replicate="split", top=4, epsilon=0.05) == answer
    if folds == 12:
        # A winner needs no more values than there are folds.
        assert (answer.params, answer.candidates[0].evaluations) == ({"k": 3}, folds)
        assert answer.evaluations < 4 * folds
    else:
        assert (answer.evaluations, answer.is_exact) == (20 + 4, True)
        reading = read_study(study, None)
        sure = dict(summary_of(reading, ledger_of(reading)).facts)["how sure"]
        assert sure.startswith("sure if a configuration always has the same value")
        assert "wrong" not in sure
        noise = [np.random.default_rng([fold, k]).normal() for k in range(4) for fold in range(5)]
        means = np.add(WORTH, 2.0 + sd * np.reshape(noise, (4, 5)).mean(axis=1))
        assert answer.mean == pytest.approx(means.max())
        assert answer.params == {"k": int(np.argmax(means))}


def test_right_or_wrong_on_each_question_of_a_test():
    right = np.random.default_rng(0).random(40) < np.array([[0.2], [0.3], [0.9], [0.95]])
    right[3] |= right[2]

    def on_question(trial):
        return float(right[trial.suggest_int("k", 0, 3), trial.suggest_int("question", 0, 39)])

    def searched_with(name):
        study = optuna.create_study(study_name=name, direction="maximize")
        for k in range(4):
            study.enqueue_trial({"k": k, "question": 0})
        study.optimize(on_question, n_trials=4)
        return study

    options = {"replicate": "question", "sigma": Bounded(0, 1)}
    answer = certify(searched_with("test"), on_question, **options)
    assert (answer.certified, answer.params, answer.epsilon) == (True, {"k": 3}, 0.0)
    assert answer.evaluations < 0.8 * right.size
    assert "these 40 replicates" in str(answer)
    orders = []
    for name in ("test", "another"):
        study = searched_with(name)
        trials = evaluations(study, certify(study, on_question, budget=8, **options))
        orders.append([trial.params["question"] for trial in trials])
    assert orders[0] != orders[1]  # random, by the study's name
    with pytest.raises(ValueError, match=r"sigma=0.1 has no part.*Bounded\(low, high\)"):
        certify(searched_with("wrong"), on_question, replicate="question", sigma=0.1)


def test_it_goes_on_where_it_was_stopped(tmp_path):
    whole = certify(searched(), on_split, replicate="split", top=4, epsilon=0.2)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    searched(storage)
    for budget in (9, 13, None):
        study = optuna.load_study(study_name="searched", storage=storage)
        answer = certify(study, on_split, replicate="split", top=4, epsilon=0.2, budget=budget)
        assert answer.evaluations == budget or answer.certified
    assert answer == whole
    assert certify(study, on_split, replicate="split", top=4, epsilon=0.2, timeout=0) == whole


def evaluated(study, answer):
    """Candidate, block and split of each evaluation with a value."""
    done = [trial for trial in evaluations(study, answer) if trial.values]
    noted = [trial.user_attrs["mfhpo:pull"] for trial in done]
    return [(n["arm"], n["block"], t.params["split"]) for n, t in zip(noted, done, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["study.db", "study.log"])
def test_three_processes_go_on_after_one_was_killed(tmp_path, name):
    path = str(tmp_path / name)
    kill(f"certified_in_blocks({path!r}, kill_at=20)")
    call = f"assert certified_in_blocks({path!r})[1].certified"
    wait(start(call), start(call), start(call))
    study, answer = certified_in_blocks(path, timeout=0)
    assert (answer.certified, answer.params) == (True, {"k": 3})
    done = evaluated(study, answer)
    assert len({split for _, _, split in done}) == len({block for _, block, _ in done})
    assert len({(block, split) for _, block, split in done}) == len({b for _, b, _ in done})
    # Processes that choose at the same moment choose again, but not all of them may know.
    assert len(set(done)) >= 0.85 * len(done)
    assert answer.evaluations == len(set(done))  # what is evaluated twice counts once


def test_what_fails_is_evaluated_again_on_its_split():
    failed = []

    def failing(trial):
        value = on_split(trial)
        if len(failed) < 2 and trial.params["k"] == len(failed):
            failed.append((trial.params["k"], trial.params["split"]))
            return math.nan
        return value

    study = searched()
    answer = certify(study, failing, replicate="split", top=4, epsilon=0.05)
    assert answer.certified
    assert sum(result.failures for result in answer.candidates) == 2
    done = [(t.params["k"], t.params["split"]) for t in evaluations(study, answer) if t.values]
    assert set(failed) <= set(done)
    assert len(done) == len(set(done))
