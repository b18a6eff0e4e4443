"""What all samplers have in common, whatever their policy; and what is particular to each."""

from __future__ import annotations

import json
import logging
import pickle
import warnings
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mfhpo import Bias, BiasContradictedWarning, Bounded, EmpiricalBernsteinRadius, Gaussian
from mfhpo.identification.choice import recommend_policy
from mfhpo.identification.lucb import FidelityExhaustedWarning
from mfhpo.knowledge.confidence import MixtureRadius, TightestRadius
from mfhpo.racing.declaration import mirrored_radius
from mfhpo_optuna import (
    Fidelity,
    IISESampler,
    MFEliminationSampler,
    MFGradSampler,
    MFLUCBSampler,
    MFSampler,
    MFTopTwoSampler,
    MFUCBSampler,
)
from tests.optuna.samplers.races import (
    ARMS,
    BEST_ARM,
    CERTIFICATE,
    CLASSES,
    PULL,
    REWARD,
    bowl,
    pulls,
    run,
    sequence,
)

optuna.logging.set_verbosity(optuna.logging.WARNING)

best_arm = pytest.mark.parametrize("make", BEST_ARM.values(), ids=BEST_ARM.keys())
reward = pytest.mark.parametrize("make", REWARD.values(), ids=REWARD.keys())
every = pytest.mark.parametrize(
    "make", (BEST_ARM | REWARD).values(), ids=(BEST_ARM | REWARD).keys()
)
every_class = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES.keys())
both_directions = pytest.mark.parametrize(
    ("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)]
)

EPOCHS = Fidelity("epochs", levels=[1, 3, 9], costs=[1, 3, 9])


def signed(sign):
    return lambda trial: bowl(trial, sign)


# For the best arm.


@both_directions
@best_arm
def test_with_nothing_declared_the_best_arm_is_certified(make, direction, sign):
    sampler = make("epochs", ARMS, epsilon=0.2, seed=0)
    study = run(sampler, signed(sign), direction=direction)
    answer = sampler.recommendation(study)
    assert answer.certifies
    assert answer.certified
    assert answer.finished
    assert answer.params == {"x": 0.0}
    assert answer.interval[0] <= answer.mean <= answer.interval[1]
    assert study.best_params == {"x": 0.0, "epochs": 9}
    assert study.best_value == answer.mean == pytest.approx(sign * 0.1 / 9, abs=0.06)
    assert study.best_trial.user_attrs[CERTIFICATE]["certified"] is True
    assert json.loads(json.dumps(answer.to_dict()))["certifies"] is True
    assert all(trial.constraints == {"mfhpo": 1.0} for trial in pulls(study))


@both_directions
@best_arm
def test_with_everything_declared_there_is_no_pilot(make, direction, sign):
    sampler = make(
        EPOCHS, ARMS, sigma=0.05, bias=[0.12, 0.05, 0.0], epsilon=0.01, delta=0.01, measure=3
    )
    study = run(sampler, signed(sign), direction=direction)
    answer = sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"x": 0.0}
    assert answer.delta == 0.01
    assert answer.epsilon == 0.01
    assert not any("estimated from" in assumption for assumption in answer.assumptions)
    assert sum(t.params["epochs"] == 9 and t.params["x"] == 0.0 for t in pulls(study)) >= 3
    assert "CERTIFIED: x=0" in str(answer)


@best_arm
def test_arms_are_drawn_from_what_the_objective_suggests(make):
    study = run(make("epochs", arms=5, epsilon=0.2, seed=0))
    values = {trial.params["x"] for trial in pulls(study)}
    assert len(values) == 5
    assert study.best_params["x"] ** 2 <= min(x**2 for x in values) + 0.2


# For the reward.


@both_directions
@reward
def test_a_budget_ends_the_study_with_the_answer_so_far(make, direction, sign):
    sampler = make("epochs", ARMS, budget=500, seed=0)
    study = run(sampler, signed(sign), direction=direction)
    answer = sampler.recommendation(study)
    assert answer.finished
    assert not answer.certifies
    assert not answer.certified
    assert 491 < answer.cost <= 500
    assert answer.params == {"x": 0.0}
    assert study.best_params["x"] == 0.0
    assert study.best_value == answer.interval[1 if sign > 0 else 0]
    assert study.best_trial.user_attrs[CERTIFICATE]["certifies"] is False
    assert "budget of 500 is spent" in answer.reason


@reward
def test_without_a_budget_the_study_goes_on_and_answers_at_any_time(make):
    sampler = make("epochs", ARMS, seed=0)
    study = run(sampler, n_trials=150)
    assert len(pulls(study)) == len(study.trials) == 150
    answer = sampler.recommendation(study)
    assert not answer.finished
    assert answer.params == {"x": 0.0}
    with pytest.raises(ValueError, match=r"[Ff]easible"):
        _ = study.best_trial
    per_arm = [sum(t.params["x"] == arm["x"] for t in pulls(study)) for arm in ARMS]
    assert per_arm[2] == max(per_arm)


@pytest.mark.parametrize("n_trials", [1, 30])
@reward
def test_the_text_promises_no_certificate(make, n_trials):
    sampler = make("epochs", ARMS, seed=0)
    text = str(sampler.recommendation(run(sampler, n_trials=n_trials)))
    assert text.startswith("BEST SO FAR: x=")
    assert "to certify" not in text
    assert "CERTIFIED" not in text
    assert "certifies nothing" in text


def test_each_reward_is_played_where_it_is_earned():
    """Per cost the best arm is played at the target; per pull at the cheapest level."""
    declared = {"sigma": 0.05, "budget": 1500, "seed": 0}
    per_cost = run(MFUCBSampler(EPOCHS, ARMS, bias=[0.1, 0.03, 0.0], **declared))
    per_pull = run(MFEliminationSampler(EPOCHS, ARMS, **declared))
    for study, level in ((per_cost, 9), (per_pull, 1)):
        paid = [t.params["epochs"] for t in pulls(study) if t.params["x"] == 0.0]
        assert sum(paid) > 0.5 * 1500
        assert sum(cost for cost in paid if cost == level) > 0.5 * sum(paid)


@both_directions
@reward
def test_a_larger_budget_shows_the_later_answer(make, direction, sign):
    study = optuna.create_study(direction=direction)
    costs = []
    for budget in (120, 1000, 2000):
        study.sampler = make("epochs", ARMS, budget=budget, seed=0)
        study.optimize(signed(sign))
        answer = study.sampler.recommendation(study)
        costs.append(answer.cost)
        assert study.best_value == answer.interval[1 if sign > 0 else 0]
        assert study.best_trial.user_attrs[CERTIFICATE]["cost"] == answer.cost
    assert costs == sorted(set(costs))


@both_directions
@reward
def test_where_nothing_is_certain_the_best_value_promises_nothing(make, direction, sign):
    sampler = make("epochs", ARMS, budget=20, seed=0)
    study = run(sampler, signed(sign), direction=direction)
    answer = sampler.recommendation(study)
    assert answer.interval == (-np.inf, np.inf)
    assert study.best_value == sign * np.inf
    assert np.isfinite(study.best_trial.user_attrs[CERTIFICATE]["mean"])
    study.sampler = make("epochs", ARMS, budget=20, seed=0)
    study.optimize(signed(sign))
    assert sum(CERTIFICATE in trial.user_attrs for trial in study.trials) == 1


# For all.


@both_directions
@every
def test_a_lucky_early_answer_gives_way_to_a_later_one(make, direction, sign):
    """Of the cheapest level alone, which flatters, nothing is certain."""

    def flattering(trial):
        x, epochs = trial.suggest_float("x", -1, 1), trial.suggest_int("epochs", 1, 9)
        noise = 0.05 * np.random.default_rng(trial.number).normal()
        return sign * (x**2 + noise - (5.0 if epochs == 1 else 0.0))

    study = optuna.create_study(direction=direction)
    for budget in (6, 1500):
        study.sampler = make("epochs", ARMS, budget=budget, seed=0)
        study.optimize(flattering)
    answer = study.sampler.recommendation(study)
    assert study.best_trial.user_attrs[CERTIFICATE]["cost"] == answer.cost
    assert sign * study.best_value > -1.0


@best_arm
def test_a_budget_that_is_too_small_for_a_certificate(make):
    sampler = make("epochs", ARMS, epsilon=0.001, budget=150, seed=0)
    study = run(sampler)
    answer = sampler.recommendation(study)
    assert answer.finished
    assert not answer.certified
    assert answer.cost <= 150
    assert "budget of 150 is spent" in answer.reason
    assert np.isfinite(study.best_value)
    assert study.best_trial.user_attrs[CERTIFICATE]["certified"] is False


@pytest.mark.parametrize("sigma", [None, 0.05, Gaussian(), "bounded"])
@every
def test_minimising_and_maximising_are_mirror_images(make, sigma):
    """Also where what is declared has a sign: the bounds of the values."""

    def study_of(sign):
        bounds = (-0.5, 2.0) if sign > 0 else (-2.0, 0.5)
        noise = Bounded(*bounds) if sigma == "bounded" else sigma
        study = optuna.create_study(
            study_name="mirror",
            sampler=make(EPOCHS, ARMS, sigma=noise, seed=0),
            direction="minimize" if sign > 0 else "maximize",
        )
        study.optimize(signed(sign), n_trials=120)
        return study

    down, up = study_of(1.0), study_of(-1.0)
    assert sequence(down) == sequence(up)
    low, high = up.sampler.recommendation(up).interval
    answer = down.sampler.recommendation(down)
    assert answer.interval == (-high, -low)


@every
def test_a_resumed_study_goes_on_as_if_nothing_had_happened(make):
    def sampler():
        return make("epochs", ARMS, budget=400, pilot_arms=3, seed=0)

    whole = run(sampler())
    study = optuna.create_study(sampler=sampler())
    for n_trials in (1, 2, 4, 13, 29, None):
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


@every
def test_one_arm_alone(make):
    sampler = make("epochs", ARMS[2:3], budget=100, seed=0)
    study = run(sampler)
    answer = sampler.recommendation(study)
    assert answer.finished
    assert answer.params == {"x": 0.0}
    assert answer.cost <= 100
    # With nobody to compare it with, a policy for the reward need not look at the target for long.
    assert study.best_value == (answer.mean if answer.certified else answer.interval[1])
    assert np.isfinite(study.best_value) or not answer.certifies
    assert study.best_params["x"] == 0.0


@every
def test_one_level_alone(make):
    sampler = make(Fidelity("epochs", levels=[9]), ARMS, budget=2000, seed=0)
    study = run(sampler)
    answer = sampler.recommendation(study)
    assert answer.finished
    assert answer.certified == answer.certifies
    assert answer.params == {"x": 0.0}
    assert study.best_params == {"x": 0.0, "epochs": 9}
    assert {trial.params["epochs"] for trial in pulls(study)} == {9}


@every
def test_a_larger_budget_goes_on_where_the_smaller_one_ended(make):
    tolerance = {"epsilon": 0.001} if make in BEST_ARM.values() else {}
    study = run(make("epochs", ARMS, budget=100, seed=0, **tolerance))
    first = sequence(study)
    answer = study.sampler.recommendation(study)
    study.sampler = make("epochs", ARMS, budget=300, seed=0, **tolerance)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study.optimize(bowl, n_trials=3000)
    assert sequence(study)[: len(first)] == first
    assert len(pulls(study)) > len(first)
    later = study.sampler.recommendation(study)
    assert answer.cost < later.cost <= 300
    newest = study.trials[-1]
    assert newest.user_attrs[CERTIFICATE]["trials"] == later.trials
    # Where nothing was certain at first, the mean of a few lucky values may be the better one.
    hidden = any("best_trial still shows" in str(warning.message) for warning in caught)
    assert hidden == (study.best_trial.number != newest.number)
    assert not hidden or np.isinf(answer.interval).any()


@every
def test_a_trial_whose_process_was_killed_is_made_up_for(make):
    """The trial stays RUNNING; another process with a lease that is over goes on without it."""

    def sampler(lease=None):
        return make("epochs", ARMS, budget=300, pilot_arms=3, lease=lease, seed=0)

    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=storage, study_name="killed", sampler=sampler())
    study.optimize(bowl, n_trials=15)
    lost = study.ask()
    lost.suggest_float("x", -1, 1)
    again = optuna.load_study(storage=storage, study_name="killed", sampler=sampler(1e-6))
    again.optimize(bowl, n_trials=3000)
    whole = run(sampler())
    kept = [trial for trial in pulls(again) if trial.number != lost.number]
    assert again.trials[lost.number].state == TrialState.RUNNING
    assert [(t.user_attrs[PULL], t.params) for t in kept] == [
        (t.user_attrs[PULL], t.params) for t in pulls(whole)
    ]
    answer = again.sampler.recommendation(again)
    supposed = [words for words in answer.conditions if "have no worker" in words]
    rest = tuple(words for words in answer.conditions if words not in supposed)
    assert replace(answer, conditions=rest) == whole.sampler.recommendation(whole)


@every
def test_threads_share_a_study(make):
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        return x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(trial.number).normal()

    sampler = make("epochs", 5, budget=400, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=600, n_jobs=4)
    assert len(study.trials) < 600
    assert {trial.state for trial in pulls(study)} == {TrialState.COMPLETE}
    answer = sampler.recommendation(study)
    assert answer.finished
    assert answer.cost <= 400 + 3 * 9
    assert answer.trials == len(pulls(study))
    arms = {}
    for trial in pulls(study):
        assert (
            arms.setdefault(trial.user_attrs[PULL]["arm"], trial.params["x"]) == trial.params["x"]
        )
    assert CERTIFICATE in study.best_trial.user_attrs


@every
def test_pulls_under_way_are_taken_into_account(make):
    """Four workers that begin together do not all evaluate the same."""
    study = optuna.create_study(sampler=make(EPOCHS, ARMS, seed=0))
    trials = [study.ask() for _ in range(4)]
    assert len({(trial.suggest_float("x", -1, 1)) for trial in trials}) > 1


@every
def test_two_study_objects_on_one_storage_share_a_race(make):
    storage = optuna.storages.InMemoryStorage()
    studies = [
        optuna.create_study(
            storage=storage,
            study_name="shared",
            load_if_exists=True,
            sampler=make("epochs", ARMS, budget=300, seed=0),
        )
        for _ in range(2)
    ]
    for _ in range(300):
        trials = [study.ask() for study in studies]
        for study, trial in zip(studies, trials, strict=True):
            study.tell(trial, bowl(trial))
        if studies[0].sampler.recommendation(studies[0]).finished:
            break
    first, second = (study.sampler.recommendation(study) for study in studies)
    assert first.finished
    assert first == second
    assert first.trials == len(pulls(studies[0]))
    assert first.cost <= 300 + 9


@every
def test_measured_costs_and_another_sampler_that_draws_the_arms(make):
    sampler = make(
        Fidelity("epochs", levels=[1, 3, 9], costs="measured"),
        5,
        arm_sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=2),
        pilot_arms=3,
        seed=0,
    )
    study = run(sampler, n_trials=60)
    answer = sampler.recommendation(study)
    assert 0.0 < answer.cost < 60.0
    assert answer.trials == len(pulls(study)) > 20
    assert len({trial.params["x"] for trial in pulls(study)}) == 5
    copy = make(sampler._fidelity, 5, pilot_arms=3, seed=0)
    assert copy.recommendation(study).cost == pytest.approx(answer.cost)


@every
def test_failures_drop_an_arm_with_one_warning(make):
    def objective(trial):
        value = bowl(trial)
        if trial.params["x"] == 0.0:
            raise optuna.TrialPruned
        return value

    sampler = make("epochs", ARMS, budget=300, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study = run(sampler, objective)
    gone = [str(w.message) for w in caught if "leaves the race" in str(w.message)]
    assert len(gone) == 1
    assert gone[0].startswith("arm 2 {'x': 0.0} leaves the race: 3 of 3 pulls")
    answer = sampler.recommendation(study)
    assert answer.params == {"x": -0.5}
    if answer.certifies:
        assert answer.not_compared == ("arm 2 {'x': 0.0}: failed 3 of 3",)


# Wrong arguments.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, ["delta", "0.0", "between 0 and 1"]),
        ({"budget": -3}, ["budget", "-3", "positive"]),
        ({"sigma": -0.5}, ["sigma", "-0.5", "at least 0"]),
        ({"max_failures": 0}, ["max_failures", "0", "at least 1"]),
        ({"pilot_arms": 1}, ["pilot_arms", "1", "at least 2"]),
        ({"lease": 0.0}, ["lease", "0.0", "positive"]),
        ({"seed": -1}, ["seed", "-1", "at least 0"]),
        ({"arms": []}, ["arms=[]", "at least one"]),
        ({"fidelity": Fidelity("epochs", levels=[1, 3]), "sigma": [1, 1, 1]}, ["sigma", "3", "2"]),
    ],
)
@every_class
def test_wrong_arguments_raise_when_the_sampler_is_made(cls, options, words):
    with pytest.raises(ValueError, match=r".") as caught:
        cls(**({"fidelity": "epochs"} | options))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": "a"}, ["sigma", "a number, one for each level", "'a'"]),
        ({"sigma": True}, ["sigma", "a number", "True"]),
        ({"budget": "3"}, ["budget", "a number", "'3'"]),
        ({"delta": "0.1"}, ["delta", "a number", "'0.1'"]),
        ({"lease": "1"}, ["lease", "a number of seconds or None", "'1'"]),
    ],
)
@every_class
def test_arguments_of_the_wrong_kind_raise_when_the_sampler_is_made(cls, options, words):
    with pytest.raises(TypeError, match=r".") as caught:
        cls(**({"fidelity": "epochs"} | options))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        (0.1, ["bias", "one number for each level", "0.1"]),
        ("0.1", ["bias", "one number for each level", "'0.1'"]),
        ([0.1, "0"], ["bias[1]", "number", "'0'"]),
    ],
)
@pytest.mark.parametrize(
    "make", [cls for cls in CLASSES.values() if cls is not MFEliminationSampler]
)
def test_bias_bounds_of_the_wrong_kind(make, bias, words):
    for arguments in (lambda: make("epochs", bias=bias), lambda: Fidelity("epochs", bias=bias)):
        with pytest.raises(TypeError, match=r".") as caught:
            arguments()
        for word in words:
            assert word in str(caught.value)


def test_a_bound_on_the_means_that_is_no_number():
    with pytest.raises(TypeError, match="best_no_better_than must be a number or None, got '1'"):
        MFLUCBSampler("epochs", explore="A", best_no_better_than="1")


@every_class
def test_a_budget_below_one_evaluation_is_warned_of_when_the_sampler_is_made(cls):
    fidelity = Fidelity("epochs", levels=[2, 9])
    with pytest.warns(UserWarning, match=r"budget=1 is less than the 2 .* epochs=2: nothing"):
        cls(fidelity, budget=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cls(fidelity, budget=2)
        cls("epochs", budget=1)  # what a trial costs is not known yet


@pytest.mark.parametrize(
    ("cls", "alternative"), [(MFLUCBSampler, "IISE"), (MFUCBSampler, "MFElimination")]
)
def test_order_bounds_where_they_do_not_help(cls, alternative):
    with pytest.raises(ValueError, match=r"every arm's own bias") as caught:
        cls("epochs", bias=Bias.order(0.1, 0.0))
    assert "Bias.max" in str(caught.value)
    assert alternative in str(caught.value)


@pytest.mark.parametrize("cls", [MFTopTwoSampler, MFGradSampler, IISESampler])
def test_bounds_given_as_numbers_are_of_the_kind_that_the_variant_names(cls):
    def bias(**options):
        sampler = cls(EPOCHS, ARMS, sigma=0.05, epsilon=0.1, **options)
        return sampler._make_policy(4, [1, 3, 9], 0, 1.0).bias

    assert bias(bias=[0.2, 0.1, 0]) == Bias.max(0.2, 0.1, 0.0)
    assert bias(bias=[0.2, 0.1, 0], variant="order") == Bias.order(0.2, 0.1, 0.0)
    assert bias(bias=Bias.order(0.2, 0.1, 0)) == Bias.order(0.2, 0.1, 0.0)
    with pytest.raises(ValueError, match=r"variant='max'.*'order'"):
        bias(bias=Bias.order(0.2, 0.1, 0), variant="max")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MFLUCBSampler("epochs", explore="D"), ["explore", "'D'"]),
        (lambda: MFLUCBSampler("epochs", ratio=1.0), ["ratio", "1.0", "0.5"]),
        (lambda: MFLUCBSampler("epochs", schedule="pulls"), ["schedule", "noise scale"]),
        (
            lambda: MFLUCBSampler("epochs", explore="A", best_no_better_than=np.inf),
            ["best_no_better_than"],
        ),
        (lambda: MFLUCBSampler("epochs", second_no_worse_than=np.nan), ["second_no_worse_than"]),
        (
            lambda: MFLUCBSampler("epochs", best_no_better_than=1.0),
            ["best_no_better_than=1.0", "no part in explore='C'", "leave it out"],
        ),
        (
            lambda: MFLUCBSampler("epochs", explore="top", second_no_worse_than=1.0),
            ["second_no_worse_than=1.0", "no part in explore='top'"],
        ),
        (lambda: MFGradSampler("epochs", stop="now"), ["stop", "'now'", "'mixture'"]),
        (lambda: MFGradSampler("epochs", learning_rate=0.0), ["learning_rate", "0.0"]),
        (lambda: MFGradSampler("epochs", max_arms=1), ["max_arms", "at least 2"]),
        (lambda: MFUCBSampler("epochs", rho=0.0), ["rho", "0.0", "try 2"]),
        (lambda: MFEliminationSampler("epochs", epsilon=-1.0), ["epsilon", "-1.0"]),
        (lambda: MFSampler("epochs", aim="fun"), ["aim", "'fun'", "best arm"]),
        (
            lambda: MFSampler("epochs", aim="reward per cost", epsilon=0.1),
            ["epsilon=0.1", "reward per cost", "leave it out"],
        ),
        (
            lambda: MFSampler("epochs", aim="reward per cost", measure=-50),
            ["measure=-50", "reward per cost", "leave it out"],
        ),
        (
            lambda: MFSampler("epochs", aim="reward per pull", measure=10),
            ["measure=10", "reward per pull", "leave it out"],
        ),
        (
            lambda: MFSampler("epochs", aim="reward per pull", bias=[0.1, 0.0]),
            ["bias=[0.1, 0.0]", "reward per pull", "leave it out"],
        ),
        (lambda: MFSampler("epochs", measure=-50), ["measure", "-50", "at least 0"]),
    ],
)
def test_wrong_arguments_of_one_sampler(make, words):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    for word in words:
        assert word in str(caught.value)


@every_class
def test_several_objectives_are_refused(cls):
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=cls("epochs"))
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=2)


# What is declared of the means, in the direction of the objective.


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_bounds_on_the_two_best_means_are_given_as_the_objective_s_values(direction, sign):
    sampler = MFLUCBSampler(
        EPOCHS,
        ARMS,
        explore="A",
        best_no_better_than=sign * -0.1,
        second_no_worse_than=sign * 0.4,
        sigma=0.05,
        bias=[0.12, 0.05, 0.0],
        epsilon=0.01,
        seed=0,
    )
    study = run(sampler, signed(sign), direction=direction)
    answer = sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"x": 0.0}
    assert not any("estimated as the race went" in words for words in answer.assumptions)


@pytest.mark.parametrize(
    ("direction", "best", "second", "policy_s"),
    [("minimize", -0.1, 0.4, (0.1, -0.4)), ("maximize", 0.9, 0.2, (0.9, 0.2))],
)
def test_bounds_on_the_two_best_means_are_mirrored_inside(direction, best, second, policy_s):
    sampler = MFLUCBSampler(
        EPOCHS, ARMS, explore="A", best_no_better_than=best, second_no_worse_than=second
    )
    sign = 1.0 if direction == "maximize" else -1.0
    policy = sampler._make_policy(4, [1, 3, 9], 0, sign)
    assert (policy._best_at_most, policy._second_at_least) == policy_s


@pytest.mark.parametrize(
    ("direction", "best", "second"), [("minimize", 0.4, -0.1), ("maximize", 0.2, 0.9)]
)
def test_bounds_on_the_two_best_means_that_contradict_the_direction(direction, best, second):
    sampler = MFLUCBSampler(
        "epochs", ARMS, explore="A", best_no_better_than=best, second_no_worse_than=second
    )
    with pytest.raises(ValueError, match=rf"second_no_worse_than={second}.*{direction[:-3]}"):
        run(sampler, n_trials=1, direction=direction)


def test_a_radius_is_mirrored_with_the_values():
    """Its first guess is where values are expected before any was seen: the middle of the range."""
    bounded = EmpiricalBernsteinRadius(0.0, 1.0)
    assert mirrored_radius(bounded).first_guess == -0.5
    assert mirrored_radius(TightestRadius((bounded, MixtureRadius(0.5)))).first_guess == -0.5
    assert [radius.first_guess for radius in mirrored_radius([bounded, bounded])] == [-0.5, -0.5]
    assert bounded.first_guess == 0.5
    assert mirrored_radius(None) is None

    def sequence_of(sign):
        radius = EmpiricalBernsteinRadius(-0.5, 2.0) if sign > 0 else None
        radius = radius or EmpiricalBernsteinRadius(-2.0, 0.5)
        sampler = IISESampler(
            EPOCHS, ARMS, radius=radius, sigma=1.0, epsilon=0.3, bias=[0.1, 0.1, 0]
        )
        return sequence(run(sampler, signed(sign), 200, "minimize" if sign > 0 else "maximize"))

    assert sequence_of(1.0) == sequence_of(-1.0)


# The choice.


def test_the_choice_is_known_with_the_levels():
    sampler = MFSampler("epochs", ARMS, seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match="no policy is chosen yet"):
        sampler.choice(study)
    study.optimize(bowl, n_trials=1)
    choice = sampler.choice(study)
    assert isinstance(sampler._of(study).policy, choice.policy)
    assert choice.reason
    declared = MFSampler(EPOCHS, ARMS, aim="reward per pull")
    assert declared.choice(optuna.create_study()).policy.__name__ == "MFElimination"


def test_the_choice_is_made_once_for_a_race(monkeypatch):
    """What is told of it, and what runs, cannot differ."""
    made = []

    def counted(problem, aim):
        made.append(recommend_policy(problem, aim))
        return made[-1]

    sampler = MFSampler(EPOCHS, ARMS, seed=0)
    monkeypatch.setattr("mfhpo_optuna.samplers.choice.recommend_policy", counted)
    study = run(sampler, n_trials=5)
    assert [sampler.choice(study)] == made
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy.choice(study) == made[0]


def test_arguments_are_tried_in_both_directions():
    tried = []

    class Sampler(MFUCBSampler):
        def _policy_for(self, problem, sign, options):
            tried.append((sign, problem.noise))
            return super()._policy_for(problem, sign, options)

    Sampler(EPOCHS, ARMS, sigma=Bounded(0.0, 1.0))
    assert tried == [(1.0, Bounded(0.0, 1.0)), (-1.0, Bounded(-1.0, 0.0))]


@pytest.mark.parametrize("make", [REWARD["elimination"], REWARD["choice-per-pull"]])
def test_losses_per_pull_are_warned_of_once(make):
    def messages(direction):
        sampler = make("epochs", ARMS, seed=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                study = run(sampler, n_trials=3, direction=direction)
                sampler.recommendation(study)
        return [str(w.message) for w in caught if "study minimises" in str(w.message)]

    [message] = messages("minimize")
    assert "as many trials as the budget allows" in message
    assert messages("maximize") == []


def test_the_choice_is_logged_once_with_its_reason():
    lines = []
    listener = logging.Handler()
    listener.emit = lambda record: lines.append(record.getMessage())
    logger = optuna.logging.get_logger("optuna.mfhpo_optuna.samplers.choice")
    logger.addHandler(listener)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        sampler = MFSampler("epochs", ARMS, aim="reward per cost", seed=0)
        study = run(sampler, n_trials=5)
        sampler.recommendation(study)
        sampler.choice(study)
        sampler.replay(study, lambda race: lambda number, pull, observation: None)
    finally:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        logger.removeHandler(listener)
    [line] = lines
    assert line.startswith("MFUCB is chosen for study")
    assert sampler.choice(study).reason in line


def test_the_choice_takes_the_arguments_of_its_policy():
    sampler = MFSampler(EPOCHS, ARMS, aim="reward per pull", epsilon=0.25, sigma=0.05)
    assert sampler._make_policy(4, [1, 3, 9], 0, 1.0).epsilon == 0.25
    sampler = MFSampler(EPOCHS, ARMS, epsilon=0.25, sigma=0.05, bias=[0.1, 0.1, 0.0])
    assert sampler._make_policy(4, [1, 3, 9], 0, 1.0).epsilon == 0.25


# Warnings of policies.


def warned(category, sampler, objective, n_trials):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study = run(sampler, objective, n_trials)
        for _ in range(3):
            sampler.recommendation(study)
        sampler.replay(study, lambda race: lambda number, pull, observation: None)
    return [str(w.message) for w in caught if issubclass(w.category, category)]


def test_a_level_that_cannot_decide_is_warned_of_once():
    sampler = MFLUCBSampler(
        Fidelity("epochs", levels=[1, 9]),
        [{"x": 0.0}, {"x": 0.3}],
        explore="A",
        sigma=0.05,
        bias=[0.12, 0.0],
        epsilon=0.0,
        seed=0,
    )
    [message] = warned(FidelityExhaustedWarning, sampler, bowl, 3000)
    assert message.startswith("epochs=1 is left for the next dearer one")


@pytest.mark.parametrize(
    "make",
    [MFLUCBSampler, MFTopTwoSampler, MFGradSampler, MFSampler, IISESampler],
)
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
    messages = warned(BiasContradictedWarning, sampler, objective, 400)
    assert messages
    assert len(messages) == len(set(messages))
    assert messages[0].startswith("arm ")
    assert "{'x': " in messages[0]
    assert "epochs=1 and epochs=9 differ by" in messages[0]


def test_what_is_not_given_is_as_with_the_chosen_sampler() -> None:
    # None is one standard deviation of the noise for epsilon, and 10 for measure.
    answers = []
    for make in (MFSampler, MFTopTwoSampler):
        sampler = make("epochs", [{"x": x} for x in (-0.9, 0.0, 0.6)], sigma=0.05, seed=0)
        study = optuna.create_study(sampler=sampler)
        study.optimize(bowl, n_trials=2000)
        answers.append(sampler.recommendation(study).to_dict())
    assert answers[0] == answers[1]
    assert answers[0]["epsilon"] == 0.05
