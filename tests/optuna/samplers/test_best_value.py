"""`study.best_value` is what the certificate promises, in every state and either direction."""

import math
import warnings

import numpy as np
import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfhpo_optuna import Fidelity, IISESampler, MFTopTwoSampler, MFUCBSampler, SearchSampler
from tests.optuna.samplers.races import ARMS, CERTIFICATE, answers, answers_so_far, bowl

EPOCHS = Fidelity("epochs", levels=[1, 9])
SAMPLERS = {
    "IISE": lambda budget, seed: IISESampler(
        Fidelity("epochs", levels=[9]), ARMS, epsilon=0.2, budget=9 * budget, seed=seed
    ),
    "top-two": lambda budget, seed: MFTopTwoSampler(EPOCHS, 5, budget=9 * budget, seed=seed),
    "search": lambda budget, seed: SearchSampler(EPOCHS, budget=9 * budget, seed=seed),
    "certificate": lambda budget, seed: SearchSampler(
        EPOCHS, budget=9 * budget, certify_share=0.6, epsilon=0.3, seed=seed
    ),
}


def promised(answer, sign):
    """What the documentation says of an answer; `sign` is -1 to maximise."""
    end = answer.interval[1 if sign > 0.0 else 0]
    if answer.certified:
        return answer.mean
    # Without a certificate, a search says what it has seen.
    return end if math.isfinite(end) or not hasattr(answer, "certificate") else answer.mean


def optimized(study, sign, n_trials=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(lambda trial: bowl(trial, sign), n_trials=n_trials)


CASES = {
    "sign": st.sampled_from([1.0, -1.0]),
    "budget": st.integers(6, 40),
    "seed": st.integers(0, 9),
}


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(**CASES)
def test_at_the_end_it_is_the_mean_or_the_end_of_the_interval(make, sign, budget, seed):
    sampler = make(budget, seed)
    study = optuna.create_study(
        sampler=sampler, direction="minimize" if sign > 0.0 else "maximize", study_name="race"
    )
    optimized(study, sign)
    assert not answers_so_far(study)
    (only,) = answers(study)
    answer = sampler.recommendation(study)
    assert study.best_trial == only
    assert study.best_value == promised(answer, sign)
    assert only.user_attrs[CERTIFICATE]["certified"] == answer.certified


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(**CASES, stops=st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_where_a_study_goes_on_an_answer_at_least_takes_its_place(make, sign, budget, seed, stops):
    sampler = make(budget, seed)
    study = optuna.create_study(
        sampler=sampler, direction="minimize" if sign > 0.0 else "maximize", study_name="race"
    )
    earlier = math.inf * sign  # nothing is worse
    for n_trials in [*stops, None]:
        before = len(answers(study)) + len(answers_so_far(study))
        optimized(study, sign, n_trials)
        shown = [*answers_so_far(study), *answers(study)]
        if len(shown) == before:
            continue
        answer = sampler.recommendation(study)
        if not (math.isfinite(study.best_value) or math.isfinite(earlier)):
            assert len({trial.user_attrs[CERTIFICATE]["arm"] for trial in shown}) == 1
            continue  # nothing is known of either
        beyond = np.nextafter(earlier, -sign * math.inf)
        value = study.best_value
        assert study.best_trial == max(shown, key=lambda trial: trial.number)
        assert study.best_trial.user_attrs[CERTIFICATE]["arm"] == answer.arm
        own = promised(answer, sign) if answers(study) else answer.interval[1 if sign > 0.0 else 0]
        if math.isfinite(own):
            assert value == (own if sign * own < sign * earlier else beyond)
        else:
            assert value == beyond or sign * value >= sign * answer.mean
        earlier = value


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_trials_are_to_be_good_it_is_the_end_of_the_interval_or_beyond(sign):
    sampler = MFUCBSampler(EPOCHS, ARMS, bias=[0.2, 0.0], sigma=0.1, budget=900, seed=0)
    study = optuna.create_study(
        sampler=sampler, direction="minimize" if sign > 0.0 else "maximize", study_name="race"
    )
    optimized(study, sign)
    end = sampler.recommendation(study).interval[1 if sign > 0.0 else 0]
    best = sign * min(sign * trial.value for trial in answers_so_far(study))
    assert study.best_value == (
        end if sign * end < sign * best else np.nextafter(best, -sign * math.inf)
    )
