"""`certify`: the answer, its record, its claims, and studies of all kinds."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mfhpo import ArmWithdrawnWarning, NoNoiseWarning
from mfhpo_optuna import (
    Fidelity,
    IISESampler,
    RaceSampler,
    RCUCBSampler,
    certify,
    time_limited,
    training_of,
)

optuna.logging.set_verbosity(optuna.logging.WARNING)

SIGMA = 0.1


def noise(number: int, scale: float = SIGMA) -> float:
    return scale * float(np.random.default_rng([7, number]).normal())


def bowl(trial):
    return trial.suggest_float("x", -1, 1) ** 2 + noise(trial.number)


def searched(objective=bowl, n_trials=30, direction="minimize", **options):
    study = optuna.create_study(
        direction=direction, sampler=optuna.samplers.TPESampler(seed=0), **options
    )
    study.optimize(objective, n_trials=n_trials, catch=(ZeroDivisionError,))
    return study


def points(values, direction="minimize"):
    """A study whose k-th trial has the parameter k and a value; None is a pruned trial."""
    study = optuna.create_study(direction=direction)
    distribution = optuna.distributions.IntDistribution(0, 99)
    for k, value in enumerate(values):
        study.add_trial(
            optuna.create_trial(
                params={"k": k},
                distributions={"k": distribution},
                **({"state": TrialState.PRUNED} if value is None else {"value": value}),
            )
        )
    return study


def table(truth, scale=SIGMA):
    return lambda trial: truth[trial.suggest_int("k", 0, 99)] + noise(trial.number, scale)


def record_of(study, answer):
    return optuna.load_study(study_name=answer.study_name, storage=study._storage)


def values_by_candidate(record):
    found: dict[str, list[float]] = {}
    for trial in record.trials:
        if "mfhpo:candidate" in trial.user_attrs:
            found.setdefault(trial.user_attrs["mfhpo:candidate"], []).append(trial.value)
    return found


def test_answer_is_made_of_new_evaluations_alone():
    study = searched()
    before = [(t.number, t.value, t.params, t.user_attrs) for t in study.trials]
    answer = certify(study, bowl, top=4)
    record = record_of(study, answer)
    found = values_by_candidate(record)
    assert answer.certified
    assert answer.evaluations == sum(map(len, found.values()))
    for result in answer.candidates:
        assert result.evaluations == len(found[result.name])
        assert result.mean == pytest.approx(np.mean(found[result.name]))
        assert result.gap == pytest.approx(result.mean - result.claim)
    assert record.best_params == answer.params
    assert record.best_value == answer.mean
    assert [(t.number, t.value, t.params, t.user_attrs) for t in study.trials] == before


def test_luckiest_trial_stands_beside_the_answer():
    # The value of trial 1 was pure luck: 0.9 promised, 0.2 true.
    study = points([0.5, 0.9, 0.45, 0.1], direction="maximize")
    answer = certify(study, table([0.5, 0.2, 0.45, 0.1]), top=3, epsilon=0.1)
    assert answer.certified
    assert answer.params in ({"k": 0}, {"k": 2})
    luckiest = answer.luckiest_result
    assert (luckiest.name, luckiest.claim, luckiest.standing) == ("trial 1", 0.9, "worse")
    low, high = luckiest.gap_interval
    assert low < 0.7 < high
    assert luckiest.gap == pytest.approx(0.7, abs=0.1)
    assert [result.claim for result in answer.candidates] == [0.9, 0.5, 0.45]


def test_text_says_it_all():
    study = points([0.5, 0.9, None, 0.1], direction="maximize")
    answer = certify(study, table([0.5, 0.2, 0.9, 0.1]), top=3, epsilon=0.1)
    text = str(answer)
    assert text.startswith("CERTIFIED: trial 0, k=0\n")
    assert "within 0.1 of the best of the 3 best of 3 completed trials" in text
    assert "luckiest    trial 1, promised 0.9 by the search" in text
    assert "1 trials left out (pruned, failed or infeasible)" in text
    assert answer.study_name in text
    assert json.loads(json.dumps(answer.to_dict()))["certified"] is True


def test_uncertified_answer_says_what_holds():
    truth = [0.5, 0.5, 0.5]
    study = points([0.5, 0.6, 0.7])
    answer = certify(study, table(truth), epsilon=1e-3, budget=30)
    assert not answer.certified
    assert answer.finished
    assert answer.evaluations == 30
    assert 1e-3 < answer.within < 1.0
    assert f"what holds  within {answer.within:.3g} of the best" in str(answer)
    assert "budget of 30 is spent" in answer.reason


def test_seeds_by_trial_number_are_not_those_of_the_search():
    study = searched(n_trials=20)
    seen = []

    def objective(trial):
        seen.append(trial.number)
        assert isinstance(trial, optuna.Trial)
        return bowl(trial)

    certify(study, objective, top=3)
    assert min(seen) == 20
    assert len(set(seen)) == len(seen)


def test_nothing_is_pruned_and_all_that_is_reported_is_kept():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        trial.set_user_attr("square", x**2)
        for step in range(3):
            trial.report(x**2 + step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x**2 + noise(trial.number)

    pruner = optuna.pruners.ThresholdPruner(upper=2.1, n_warmup_steps=1)
    study = searched(objective, n_trials=40, pruner=pruner)
    pruned = study.get_trials(states=(TrialState.PRUNED,))
    assert pruned
    study.pruner = optuna.pruners.ThresholdPruner(upper=-1.0)
    answer = certify(study, objective, top=3)
    assert answer.certified
    trials = [t for t in record_of(study, answer).trials if "mfhpo:candidate" in t.user_attrs]
    assert {t.state for t in trials} == {TrialState.COMPLETE}
    assert all(len(t.intermediate_values) == 3 and "square" in t.user_attrs for t in trials)


def test_conditional_parameters_are_replayed_exactly():
    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        name = f"x_{kind}"
        x = trial.suggest_float(name, 1e-3, 1, log=True)
        trial.suggest_int("fixed", 3, 3)
        return x + noise(trial.number)

    study = searched(objective)
    answer = certify(study, objective, top=5)
    searched_params = {f"trial {t.number}": t.params for t in study.trials}
    assert {len(r.params) for r in answer.candidates} == {3}
    for trial in record_of(study, answer).trials[:-1]:
        assert trial.params == searched_params[trial.user_attrs["mfhpo:candidate"]]


def test_maximising_mirrors_minimising():
    values, truth = [0.1, 0.2, 0.3, 0.9], [0.3, 0.2, 0.3, 0.9]
    low = certify(points(values), table(truth), top=3, name="same seed")
    mirrored = points([-value for value in values], direction="maximize")
    high = certify(mirrored, lambda trial: -table(truth)(trial), top=3, name="same seed")
    assert low.params == high.params
    assert low.evaluations == high.evaluations
    assert low.mean == pytest.approx(-high.mean)
    assert low.interval == pytest.approx(tuple(-bound for bound in reversed(high.interval)))
    assert low.within == pytest.approx(high.within)
    for one, other in zip(low.candidates, high.candidates, strict=True):
        assert one.gap == pytest.approx(other.gap)
        assert one.standing == other.standing


def test_repeats_of_a_configuration_are_one_candidate():
    study = optuna.create_study()
    for _ in range(3):
        study.enqueue_trial({"x": 0.0})
    study.enqueue_trial({"x": 0.5})
    values = iter([0.3, 0.0, 0.6, 0.2])
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) * 0 + next(values), n_trials=4)
    answer = certify(study, bowl, top=5)
    # Three values of 0.3 in the mean, the best of them by trial 1; the other one's is 0.2.
    found = [(result.name, round(result.claim, 9)) for result in answer.candidates]
    assert found == [("trial 3", 0.2), ("trial 1", 0.3)]
    assert answer.luckiest == 1


def test_best_trial_is_compared_even_where_its_mean_is_not_among_the_best():
    study = optuna.create_study(direction="maximize")
    values = {0: [0.9, 0.1], 1: [0.6], 2: [0.7], 3: [0.65]}
    distribution = optuna.distributions.IntDistribution(0, 99)
    for k, several in values.items():
        for value in several:
            study.add_trial(
                optuna.create_trial(params={"k": k}, distributions={"k": distribution}, value=value)
            )
    answer = certify(study, table([0.5, 0.6, 0.7, 0.65]), top=2, epsilon=0.2)
    assert [result.params["k"] for result in answer.candidates] == [2, 0]
    assert answer.luckiest == 1


@pytest.mark.parametrize("with_name", [True, False], ids=["with the fidelity's name", "without"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: RaceSampler("epochs", trials=40, certify_share=0.0, seed=0),
        lambda: RaceSampler("epochs", budget=9 * 30, seed=0),
        lambda: IISESampler("epochs", arms=6, epsilon=0.5, sigma=SIGMA, seed=0),
    ],
    ids=["search", "search with a certificate", "race"],
)
def test_of_a_race_the_pulls_at_the_highest_level_are_the_candidates(make, with_name):
    """Neither those at lower levels, which look better here, nor the answer that the race added."""

    def rising(trial):
        epochs = trial.suggest_int("epochs", 1, 9)
        return (trial.suggest_float("x", -1, 1) - 0.3) ** 2 + 0.1 * epochs + noise(trial.number)

    study = optuna.create_study(sampler=make())
    study.optimize(rising)
    pulls = [trial for trial in study.trials if "mfhpo:pull" in trial.user_attrs]
    whole = [trial for trial in pulls if trial.params["epochs"] == 9]
    answer = certify(study, rising, budget=60, fidelity="epochs" if with_name else None)
    assert {tuple(sorted(result.params.items())) for result in answer.candidates} <= {
        tuple(sorted(trial.params.items())) for trial in whole
    }
    assert f"of {len(whole)} completed trials" in answer.about
    for result in answer.candidates:
        values = [t.value for t in whole if t.params["x"] == result.params["x"]]
        assert result.claim == pytest.approx(np.mean(values))
    luckiest = min(whole, key=lambda trial: trial.value)
    assert answer.candidates[answer.luckiest].params["x"] == luckiest.params["x"]
    infeasible = len(whole) < len(pulls)
    assert ("at lower levels, failed or infeasible" in answer.shortlist) == infeasible


def test_of_a_race_it_does_not_matter_how_a_trial_came_to_the_target():
    """Enqueued before the levels were known, as a good default is."""
    study = optuna.create_study(sampler=RaceSampler("epochs", trials=12, seed=0))

    def flat(trial):
        trial.suggest_int("epochs", 1, 9)
        return (trial.suggest_float("x", -1, 1) - 0.3) ** 2 + noise(trial.number)

    study.enqueue_trial({"x": 0.3, "epochs": 9})
    study.optimize(flat)
    answer = certify(study, flat, budget=60)
    assert 0.3 in [result.params["x"] for result in answer.candidates]


def test_a_race_that_has_not_come_to_its_target_has_no_candidates():
    study = optuna.create_study(sampler=RaceSampler("epochs", seed=0))
    study.optimize(lambda trial: bowl(trial) + trial.suggest_int("epochs", 1, 81), n_trials=10)
    with pytest.raises(ValueError, match=r"0 different configurations.*at the target level count"):
        certify(study, bowl)


def test_a_race_among_time_limits_has_its_whole_trials_as_candidates():
    study = optuna.create_study(sampler=RCUCBSampler(4, [0.5, 5.0], horizon=30, seed=0))
    study.optimize(bowl)
    answer = certify(study, bowl, budget=40)
    assert len(answer.candidates) == 4


def test_each_evaluation_has_a_training_of_its_own():
    """None goes on from the search's checkpoints, nor from another evaluation's."""
    done: dict[str, int] = {}

    def trained(trial):
        x, epochs = trial.suggest_float("x", -1, 1), trial.suggest_int("epochs", 1, 9)
        name = training_of(trial)
        begun, done[name] = done.get(name, 0), epochs
        if certifying:
            assert begun == 0
        return x**2 + noise(trial.number)

    certifying = False
    study = optuna.create_study(sampler=RaceSampler("epochs", budget=300, checkpoints=True, seed=0))
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
    assert "4 trials left out (pruned, failed or infeasible)" in answer.shortlist


def test_fixed_seed_is_noticed_and_a_mended_objective_begins_anew():
    study = searched()
    with pytest.warns(NoNoiseWarning, match=r"trial\.number") as caught:
        answer = certify(study, lambda trial: trial.suggest_float("x", -1, 1) ** 2, top=4)
    assert any("sigma=0" in str(warning.message) for warning in caught)
    assert answer.finished
    assert not answer.certified
    assert math.isinf(answer.within)
    assert answer.evaluations == 8
    assert answer.interval == (-math.inf, math.inf)
    assert "exactly the same value" in str(answer)
    with pytest.raises(ValueError, match="feasible"):
        _ = record_of(study, answer).best_trial
    mended = certify(study, bowl, top=4)
    assert mended.certified
    assert mended.study_name == f"{answer.study_name} (2)"
    assert certify(study, bowl, top=4) == mended


def test_objective_without_noise_is_certified_if_that_is_declared():
    study = points([0.3, 0.2, 0.4])
    answer = certify(study, table([0.3, 0.2, 0.4], scale=0.0), sigma=0, epsilon=0.0, measure=1)
    assert answer.certified
    assert answer.params == {"k": 1}
    assert answer.interval == (0.2, 0.2)
    assert answer.evaluations == 3


def test_one_candidate_without_noise_is_pointed_out():
    def objective(trial):
        k = trial.suggest_int("k", 0, 99)
        return 0.5 * k + (0.0 if k == 0 else noise(trial.number))

    answer = certify(points([0.0, 0.5, 1.0]), objective)
    assert answer.certified
    assert any("equal values of trial 0" in condition for condition in answer.conditions)


def test_candidate_that_always_fails_leaves_with_a_warning():
    def objective(trial):
        return math.nan if trial.suggest_int("k", 0, 99) == 0 else table([0, 0.1, 0.5])(trial)

    study = points([0.0, 0.1, 0.5])
    with pytest.warns(ArmWithdrawnWarning, match="trial 0"):
        answer = certify(study, objective, epsilon=0.1)
    assert answer.certified
    assert answer.params == {"k": 1}
    assert answer.candidates[0].standing == "failed"
    assert "no new evaluation gave a value" in str(answer)


def test_objective_that_prunes_itself_fails_and_is_told_so():
    def objective(trial):
        if trial.suggest_int("k", 0, 99) == 0:
            raise optuna.TrialPruned
        return table([0, 0.1, 0.5])(trial)

    study = points([0.0, 0.1, 0.5])
    with pytest.warns(UserWarning, match="pruned by the objective itself") as caught:
        answer = certify(study, objective, epsilon=0.1)
    assert sum("itself" in str(warning.message) for warning in caught) == 1
    assert answer.candidates[0].standing == "failed"
    assert answer.params == {"k": 1}


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
    assert answer.certified
    assert answer.evaluations == len(calls)
    calls.clear()
    caught = certify(study, objective, top=3, catch=ZeroDivisionError, name="again")
    assert caught.certified
    assert caught.evaluations == len(calls)


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


def test_timeout_ends_the_call():
    study = points([0.3, 0.2, 0.4])
    answer = certify(study, table([0.3, 0.3, 0.3]), epsilon=0.0, timeout=0.5)
    assert not answer.finished
    assert answer.evaluations > 3


def test_threads_share_the_work():
    study = searched()
    answer = certify(study, bowl, top=4, n_jobs=4)
    assert answer.certified
    found = values_by_candidate(record_of(study, answer))
    assert answer.evaluations == sum(map(len, found.values()))


def test_study_that_has_grown_gets_another_shortlist():
    study = searched()
    first = certify(study, bowl, top=3, budget=6)
    study.optimize(bowl, n_trials=5)
    second = certify(study, bowl, top=3, budget=6)
    assert first.study_name != second.study_name
    assert "of 35 completed trials" in second.about


def test_fidelity_is_at_its_target_in_all_evaluations():
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


def test_claim_is_the_mean_at_the_highest_level_that_was_seen():
    study = optuna.create_study()
    for x, size, value in ((0, "few", 9.0), (0, "all", 0.5), (0, "all", 0.7), (1, "few", 0.9)):
        study.add_trial(
            optuna.create_trial(
                params={"x": x, "size": size},
                distributions={
                    "x": optuna.distributions.IntDistribution(0, 1),
                    "size": optuna.distributions.CategoricalDistribution(["few", "all"]),
                },
                value=value,
            )
        )

    def objective(trial):
        assert trial.suggest_categorical("size", ["few", "all"]) == "all"
        return trial.suggest_int("x", 0, 1) + noise(trial.number)

    answer = certify(study, objective, fidelity="size")
    found = [(result.params["x"], round(result.claim, 9)) for result in answer.candidates]
    assert found == [(0, 0.6), (1, 0.9)]


def test_user_attributes_of_the_study_are_there_for_the_objective():
    study = searched()
    study.set_user_attr("data", "here")

    def objective(trial):
        assert trial.study.user_attrs["data"] == "here"
        return bowl(trial)

    assert certify(study, objective, top=3, budget=6).evaluations == 6


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    import numpy as np
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from mfhpo_optuna import certify

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path, kill_at = sys.argv[1], int(sys.argv[2])

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        if trial.number == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return x**2 + 0.1 * np.random.default_rng(trial.number).normal()

    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(path)), study_name="search",
        load_if_exists=True, sampler=optuna.samplers.RandomSampler(seed=0),
    )
    if not study.trials:
        study.optimize(objective, n_trials=20)
    if len(sys.argv) == 3:
        answer = certify(study, objective, top=3, epsilon=0.2)
        record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
        print(answer.certified, answer.evaluations, len(record.trials), record.best_value)
    """
)


def start(path, kill_at=-1, *more):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), str(kill_at), *more],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_killed_call_goes_on(tmp_path):
    path = tmp_path / "study.log"
    killed = start(path, 30)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    again = start(path)
    output, _ = again.communicate(timeout=120)
    certified, evaluations, trials, _ = output.split()
    assert certified == "True"
    # One trial was killed, and one is the answer.
    assert int(trials) == int(evaluations) + 2


@pytest.mark.slow
def test_processes_share_the_work(tmp_path):
    path = tmp_path / "study.log"
    start(path, -1, "search only").communicate(timeout=120)
    workers = [start(path) for _ in range(2)]
    outputs = [worker.communicate(timeout=300)[0].split() for worker in workers]
    assert [output[0] for output in outputs] == ["True", "True"]
    storage = JournalStorage(JournalFileBackend(str(path)))
    study = optuna.load_study(study_name="search", storage=storage)
    answer = certify(study, lambda trial: 0.0, top=3, epsilon=0.2, timeout=0)
    found = values_by_candidate(record_of(study, answer))
    assert answer.certified
    assert answer.evaluations == sum(map(len, found.values()))


@pytest.mark.slow
def test_claims_hold_at_the_stated_rate():
    # 20 configurations with means in steps of 0.1, noise of 1: luck decides who leads the search.
    runs, delta = 300, 0.2
    wrong = outside = luckiest_outside = promised_too_much = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth = rng.permutation(np.arange(20) * 0.1)
        study = points(rng.normal(truth).tolist(), direction="maximize")
        answer = certify(
            study,
            lambda trial, truth=truth, rng=rng: rng.normal(truth[trial.suggest_int("k", 0, 99)]),
            top=4,
            delta=delta,
            epsilon=1.5,
            measure=3,
            name="race",
        )
        assert answer.certified
        means = [truth[result.params["k"]] for result in answer.candidates]
        wrong += means[answer.winner] < max(means) - answer.within - 1e-9
        low, high = answer.interval
        outside += not low <= means[answer.winner] <= high
        low, high = answer.luckiest_result.gap_interval
        gap = answer.luckiest_result.claim - means[answer.luckiest]
        luckiest_outside += not low <= gap <= high
        promised_too_much += gap > 0.0
    margin = 3.0 * math.sqrt(delta * (1.0 - delta) / runs)
    for failures in (wrong, outside, luckiest_outside):
        assert failures / runs <= delta + margin
    assert promised_too_much / runs > 0.9
