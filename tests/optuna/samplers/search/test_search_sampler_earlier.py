"""Studies that begin with the best of earlier ones, and with what their user believes in."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from mfhpo.search import EarlierResults
from mfhpo_optuna import Fidelity, SearchSampler
from mfhpo_optuna.arguments import from_json
from tests.optuna.samplers.races import PULL, worker

EPOCHS = Fidelity("epochs", levels=[1, 3, 9])


def study_of(values, direction="minimize", name="x", high=2.0, **also):
    """A study whose trials have these values of x and of the objective."""
    study = optuna.create_study(direction=direction, study_name=f"earlier {direction}")
    for place, value in values.items():
        params = {name: place, **{key: of[0] for key, of in also.items()}}
        distributions = {name: FloatDistribution(-high, high)}
        distributions |= {key: of[1] for key, of in also.items()}
        study.add_trial(create_trial(params=params, distributions=distributions, value=value))
    return study


def objective(trial):
    x, rate = trial.suggest_float("x", -1, 1), trial.suggest_float("rate", 1e-4, 1, log=True)
    kind, epochs = trial.suggest_categorical("kind", ["a", "b"]), trial.suggest_int("epochs", 1, 9)
    return (x - 0.3) ** 2 + 0.01 * rate + (kind == "b") + 0.1 / epochs


def tried(sampler, n=8, **study):
    """Return the first trials of so many configurations, and the study."""
    made = optuna.create_study(sampler=sampler, **study)
    made.optimize(objective, n_trials=n)
    trials = [trial for trial in made.trials if PULL in trial.user_attrs]
    firsts = {trial.user_attrs[PULL]["arm"]: trial for trial in reversed(trials)}
    return [firsts[arm] for arm in sorted(firsts)], made


def origin(trial):
    return trial.user_attrs[PULL].get("origin", "chosen")


def test_the_best_of_studies_tables_and_configurations_take_turns_with_random_ones():
    pruned = create_trial(state=TrialState.PRUNED)
    minimised = study_of({0.5: 0.1, 0.9: 0.2, 1.5: 0.0})
    minimised.add_trial(pruned)
    rows = [{"x": 0.8, "kind": "b", "acc": 0.7}, {"x": 0.1, "kind": "c", "acc": 0.9}]
    table = EarlierResults(rows, value="acc", direction="maximize")
    sources = [minimised, study_of({-0.5: 1.0, -0.6: 2.0}, "maximize"), table, {"rate": 0.01}]
    trials, study = tried(SearchSampler(EPOCHS, budget=900, seed=0, earlier=sources), 9)
    assert [origin(trial) for trial in trials] == [*["earlier", "chosen"] * 4, "earlier"]
    params = [trial.params for trial in trials[::2]]
    assert -1 <= params[0]["x"] <= 1, "1.5 is outside and drawn"
    assert [params[place]["x"] for place in (1, 2, 4)] == [-0.6, 0.1, 0.5]
    assert params[2]["kind"] in ("a", "b"), "there is no choice 'c'"
    assert params[3]["rate"] == 0.01
    answer = study.sampler.recommendation(study)
    assert answer.earlier == 4, "of the first nothing is left"
    assert "4 of the first came from earlier results" in str(answer)


def test_random_configurations_are_as_without():
    trials, _ = tried(SearchSampler(EPOCHS, budget=900, seed=0, earlier=[{"x": 0.5}]))
    plain, _ = tried(SearchSampler(EPOCHS, budget=900, seed=0))
    assert [trial.params for trial in trials[1:]] == [trial.params for trial in plain[1:]]
    assert trials[0].params == plain[0].params | {"x": 0.5}


def test_a_study_of_our_own_counts_at_its_target():
    def values(trial):
        x, epochs = trial.suggest_float("x", -2, 2), trial.suggest_int("epochs", 1, 9)
        return x**2 if epochs == 9 else -100 - x

    earlier = optuna.create_study(sampler=SearchSampler(EPOCHS, budget=300, seed=1))
    earlier.optimize(values, n_trials=60)
    trials, _ = tried(SearchSampler(EPOCHS, budget=900, seed=0, earlier=[earlier]), 1)
    at_target = [t for t in earlier.trials if t.params.get("epochs") == 9]
    assert abs(trials[0].params["x"]) == min(abs(trial.params["x"]) for trial in at_target)
    assert trials[0].params["epochs"] == 1, "the fidelity is the search's own"


def test_a_study_that_is_of_no_use_says_why():
    two = optuna.create_study(directions=["minimize", "maximize"], study_name="two")
    with pytest.raises(ValueError, match=r"results must have a row .*value of study 'two'"):
        SearchSampler(earlier=[two])
    empty = study_of({})
    empty.add_trial(create_trial(state=TrialState.FAIL))
    with pytest.raises(ValueError, match=r"results must have a row .*value of study 'earlier"):
        SearchSampler(earlier=[empty])


def test_names_that_the_objective_does_not_ask_for_are_told_once():
    sampler = SearchSampler(EPOCHS, budget=900, seed=0, earlier=[study_of({0.5: 1.0}, name="rte")])
    with pytest.warns(UserWarning, match=r"earlier or beliefs have 'rte', which .* mean 'rate'"):
        _, study = tried(sampler, 3)
    assert study.sampler.recommendation(study).earlier == 0


def test_several_workers_and_a_restart_go_through_them_once(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    earlier = study_of({0.5: 1.0, 0.6: 2.0, 0.7: 3.0})

    def sampler():
        return SearchSampler(EPOCHS, budget=900, seed=0, earlier=[earlier])

    studies = [worker(storage, sampler()) for _ in range(2)]
    under_way = [(study, study.ask()) for study in studies]
    for study, trial in under_way:
        study.tell(trial, objective(trial))
    for _ in range(3):
        study = worker(storage, sampler())  # a new process
        study.optimize(objective, n_trials=1)
    trials = study.trials[:5]
    assert [origin(trial) for trial in trials] == ["earlier", "chosen"] * 2 + ["earlier"]
    assert [trial.params["x"] for trial in trials[::2]] == [0.5, 0.6, 0.7]
    noted = from_json(study.user_attrs["mfhpo:sampler"]["arguments"])
    assert noted["earlier"] == [{"x": 0.5}, {"x": 0.6}, {"x": 0.7}]
    assert SearchSampler(**noted)


def test_beliefs_are_drawn_around():
    beliefs = {"rate": 1e-2, "kind": "b", "x": (0.5, 0.25)}
    near, far = [], []
    for seed in range(12):
        trials, _ = tried(SearchSampler(EPOCHS, budget=900, seed=seed, beliefs=beliefs))
        assert [origin(trial) for trial in trials] == ["belief", "chosen"] * 4
        near += [trial.params for trial in trials[::2]]
        far += [trial.params for trial in trials[1::2]]
    assert {one["kind"] for one in near} == {"b"}
    assert {one["kind"] for one in far} == {"a", "b"}
    assert all(1e-4 <= one["rate"] <= 0.3 for one in near)
    assert max(one["rate"] for one in far) > 0.3
    assert len({one["rate"] for one in near}) == len(near)
    assert all(-0.3 < one["x"] <= 1 for one in near[::2])


def test_a_centre_outside_is_told_when_the_range_is_known():
    study = optuna.create_study(sampler=SearchSampler(EPOCHS, beliefs={"rate": 7.0}))
    with pytest.raises(ValueError, match=r"beliefs\['rate'\] must be a value of .* got 7.0"):
        study.optimize(objective, n_trials=1)
