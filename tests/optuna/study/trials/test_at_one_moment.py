"""Workers that choose, end and conclude at the same moment, and what is enqueued by mistake."""

import numpy as np
import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import Fidelity, IISESampler, MFSampler, RCUCBSampler, SearchSampler
from mfhpo_optuna.study.study_experiment import StudyExperiment
from tests.optuna.samplers.races import ARMS, PULL, worker

MEANS = [0.0, 0.1, 0.1, 0.1]
FOUR = [{"x": float(x)} for x in range(4)]


class SlowStorage(InMemoryStorage):
    """Calls something before the end of one trial is stored."""

    victim, meanwhile = None, None

    def set_trial_state_values(self, trial_id, state, values=None):
        if trial_id == self.victim and state.is_finished():
            self.victim = None
            self.meanwhile()
        return super().set_trial_state_values(trial_id, state, values)


def test_a_certificate_stays_when_the_end_of_an_earlier_trial_is_stored_later():
    """By the later end alone, the race would not be over when the first worker concluded."""
    fidelity = Fidelity("epochs", levels=[1, 3, 9])
    storage, rng = SlowStorage(), np.random.default_rng(57)
    optuna.create_study(storage=storage, study_name="s", direction="maximize")

    def join():
        sampler = IISESampler(fidelity, FOUR, epsilon=0.09, delta=0.3, seed=57)
        return optuna.load_study(storage=storage, study_name="s", sampler=sampler)

    def value_of(trial):
        x, epochs = trial.suggest_float("x", 0, 3), trial.suggest_int("epochs", 1, 9)
        return MEANS[int(x)] + 0.1 * rng.normal() - 0.3 / epochs

    def run(study, most):
        for _ in range(most):
            trial = study.ask()
            try:
                study.tell(trial, value_of(trial))
            except optuna.TrialPruned:
                study.tell(trial, state=TrialState.PRUNED)
            if study.sampler.recommendation(study).finished:
                return

    one, other, said = join(), join(), []

    def conclude():
        run(one, 400)
        said.append(one.sampler.recommendation(one))

    run(one, 50 + 3 * (57 % 12))
    late = other.ask()
    value = value_of(late)
    storage.victim, storage.meanwhile = late._trial_id, conclude
    other.tell(late, value)
    assert said[0].certified
    for study in (one, other, join()):
        answer = study.sampler.recommendation(study)
        assert (answer.certified, answer.finished, answer.params) == (True, True, said[0].params)


def test_of_equal_claims_the_one_that_was_written_last_moves(monkeypatch):
    """A worker claims, without a look, what another one has claimed since it last looked.

    Its trial began earlier, but the other one looks no more.
    """
    storage = InMemoryStorage()

    def make():
        sampler = IISESampler("epochs", ARMS, seed=0, replicate="split")
        return worker(storage, sampler)

    def suggest(trial):
        trial.suggest_float("x", -1, 1), trial.suggest_int("split", 0, 99)
        trial.suggest_int("epochs", 1, 1)

    one, other = make(), make()
    write, trials = StudyExperiment._write_claim, []

    def write_late(self, study, trial, *claim):
        if not trials:
            trials.append(None)
            trials[0] = other.ask()
        return write(self, study, trial, *claim)

    monkeypatch.setattr(StudyExperiment, "_write_claim", write_late)
    trials.append(one.ask())  # its number is the smaller one, and its claim is written last
    for trial in trials:
        suggest(trial)
    claims = [one.trials[trial.number].user_attrs[PULL] for trial in trials]
    assert claims[0]["arm"] != claims[1]["arm"]
    other.tell(trials[0], 9.0)
    one.tell(trials[1], 1.0)
    for study in (one, other, make()):
        known = study.sampler.known(study)
        assert [result.observation.value for result in known.experiment.history()] == [-9.0, -1.0]
        assert known.answer().cost == 2.0


MAKERS = {
    "race": lambda: IISESampler("epochs", 3, epsilon=0.3, seed=0, budget=200),
    "choice": lambda: MFSampler("epochs", 3, epsilon=0.3, seed=0, budget=200),
    "search": lambda: SearchSampler("epochs", budget=200, seed=0),
    "trials": lambda: SearchSampler(trials=20, seed=0),
    "limits": lambda: RCUCBSampler(3, limits=[1.0], reward_range=(0, 2), seed=0),
}


@pytest.mark.filterwarnings("ignore:Fixed parameter", "ignore:trial . evaluated", "ignore:nothing")
@pytest.mark.parametrize("value", [5.0, "a"])
@pytest.mark.parametrize("name", MAKERS)
def test_an_enqueued_value_that_the_objective_does_not_allow_is_no_configuration_s(name, value):
    study = optuna.create_study(sampler=MAKERS[name]())
    study.enqueue_trial({"x": value})

    def objective(trial):
        x, epochs = trial.suggest_float("x", 0.0, 2.0), trial.suggest_int("epochs", 1, 9)
        return (x - 0.3) ** 2 + 0.1 / epochs + 0.02 * np.random.default_rng(trial.number).normal()

    study.optimize(objective, n_trials=15, catch=ValueError)
    known = study.sampler.known(study)
    assert known.n_told >= 10
    answer = known.answer()
    assert answer.params == {} or 0.0 <= answer.params["x"] <= 2.0
