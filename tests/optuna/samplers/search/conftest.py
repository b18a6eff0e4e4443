import pytest


@pytest.fixture
def clock(monkeypatch):
    """Trials take what their objective notes of them, and no time passes."""
    monkeypatch.setattr(
        "mfhpo_optuna.study.trials.under_way.UnderWay.seconds_since_beginning",
        lambda race, trial: float(trial.user_attrs.get("takes", 0.0)),
    )
