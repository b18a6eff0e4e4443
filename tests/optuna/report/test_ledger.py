import optuna
import pytest

from mfhpo import Fidelity
from mfhpo_optuna import IISESampler, NashSampler
from mfhpo_optuna.report.ledger import ledger_of, where_it_went
from mfhpo_optuna.study.trials.attributes import LOST_KEY
from mfhpo_optuna.visualization.reading import read_study
from tests.optuna.report.conftest import summarised


def test_a_trial_costs_one_of_a_budget_in_trials(counted):
    ledger = ledger_of(read_study(counted))
    assert ledger.unit == "trials"
    assert ledger.paid == 40.0
    shares = where_it_went(ledger)
    spent = [(share.purpose, share.trials, share.spent) for share in shares]
    assert spent == [("search", 36, 36.0), ("certificate", 4, 4.0)]


def test_what_waits_for_an_earlier_trial_and_what_was_lost_is_paid():
    sampler = IISESampler(Fidelity("epochs", levels=[9]), arms=2, epsilon=0.1, seed=0)
    study = optuna.create_study(sampler=sampler)
    trials = [study.ask() for _ in range(6)]
    for trial in trials:
        trial.suggest_float("x", 0, 1)
        trial.suggest_int("epochs", 1, 9)
    lost = {"trial": 1, "order": 20, "why": "its process died"}
    trials[1].set_user_attr(LOST_KEY, lost)
    for trial in trials[2:]:
        study.tell(trial, 0.01 * trial.number)
    ledger = ledger_of(read_study(study))
    assert [entry.purpose for entry in ledger.entries[1:6]] == ["lost", *["race"] * 4]
    assert [entry.cost for entry in ledger.entries[1:6]] == [9.0] * 5
    assert ledger.paid == 45.0


def test_a_game_is_paid_as_its_sampler_counts(game):
    reading = read_study(game)
    ledger = ledger_of(reading)
    assert ledger.unit == "trials"
    assert ledger.paid == reading.answer["cost"] == 8.0
    [share] = where_it_went(ledger)
    assert (share.purpose, share.spent) == ("game", 8.0)
    assert dict(summarised(game).facts)["paid"] == "8 of 8 trials"


@pytest.mark.filterwarnings("ignore:.*It does not count")
def test_a_game_with_a_fidelity_is_paid_in_it():
    sampler = NashSampler({"row": ["x"], "column": ["y"]}, fidelity="hours", budget=40, seed=0)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        bias = 0.1 / trial.suggest_int("hours", 1, 9)
        return (x - 0.5 * y) ** 2 + bias, (y + 0.5 * x - 0.75) ** 2 + bias

    study.optimize(objective)
    study.add_trial(optuna.trial.create_trial(values=[0.0, 0.0]))
    answer = sampler.equilibrium(study)
    ledger = ledger_of(read_study(study))
    shares = where_it_went(ledger)
    assert ledger.unit == "hours"
    paid = f"{answer.cost:g} of 40 hours in {answer.trials} trials"
    assert dict(summarised(study).facts)["paid"] == paid
    assert [share.level for share in shares if share.purpose == "game"] == [1, 3, 9]
    assert sum(share.spent for share in shares) == answer.cost
    [other] = [share for share in shares if share.purpose == "not counted"]
    assert other.spent == 0.0
