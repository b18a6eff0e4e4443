import json
import warnings

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState, create_trial

from mfhpo import Observation
from mfhpo.censored import RCUCB, Linear, ZoomingRCUCB
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_optuna import IISESampler, ZoomingRCUCBSampler
from mfhpo_optuna.study.trials.under_way import UnderWay
from tests.optuna.samplers.races import CERTIFICATE, answers
from tests.optuna.samplers.time_limits.timed import (
    ARMS,
    CENSORED,
    ENFORCER,
    LIMIT,
    PULL,
    SECONDS,
    end,
    history,
    make,
    outcome,
    pulls,
    run,
    score,
    sequence,
)

both_directions = pytest.mark.parametrize(
    ("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)]
)


def signed(sign):
    return lambda trial: score(trial, sign)


@settings(max_examples=15, deadline=None)
@given(
    limits=st.one_of(
        st.none(),
        st.integers(1, 5),
        st.lists(st.floats(0.1, 5.0), min_size=1, max_size=4, unique=True).map(sorted),
    ),
    reward_range=st.sampled_from([None, (0.0, 1.0), (0.3, 0.6)]),
    rounds=st.integers(1, 60),
    minimise=st.booleans(),
)
def test_the_sampler_plays_what_the_bare_policy_plays(limits, reward_range, rounds, minimise):
    sign = -1.0 if minimise else 1.0
    mirrored = reward_range
    if minimise and reward_range is not None:
        mirrored = (-reward_range[1], -reward_range[0])
    low, high = reward_range or (0.0, 1.0)
    if limits is None:
        options = {"smoothness": 3.0, "splits": 3, "cost": Linear(0.05)}
        policy = ZoomingRCUCB(len(ARMS), 4.0, reward_range=reward_range, **options)
        sampler = ZoomingRCUCBSampler(ARMS, 4.0, reward_range=mirrored, **options)
    else:
        policy = RCUCB(len(ARMS), limits, reward_range=reward_range)
        sampler = make(limits=limits, reward_range=mirrored)
    expected = []
    counts = [0] * len(ARMS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            [pull] = policy.ask()
            expected.append((pull.arm, pull.limit))
            value, seconds = outcome(ARMS[pull.arm]["x"], counts[pull.arm])
            value = min(max(value, low), high)
            counts[pull.arm] += 1
            if pull.limit is not None and seconds > pull.limit:
                policy.tell(pull, Observation(None, pull.limit, pull.limit))
            else:
                policy.tell(pull, Observation(value, seconds))
        direction = "minimize" if minimise else "maximize"
        study = run(sampler, signed(sign), n_trials=rounds, direction=direction)
    assert [(arm, limit) for arm, limit, *_ in sequence(study)] == expected
    answer, bare = study.sampler.recommendation(study), policy.recommend()
    assert (answer.arm, answer.limit, answer.trials) == (bare.arm, bare.limit, bare.pulls)
    assert sign * answer.gain == pytest.approx(bare.mean, nan_ok=True)
    assert answer.survival == bare.survival
    assert answer.seconds == pytest.approx(bare.cost)


def test_a_trial_that_is_stopped_is_pruned():
    study = run(make(limits=[0.4, 0.8]), n_trials=80)
    for trial in pulls(study):
        assert trial.params == ARMS[trial.user_attrs[PULL]["arm"]]
        assert trial.constraints == {"mfhpo": 1.0}
    assert [t.user_attrs[LIMIT] for t in pulls(study)[:3]] == [0.8] * 3
    stopped = [t for t in study.trials if CENSORED in t.user_attrs]
    assert len(stopped) > 5
    for trial in stopped:
        assert trial.state == TrialState.PRUNED
        assert trial.user_attrs[CENSORED] == trial.user_attrs[SECONDS] == trial.user_attrs[LIMIT]
    assert study.sampler.recommendation(study).censored == len(stopped) / 80


@pytest.mark.parametrize("longest", [None, 3.0])
def test_limits_are_derived_from_the_first_durations(longest):
    """Durations .5 .5 2.5 2.5: quartiles .5 and 2.5."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return end(trial, x, 2.5 if x > 0.4 else 0.5)

    arms = [{"x": x} for x in (0.1, 0.2, 0.5, 0.6)]
    sampler = make(arms=arms, limits=5, longest=longest)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=3)
    with pytest.raises(ValueError, match="no best limit yet: the limits are still being derived"):
        sampler.best_limit(study)
    study.optimize(objective, n_trials=7)
    chosen = [t.user_attrs.get(LIMIT) for t in study.trials]
    assert chosen[:4] == [longest] * 4
    assert set(chosen[4:]) <= set(np.linspace(0.5, 2.5, 5))
    answer = sampler.recommendation(study)
    assert [point.limit for point in answer.survival] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.5])
    assert any("limits derived" in assumption for assumption in answer.assumptions)


def test_what_nobody_stopped_counts_as_stopped_at_its_limit(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(UnderWay, "clock", staticmethod(lambda: now[0]))

    def unenforced(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        begun = pulls(trial.study)
        value, seconds = outcome(x, sum(t.params.get("x") == x for t in begun) - 1)
        now[0] += seconds
        return value

    with pytest.warns(UserWarning, match="trial 0 had a limit .* nobody enforces it") as caught:
        study = run(make(), unenforced, 60)
    assert len([w for w in caught if "enforces" in str(w.message)]) == 1
    assert ENFORCER not in study.trials[0].user_attrs
    enforced = run(make(), n_trials=60)
    assert {t.state for t in study.trials} == {TrialState.COMPLETE}
    assert [s[:3] for s in sequence(study)] == [s[:3] for s in sequence(enforced)]
    answer, other = (s.sampler.recommendation(s) for s in (study, enforced))
    assert (answer.gain, answer.interval, answer.censored, answer.survival) == (
        pytest.approx(other.gain, abs=0.01),
        pytest.approx(other.interval, abs=0.01),
        other.censored,
        other.survival,
    )


def test_a_limit_of_the_enforcer_s_own_counts_as_the_sampler_s():
    """To be stopped at 1 s by someone else says that the limit of 4 s would not have helped."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr(ENFORCER, "the test")
        if x > 0.8:
            trial.set_user_attr(SECONDS, 1.5)
            trial.set_user_attr(CENSORED, 1.5)
            raise optuna.TrialPruned
        return x

    sampler = make(limits=[2.0, 4.0])
    with pytest.warns(UserWarning, match=r"stopped at 1\.5 .* limit of 4 ") as caught:
        study = run(sampler, objective, 30)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"trial {pulls(study)[2].number} was stopped")
    assert sampler.known(study).policy.survival(2).tolist() == [1.0, 1.0]
    assert sampler.recommendation(study).params == {"x": 0.5}


def test_a_trial_pruned_for_another_reason_is_a_failure():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.8:
            trial.set_user_attr(ENFORCER, "the test")
            raise optuna.TrialPruned
        return end(trial, x, 0.5)

    with (
        pytest.warns(UserWarning, match="was pruned.*NopPruner") as caught,
        pytest.warns(ArmWithdrawnWarning, match=r"candidate 2 \{'x': 0\.9\} leaves"),
    ):
        study = run(make(), objective, 30)
    answer = study.sampler.recommendation(study)
    assert str(caught[0].message).startswith(f"trial {pulls(study)[2].number} was pruned")
    assert answer.survivors == (0, 1)
    assert sum(t.state == TrialState.PRUNED for t in study.trials) == 3
    assert answer.trials == 27


def test_memory_counts_as_the_limit_of_time_in_force():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.8:
            if LIMIT in trial.user_attrs:
                trial.set_user_attr(CENSORED, trial.user_attrs[LIMIT])
            trial.set_user_attr("mfhpo:memory_limit", 1000)
            trial.set_user_attr(ENFORCER, "the test")
            trial.set_user_attr(SECONDS, 0.1)
            raise optuna.TrialPruned
        return end(trial, x, 0.5)

    sampler = make()
    study = run(sampler, objective, 20)
    assert sampler.known(study).policy.survival(2).tolist() == [1.0, 1.0, 1.0]
    with pytest.warns(UserWarning) as caught:  # noqa: PT030  (which ones, is what is checked)
        study = run(make(limits=3), objective, 20)
    assert {w.category for w in caught} == {ArmWithdrawnWarning}


@pytest.mark.parametrize(("options", "largest"), [({}, 4.0), ({"limits": 3, "longest": 7.0}, 7.0)])
def test_what_is_enqueued_has_a_limit_of_its_own_or_the_largest(options, largest):
    study = optuna.create_study(direction="maximize", sampler=make(**options))
    for x in (0.9, 0.3):  # an arm, and none, which may hang all the same
        study.enqueue_trial({"x": x})
        study.enqueue_trial({"x": x}, user_attrs={LIMIT: 2.5})
    with pytest.warns(UserWarning, match="none of the 3 configurations: it runs, but does not"):
        trials = [study.ask() for _ in range(4)]
    assert [trial.suggest_float("x", 0.0, 1.0) for trial in trials] == [0.9, 0.9, 0.3, 0.3]
    assert [trial.user_attrs[LIMIT] for trial in trials] == [largest, 2.5] * 2
    for trial in trials:
        with pytest.raises(optuna.TrialPruned):
            end(trial, 1.0, 10.0)
        study.tell(trial, state=TrialState.PRUNED)
    told = [(each.pull.arm, each.observation.censored_at) for each in history(study)]
    assert told == [(2, largest), (2, 2.5)]
    study.add_trial(create_trial(value=1.0))
    assert "notice      1 trial does not count" in str(study.sampler.recommendation(study))


def test_an_arm_that_was_only_stopped_is_shown_as_far_as_it_is_known():
    def hangs(trial):
        trial.suggest_float("x", 0.0, 1.0)
        return end(trial, 1.0, 10.0)

    study = run(make(arms=2, limits=[1.0], horizon=6), hangs)
    answer = study.sampler.recommendation(study)
    assert answer.params == study.best_params == study.trials[answer.arm].params != {}


@both_directions
def test_the_answer_says_how_many_values_contradict_the_declared_range(direction, sign):
    def objective(trial):
        return end(trial, sign * (trial.suggest_float("x", 0.0, 1.0) - 0.3), 0.5)

    ends = (0.0, sign * 0.5)
    declared = {"cost": Linear(0.0), "reward_range": (min(ends), max(ends))}
    words = r"a value of .* lies outside reward_range=\(.*leave it out"
    with pytest.warns(UserWarning, match=words) as caught:
        study = run(make(**declared), objective, 20, direction)
    assert len(caught) == 1
    values = np.array([sign * trial.value for trial in pulls(study)])
    n = ((values < 0.0) | (values > 0.5)).sum()
    words = f"contradicted by {n} of 20, taken as the nearest value inside"
    assert words in study.sampler.recommendation(study).assumptions[0]
    # Whoever reads the study later says the same, but does not warn again.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert words in str(make(**declared).recommendation(study))


@both_directions
def test_the_horizon_ends_the_study_with_the_answer(direction, sign):
    sampler = make(horizon=150, reward_range=tuple(sorted((0.0, sign))))
    study = run(sampler, signed(sign), direction=direction)
    assert len(answers(study)) == 1
    assert len(pulls(study)) == 150
    answer = sampler.recommendation(study)
    assert answer.finished
    assert "horizon of 150 rounds is reached" in answer.reason
    assert study.best_params == answer.params
    assert study.best_value == answer.interval[0 if sign > 0 else 1]
    assert answer.interval[0] <= answer.gain <= answer.interval[1]
    assert study.best_trial.user_attrs[LIMIT] == answer.limit == sampler.best_limit(study)
    assert study.best_trial.user_attrs[CERTIFICATE] == answer.to_dict()
    assert json.loads(json.dumps(answer.to_dict(), allow_nan=False))["survival"][0]["limit"] == 1.0


def test_samplers_of_levels_and_of_limits_refuse_each_other_s_studies():
    def with_epochs(trial):
        return trial.suggest_float("x", 0, 1) + trial.suggest_int("epochs", 1, 9)

    study = run(make(), n_trials=5)
    study.sampler = IISESampler("epochs", ARMS)
    with pytest.raises(ValueError, match="trial 0 was run by a sampler that chooses time limits"):
        study.optimize(with_epochs)
    assert study.trials[-1].state == TrialState.FAIL
    with pytest.raises(ValueError, match="trial 0 was run by a sampler that chooses time limits"):
        study.sampler.recommendation(study)

    study = optuna.create_study(sampler=IISESampler("epochs", ARMS))
    study.optimize(with_epochs, n_trials=3)
    study.sampler = make()
    with pytest.raises(ValueError, match="trial 0 was run by a sampler that chooses levels"):
        study.optimize(with_epochs)
    assert study.trials[-1].state == TrialState.FAIL
