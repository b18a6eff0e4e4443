import json
import pickle
import warnings

import numpy as np
import optuna
import pytest

from mfhpo import BiasContradictedWarning, Bounded
from mfhpo_optuna import (
    Fidelity,
    IISESampler,
    MFEliminationSampler,
    MFLUCBSampler,
    MFSampler,
    MFTopTwoSampler,
    MFUCBSampler,
    SearchSampler,
)
from tests.optuna.samplers.races import (
    ARMS,
    BEST_ARM,
    CERTIFICATE,
    REWARD,
    answers_so_far,
    bowl,
    pulls,
    run,
    sequence,
    shown,
)

# A loss that is minimised by a policy for rewards: said once, tested below.
pytestmark = pytest.mark.filterwarnings("ignore:the reward per pull is maximised")

best_arm = pytest.mark.parametrize("make", BEST_ARM.values(), ids=BEST_ARM.keys())
reward = pytest.mark.parametrize("make", REWARD.values(), ids=REWARD.keys())
two = pytest.mark.parametrize("make", [IISESampler, MFUCBSampler])

EPOCHS = Fidelity("epochs", levels=[1, 3, 9], costs=[1, 3, 9])


def signed(sign):
    return lambda trial: bowl(trial, sign)


@best_arm
@pytest.mark.parametrize(
    "declared", [{}, {"sigma": 0.05, "bias": [0.12, 0.05, 0.0], "delta": 0.01}], ids=["no", "yes"]
)
def test_the_best_arm_is_certified(make, declared):
    sampler = make(EPOCHS, ARMS, epsilon=0.1, measure=3, seed=0, **declared)
    study = run(sampler)
    answer = sampler.recommendation(study)
    assert answer.certifies
    assert answer.certified
    assert answer.finished
    assert (answer.params, answer.epsilon) == ({"x": 0.0}, 0.1)
    assert answer.delta == declared.get("delta", 0.05)
    assert answer.interval[0] <= answer.mean <= answer.interval[1]
    assert not declared or not any("estimated from" in words for words in answer.assumptions)
    assert study.best_params == {"x": 0.0, "epochs": 9}
    assert study.best_value == answer.mean == pytest.approx(0.1 / 9, abs=0.06)
    assert study.best_trial.user_attrs[CERTIFICATE]["certified"] is True
    assert json.loads(json.dumps(answer.to_dict()))["certifies"] is True
    assert all(trial.constraints == {"mfhpo": 1.0} for trial in pulls(study))
    assert sum(t.params == study.best_params for t in pulls(study)) >= 3
    assert "CERTIFIED: x=0" in str(answer)


@reward
def test_a_budget_ends_the_study_with_the_answer_so_far(make):
    sampler = make("epochs", ARMS, budget=300, seed=0)
    study = run(sampler)
    answer = sampler.recommendation(study)
    assert answer.finished
    assert not answer.certifies
    assert not answer.certified
    assert 291 < answer.cost <= 300
    assert answer.params == {"x": 0.0}
    assert study.best_params["x"] == 0.0
    assert study.best_value == shown(study, answer.interval[1])
    assert study.best_trial.user_attrs[CERTIFICATE]["certifies"] is False
    assert "budget of 300 is spent" in answer.reason


@reward
def test_without_a_budget_the_study_goes_on_and_answers_at_any_time(make):
    sampler = make("epochs", ARMS, seed=0)
    study = run(sampler, n_trials=150)
    assert len(pulls(study)) == len(study.trials) - len(answers_so_far(study)) == 150
    answer = sampler.recommendation(study)
    assert not answer.finished
    assert answer.params == {"x": 0.0}
    assert study.best_trial == answers_so_far(study)[-1]
    assert study.best_params["x"] == 0.0
    per_arm = [sum(t.params["x"] == arm["x"] for t in pulls(study)) for arm in ARMS]
    assert per_arm[2] == max(per_arm)


MIRRORED = {
    "estimated": {},
    "bounded": {"sigma": Bounded(-0.5, 2.0)},
    "index": {"sigma": 0.05, "bias": [0.12, 0.05, 0.0], "explore": "A"},
}
MIRROR_IMAGES = {
    "bounded": {"sigma": Bounded(-2.0, 0.5)},
}


@pytest.mark.parametrize(
    ("make", "declared"),
    [(make, "estimated") for make in (BEST_ARM | REWARD).values()]
    + [(make, "bounded") for make in (IISESampler, MFUCBSampler)]
    + [(MFLUCBSampler, "index")],
)
def test_minimising_and_maximising_are_mirror_images(make, declared):
    options = MIRRORED[declared]
    mirrored = options | MIRROR_IMAGES.get(declared, {})

    def study_of(sign, options, direction):
        study = optuna.create_study(
            study_name="mirror", sampler=make(EPOCHS, ARMS, seed=0, **options), direction=direction
        )
        study.optimize(signed(sign), n_trials=80)
        return study

    down, up = study_of(1.0, options, "minimize"), study_of(-1.0, mirrored, "maximize")
    assert sequence(down) == sequence(up)
    low, high = up.sampler.recommendation(up).interval
    assert down.sampler.recommendation(down).interval == (-high, -low)


@pytest.mark.parametrize("make", [IISESampler, MFLUCBSampler, MFUCBSampler])
def test_a_resumed_study_goes_on_as_if_nothing_had_happened(make):
    def sampler():
        return make("epochs", ARMS, budget=250, pilot_arms=3, seed=0)

    whole = run(sampler())
    study = optuna.create_study(sampler=sampler())
    for n_trials in (1, 17, None):
        study.sampler = sampler()  # a new process knows nothing but the trials
        study.optimize(bowl, n_trials=n_trials)
    assert sequence(study) == sequence(whole)
    assert study.best_trial.params == whole.best_trial.params
    assert study.best_value == whole.best_value
    answer = study.sampler.recommendation(study)
    assert answer == whole.sampler.recommendation(whole)
    assert sampler().recommendation(study) == answer
    copy = pickle.loads(pickle.dumps(study.sampler))
    assert copy.recommendation(study) == answer


@two
def test_a_larger_budget_goes_on_where_the_smaller_one_ended(make):
    tolerance = {"epsilon": 0.001} if make in BEST_ARM.values() else {}
    study = run(make("epochs", ARMS, budget=100, seed=0, **tolerance))
    first = sequence(study)
    answer = study.sampler.recommendation(study)
    study.sampler = make("epochs", ARMS, budget=300, seed=0, **tolerance)
    study.optimize(bowl, n_trials=3000)
    assert sequence(study)[: len(first)] == first
    assert len(pulls(study)) > len(first)
    later = study.sampler.recommendation(study)
    assert answer.cost < later.cost <= 300
    assert study.best_trial == study.trials[-1]
    assert study.best_trial.user_attrs[CERTIFICATE]["trials"] == later.trials


@pytest.mark.parametrize(
    ("sampler", "most"),
    [(IISESampler("epochs", ARMS, seed=0), 12), (SearchSampler("epochs", budget=60, seed=0), 30)],
    ids=["race", "search"],
)
def test_a_study_ends_whose_every_trial_fails_before_it_asks_for_the_fidelity(sampler, most):
    def objective(trial):
        trial.suggest_float("x", -1, 1)
        raise ArithmeticError

    with pytest.warns(UserWarning, match="failed before any asked for 'epochs'"):
        study = run(sampler, objective, catch=(ArithmeticError,))
    assert len(study.trials) == most


@best_arm
def test_a_bias_bound_that_is_contradicted_is_warned_of_in_the_user_s_terms(make):
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        noise = 0.05 * np.random.default_rng(trial.number).normal()
        return x + (1.0 if epochs == 1 else 0.0) + noise

    sampler = make(
        Fidelity("epochs", levels=[1, 9]),
        [{"x": 0.0}, {"x": 0.3}, {"x": 0.5}],
        sigma=0.05,
        bias=[0.02, 0.0],
        epsilon=0.01,
        seed=0,
    )
    with pytest.warns(BiasContradictedWarning) as caught:
        study = run(sampler, objective, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # they are not said again
        sampler.recommendation(study)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == len(set(messages))
    assert messages[0].startswith("candidate ")
    assert "{'x': " in messages[0]
    assert "epochs=1 and epochs=9 differ by" in messages[0]


@pytest.mark.parametrize(
    ("aim", "make", "options"),
    [
        ("best arm", MFTopTwoSampler, {"sigma": 0.05}),
        ("reward per cost", MFUCBSampler, {"budget": 200}),
        ("reward per pull", MFEliminationSampler, {"budget": 200, "epsilon": 0.25}),
    ],
)
def test_the_chosen_policy_runs_as_with_its_own_sampler(aim, make, options):
    # What is not given, too: None is one deviation of the noise for epsilon, 10 for measure.
    answers = []
    for sampler in (
        MFSampler("epochs", ARMS, aim=aim, seed=0, **options),
        make("epochs", ARMS, seed=0, **options),
    ):
        answers.append(sampler.recommendation(run(sampler)).to_dict())
    assert answers[0] == answers[1]
    assert answers[0]["epsilon"] == options.get("epsilon", options.get("sigma", 0.0))
