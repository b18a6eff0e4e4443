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
    "reward": lambda budget, seed: MFUCBSampler(
        EPOCHS, ARMS, bias=[0.2, 0.0], sigma=0.1, budget=9 * budget, seed=seed
    ),
}


def promised(answer, sign):
    """What the documentation says of an answer; `sign` is -1 to maximise."""
    end = answer.interval[1 if sign > 0.0 else 0]
    if answer.certified:
        return answer.mean
    # Without a certificate, a search says what it has seen.
    return end if math.isfinite(end) or not answer.searched else answer.mean


def optimized(study, sign, n_trials=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(lambda trial: bowl(trial, sign), n_trials=n_trials)


CASES = {
    "sign": st.sampled_from([1.0, -1.0]),
    "budget": st.integers(6, 40),
    "seed": st.integers(0, 9),
}


def best_so_far(study, sign):
    """What the answers so far have promised, infinite if there are none."""
    return sign * min((sign * one.value for one in answers_so_far(study)), default=math.inf)


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(**CASES, stops=st.lists(st.integers(1, 20), max_size=2))
def test_at_the_end_it_is_the_mean_or_the_end_of_the_interval_or_beyond(
    make, sign, budget, seed, stops
):
    sampler = make(budget, seed)
    study = optuna.create_study(
        sampler=sampler, direction="minimize" if sign > 0.0 else "maximize", study_name="race"
    )
    for n_trials in [*stops, None]:
        optimized(study, sign, n_trials)
    last = answers(study)[-1]
    answer, earlier = sampler.recommendation(study), best_so_far(study, sign)
    own = promised(answer, sign)
    assert study.best_trial == last
    assert last.user_attrs[CERTIFICATE]["certified"] == answer.certified
    if not math.isfinite(answer.interval[0]) and answer.certificate:
        own = study.best_value  # the end of an interval that is too wide to be printed
        assert sign * own >= sign * answer.mean
    is_better = sign * own < sign * earlier
    assert study.best_value == (own if is_better else np.nextafter(earlier, -sign * math.inf))
