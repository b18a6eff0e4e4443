"""The best trial before the race is over; see `mfhpo_optuna.samplers.answer` for the rule."""

import numpy as np
import optuna
import pytest
from optuna.samplers import TPESampler
from optuna.trial import create_trial

from mfhpo_optuna import (
    Fidelity,
    IISESampler,
    MFSampler,
    MFTopTwoSampler,
    MFUCBSampler,
    SearchSampler,
)
from mfhpo_optuna.samplers import answer as answering
from tests.optuna.samplers.races import (
    ARMS,
    CERTIFICATE,
    SO_FAR,
    answers,
    answers_so_far,
    bowl,
    noise,
    pulls,
    run,
    sequence,
)
from tests.optuna.workers import storage_at

EPOCHS = Fidelity("epochs", levels=[1, 3, 9])
SAMPLERS = {
    "choice": lambda: MFSampler(EPOCHS, 8, seed=0),
    "search": lambda: SearchSampler(EPOCHS, seed=0),
    "search by TPE": lambda: SearchSampler(EPOCHS, proposer=TPESampler(seed=0), seed=0),
    "race": lambda: IISESampler(EPOCHS, 8, seed=0),
    "reward": lambda: MFUCBSampler(EPOCHS, 8, seed=0),
}
some = pytest.mark.parametrize("name", ["choice", "search", "search by TPE"])
both_directions = pytest.mark.parametrize(
    ("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)]
)


def truth(params, sign=1.0):
    return sign * (params["x"] ** 2 + 0.1 / params["epochs"])


def check(study, sign=1.0):
    """That the best trial is the newest answer, promises too little, and is not certified."""
    best = study.best_trial
    assert best == answers_so_far(study)[-1]
    assert best.user_attrs[CERTIFICATE]["certified"] is False
    assert study.best_params == best.params
    assert study.best_value == best.value
    assert sign * best.value >= sign * truth(best.params, sign), "it flatters"
    return best


@both_directions
@some
def test_there_is_a_best_trial_when_trials_are_used_up(name, direction, sign):
    study = optuna.create_study(sampler=SAMPLERS[name](), direction=direction)
    study.optimize(lambda trial: bowl(trial, sign), n_trials=20)
    assert len(pulls(study)) == 20
    best = check(study, sign)
    answer = study.sampler.recommendation(study)
    assert best.params == {**answer.params, "epochs": 9}
    assert best.user_attrs[CERTIFICATE]["arm"] == answer.arm
    assert best.user_attrs[CERTIFICATE]["finished"] is False
    assert 1 <= best.user_attrs[SO_FAR] <= 20


@pytest.mark.parametrize("fidelity", [None, EPOCHS])
def test_there_is_one_from_the_first_value_at_the_target_on(fidelity):
    seen = []

    def look(study, trial):
        at_target = fidelity is None or trial.params["epochs"] == 9
        if not seen and not at_target:
            with pytest.raises(ValueError, match=r"[Ff]easible"):
                _ = study.best_trial
            return
        seen.append(study.best_value)
        if len(seen) == 1:
            assert study.best_params == trial.params
            assert study.best_value == np.inf  # of one value, nobody knows how lucky it is

    def objective(trial):
        return bowl(trial) if fidelity else trial.suggest_float("x", -1, 1) ** 2 + noise(trial)

    study = optuna.create_study(sampler=SearchSampler(fidelity, seed=0))
    study.optimize(objective, n_trials=40, callbacks=[look])
    assert len(seen) > 10
    assert seen == sorted(seen, reverse=True)
    assert np.isfinite(seen[-1])


@pytest.mark.parametrize("file", ["race.db", "race.log"])
def test_whoever_loads_the_study_sees_the_same_best_trial(tmp_path, file):
    path = str(tmp_path / file)
    study = run(SAMPLERS["choice"](), n_trials=15, storage=storage_at(path), study_name="race")
    best = check(study)
    loaded = optuna.load_study(study_name="race", storage=storage_at(path))
    assert loaded.best_trial == best
    loaded.sampler = SAMPLERS["choice"]()
    loaded.optimize(bowl, n_trials=15)
    assert check(loaded).number > best.number


@pytest.mark.parametrize(("known_to_the_other", "stays"), [(100, True), (8, False)])
def test_a_worker_that_knows_less_adds_no_answer(known_to_the_other, stays):
    study = optuna.create_study(sampler=IISESampler(EPOCHS, ARMS, seed=0))
    study.optimize(bowl, n_trials=8)
    leader = check(study)
    content = {"arm": 3, "certified": False}
    study.add_trial(
        create_trial(
            value=leader.value - 1e-6, user_attrs={CERTIFICATE: content, SO_FAR: known_to_the_other}
        )
    )
    other = study.best_trial
    assert leader.user_attrs[CERTIFICATE]["arm"] != 3
    study.optimize(bowl, n_trials=1)
    assert (study.best_trial == other) == stays


def jumping(trial, sign=1.0):
    """The first value of the worst configuration is a lucky one."""
    x = trial.suggest_float("x", -1, 1)
    trial.suggest_int("epochs", 9, 9)
    lucky = x == -0.9 and not any(t.params.get("x") == x for t in pulls(trial.study)[:-1])
    return sign * (x**2 + noise(trial) - 1.5 * lucky)


@both_directions
@pytest.mark.parametrize("make", [IISESampler, MFTopTwoSampler])
def test_the_newest_answer_takes_the_place_of_a_wrong_one(make, direction, sign):
    leaders = []
    study = optuna.create_study(
        direction=direction, sampler=make("epochs", ARMS, epsilon=0.2, measure=3, seed=0)
    )
    study.optimize(
        lambda trial: jumping(trial, sign),
        n_trials=1000,
        callbacks=[lambda study, trial: leaders.append(study.best_params["x"])],
    )
    assert -0.9 in leaders, "the case shows nothing"
    assert leaders[-1] == 0.0
    (final,) = answers(study)
    assert study.best_trial == final
    assert final.user_attrs[CERTIFICATE]["certified"]
    assert study.best_value == study.sampler.recommendation(study).mean


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_answers_so_far_change_no_choice(make, monkeypatch):
    def resumed():
        study = optuna.create_study(study_name="race", sampler=make())
        for n_trials in (7, 23, 30):
            study.optimize(bowl, n_trials=n_trials)
            if not isinstance(getattr(study.sampler, "_proposer", None), TPESampler):
                study.sampler = make()
        return study

    with_answers = resumed()
    monkeypatch.setattr(answering, "add_so_far", lambda *_: None)
    without = resumed()
    assert len(answers_so_far(with_answers)) > len(answers_so_far(without)) == 0
    assert sequence(with_answers) == sequence(without)
    one, other = (s.sampler.recommendation(s).to_dict() for s in (with_answers, without))
    assert one == other
