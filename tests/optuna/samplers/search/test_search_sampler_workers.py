from contextlib import contextmanager

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo.search import Replicate
from mfhpo_optuna import Fidelity, SearchSampler
from mfhpo_optuna.study.trials import under_way
from tests.optuna.samplers.races import PULL, configurations, pulls, valley, worker

SHORT = Fidelity("epochs", levels=[1, 3, 9])


def test_a_failed_configuration_stays_the_same_after_a_restart():
    failed = set()

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        y = trial.suggest_float("y", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        arm = trial.user_attrs[PULL]["arm"]
        if arm >= 12 and arm not in failed:  # the model has proposed it
            failed.add(arm)
            raise LookupError
        return (x - 0.3) ** 2 + y**2 + 0.2 / epochs

    study = optuna.create_study(sampler=SearchSampler(SHORT, seed=0))
    for _ in range(30):
        study.optimize(objective, n_trials=1, catch=(LookupError,))
        study.sampler = SearchSampler(SHORT, seed=0)  # a new process
    configurations(study)
    again = [t for t in pulls(study) if t.state == TrialState.COMPLETE]
    assert failed & {t.user_attrs[PULL]["arm"] for t in again}, "none was evaluated again"


def workers(storage, n=2, **options):
    return [worker(storage, SearchSampler(SHORT, **{"seed": 0} | options)) for _ in range(n)]


@pytest.mark.parametrize(
    ("make", "told", "known"),
    [
        (lambda: None, 0, {}),
        (lambda: None, 20, {}),
        (lambda: RandomSampler(seed=1), 20, {}),
        (lambda: None, 0, {"earlier": [{"x": 0.5}, {"x": -0.5}]}),
        (lambda: RandomSampler(seed=1), 2, {"earlier": [{"x": 0.5}, {"x": -0.5}]}),
        (lambda: None, 2, {"beliefs": {"x": 0.5}}),
    ],
)
def test_two_that_begin_an_arm_at_once_begin_two(make, told, known, monkeypatch):
    storage = InMemoryStorage()
    one, two = workers(storage, proposer=make(), **known)
    one.optimize(valley, n_trials=told)
    readings = [two.get_trials(deepcopy=False)]
    first = one.ask()
    now = under_way._trials_in_place

    @contextmanager
    def as_it_was(study):
        if study is two and readings:
            yield readings.pop().__getitem__
        else:
            with now(study) as trial_at:
                yield trial_at

    monkeypatch.setattr(under_way, "_trials_in_place", as_it_was)
    trial = two.ask()
    assert not readings
    for study, asked in ((one, first), (two, trial)):
        study.tell(asked, valley(asked))
    configurations(one)
    for study in (one, two, *workers(storage, 1, proposer=make(), **known)):
        answer = study.sampler.recommendation(study)
        assert answer.trials == told + 2
        assert answer.earlier == ("earlier" in known) * (1 + told // 2)


def test_of_two_shortlists_that_of_the_first_trial_holds():
    storage = InMemoryStorage()
    options = {"trials": 60, "certify_share": 0.5, "top": 2, "sigma": 0.05}
    one, two = workers(storage, **options)
    while not isinstance(one.sampler.known(one).policy.ask()[0], Replicate):
        one.optimize(valley, n_trials=1)
    two.sampler.known(two)
    first = one.ask()
    assert first.user_attrs[PULL]["shortlist"]
    holds = tuple(first.user_attrs[PULL]["shortlist"])
    other = holds[::-1]  # what the second one would have drawn up
    second = two.ask()
    two._storage._get_trial(second._trial_id).user_attrs[PULL]["shortlist"] = list(other)
    fresh_one, fresh_two = workers(storage, **options)
    # The second one ends first, and each reads of it in another order.
    two.tell(second, valley(second))
    fresh_two.sampler.recommendation(fresh_two)
    one.tell(first, valley(first))
    for study in (one, two, fresh_one, fresh_two, *workers(storage, 1, **options)):
        race = study.sampler.known(study).policy
        assert race.shortlist == holds
        assert sum(r.evaluations for r in race.certificate().candidates) == 2


@pytest.mark.filterwarnings("ignore:trial .* has nothing to evaluate")
def test_replicates_count_in_the_order_in_which_they_were_begun():
    """Eight workers, and good values come quickly: the first to arrive are no sample."""
    sampler = SearchSampler(trials=60, certify_share=0.7, top=2, epsilon=1e-9, seed=0)
    study = optuna.create_study(sampler=sampler)
    begun, params = {}, {}
    running = []

    def begin():
        trial = study.ask()
        if PULL not in trial.user_attrs:
            study.tell(trial, state=TrialState.FAIL)
            return
        value = trial.suggest_float("x", 0, 1) + np.random.default_rng(trial.number).normal()
        running.append((value, trial))
        tag = trial.user_attrs[PULL]
        if "shortlist" in tag:
            begun.setdefault(tag["arm"], []).append(value)
            params[tag["arm"]] = trial.params

    while len(study.trials) < 60 or running:
        while len(running) < 8 and len(study.trials) < 60:
            begin()
        value, trial = min(running, key=lambda entry: entry[0])
        running.remove((value, trial))
        study.tell(trial, value)
    told = {}
    for result in sampler.known(study).experiment.history():
        if isinstance(result.pull, Replicate):
            told.setdefault(result.pull.arm, []).append(-result.observation.value)
    assert told == begun
    shown = sampler.recommendation(study).certificate
    for arm, values in begun.items():
        [candidate] = [one for one in shown.candidates if one.params == params[arm]]
        assert candidate.evaluations >= 5
        assert candidate.mean == pytest.approx(np.mean(values[: candidate.evaluations]))
