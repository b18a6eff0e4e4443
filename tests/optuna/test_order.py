"""Values count in the order in which their trials began, whatever the order in which they end."""

from __future__ import annotations

import heapq
import os
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler, MFTopTwoSampler, certify
from mfhpo_optuna._worker_name import is_surely_dead, worker_name

ARMS = [{"x": 0.0}, {"x": 1.0}]
CERTIFICATE = "mfhpo:certificate"


def sampler(make: Any = MFTopTwoSampler, **options: Any) -> Any:
    return make("epochs", ARMS, **{"epsilon": 0.0, "measure": 0, "seed": 0, **options})


def begin(study: optuna.Study) -> tuple[optuna.Trial, float]:
    trial = study.ask()
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.suggest_int("epochs", 1, 9)
    return trial, x


def play(seed: int, workers: int, most: int = 400) -> Any:
    """The best arm has mean 0; its rival +1, and -5 one time in five, then 300 times as slow."""
    rng, n_of_rival = np.random.default_rng(seed), 0
    study = optuna.create_study(direction="maximize", sampler=sampler())
    under_way: list[tuple[float, int, optuna.Trial, float]] = []
    now = 0.0
    for _ in range(most):
        while len(under_way) < workers:
            trial, x = begin(study)
            bad = x == 1.0 and n_of_rival % 5 == 1
            n_of_rival += x == 1.0
            value = (-5.0 if bad else x) + 0.3 * rng.standard_normal()
            heapq.heappush(
                under_way, (now + (300.0 if bad else 1.0), trial.number, trial, float(value))
            )
        now, _, trial, value = heapq.heappop(under_way)
        study.tell(trial, value)
        answer = study.sampler.recommendation(study)
        if answer.certified:
            return answer
    return answer


@pytest.mark.slow
def test_slow_divergences_do_not_help_a_certificate() -> None:
    # Told as they end, all of these were certified for the rival, which looks better by 1 until
    # its first divergence has ended.
    for seed in range(4):
        answer = play(seed, workers=16)
        assert not (answer.certified and answer.params == {"x": 1.0})


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(12)), seed=st.integers(0, 100))
def test_the_order_of_ends_does_not_matter(order: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(12)
    told = []
    for ends in (range(12), order):
        study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
        trials = [begin(study)[0] for _ in range(12)]
        for number in ends:
            study.tell(trials[number], float(values[number]))
        heard: dict[tuple[int, int], list[float]] = {}

        def listen(race: Any, heard: Any = heard) -> Any:
            def note(_: int, pull: Any, observation: Any) -> None:
                heard.setdefault((pull.arm, pull.fidelity), []).append(observation.value)

            return note

        study.sampler.replay(study, listen)
        told.append(heard)
    assert told[0] == told[1]


def overtaken(make_sampler: Any) -> tuple[optuna.Study, optuna.Trial]:
    """A study whose first trial is under way while the others end; their values are clear."""
    study = optuna.create_study(direction="maximize", sampler=make_sampler)
    slow, _ = begin(study)
    for _ in range(80):
        trial, x = begin(study)
        study.tell(trial, x + 0.01 * np.random.default_rng(trial.number).standard_normal())
    return study, slow


def test_an_overtaken_trial_keeps_the_answer_uncertified_until_it_ends() -> None:
    study, slow = overtaken(sampler(IISESampler))
    answer = study.sampler.recommendation(study)
    assert answer.finished
    assert not answer.certified
    assert f"trial {slow.number} began earlier" in answer.reason
    assert f"study.tell({slow.number}, state=optuna.trial.TrialState.FAIL)" in answer.reason
    study.tell(slow, 0.0)
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert answer == sampler(IISESampler).recommendation(study)
    assert study.best_trial.user_attrs[CERTIFICATE]["certified"]


def test_a_trial_that_is_declared_dead_is_a_failure_and_no_longer_waited_for() -> None:
    study, slow = overtaken(sampler(IISESampler))
    study.tell(slow.number, state=TrialState.FAIL)
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert answer.failures == 1


def test_a_declared_lease_stands_in_the_claim() -> None:
    study, _ = overtaken(sampler(IISESampler, lease=1e-6))
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert "trials that run for more than lease=1e-06 seconds have no worker" in str(answer)


def test_what_waits_counts_as_under_way_and_is_paid_for() -> None:
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler, budget=100))
    first, _ = begin(study)
    others = [begin(study)[0] for _ in range(4)]
    for trial in others:
        study.tell(trial, 0.5)
    race = study.sampler._of(study)
    behind = [t for t in others if t.params["x"] == first.params["x"]]
    assert len(race._waiting) == len(behind) > 0
    assert len(race._pending(-1)) == 1 + len(behind)
    assert race.policy.held_cost == 9.0 * len(behind)


def test_certify_waits_too() -> None:
    study = optuna.create_study(direction="maximize")
    for x in (0.0, 1.0):
        study.enqueue_trial({"x": x})
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    rng = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0.0, 1.0) + 0.1 * float(rng.standard_normal())

    answer = certify(study, objective, top=2, epsilon=0.1, measure=0, budget=3)
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    assert len(record.trials) >= 3
    assert not answer.certified


@pytest.mark.skipif(os.name != "posix", reason="only there a process can be asked for")
def test_a_worker_is_dead_only_if_that_is_sure() -> None:
    machine, _, _ = worker_name().rpartition(" ")
    assert not is_surely_dead(worker_name())
    assert not is_surely_dead(None)
    assert not is_surely_dead("another machine 1")
    assert not is_surely_dead(f"{machine} 1")  # not ours, but there
    assert is_surely_dead(f"{machine} {2**22 + 1}")  # beyond the largest number of a process
