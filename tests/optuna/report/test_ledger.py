from mfhpo_optuna.report.ledger import ledger_of, where_it_went
from mfhpo_optuna.report.reading import read_study


def test_a_trial_costs_one_of_a_budget_in_trials(counted):
    ledger = ledger_of(read_study(counted))
    assert ledger.unit == "trials"
    assert ledger.paid == 40.0
    shares = where_it_went(ledger)
    assert [(share.purpose, share.trials, share.spent) for share in shares] == [
        ("search", 36, 36.0),
        ("certificate", 4, 4.0),
    ]
