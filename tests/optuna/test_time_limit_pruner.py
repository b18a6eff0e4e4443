"""A cooperative limit: it holds at the next question, and tells what it did."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.pruners import BasePruner, NopPruner, ThresholdPruner
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mfhpo_optuna import TimeLimitPruner, time_limited
from mfhpo_optuna._limit_attributes import CENSORED_KEY, ENFORCER_KEY, LIMIT_KEY, SECONDS_KEY

optuna.logging.set_verbosity(optuna.logging.WARNING)


def reports(trial: optuna.Trial) -> float:
    """Takes 5 seconds, and asks every 10 milliseconds."""
    for step in range(500):
        time.sleep(0.01)
        trial.report(float(step), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return 0.0


def asks(pruner: BasePruner, ran: float, limit: Any = None) -> tuple[bool, dict[str, Any]]:
    """What a trial that has run for some seconds hears, and what is then noted of it."""
    study = optuna.create_study(pruner=pruner)
    trial = study.ask()
    if limit is not None:
        trial.set_user_attr(LIMIT_KEY, limit)
    trial._cached_frozen_trial.datetime_start = datetime.now() - timedelta(seconds=ran)
    trial.report(1.0, 1)
    answer = trial.should_prune()
    assert trial.user_attrs == study.trials[0].user_attrs
    return answer, trial.user_attrs


@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_a_trial_that_asks_ends_at_its_limit(kind: str, tmp_path: Path) -> None:
    storages: dict[str, Callable[[], Any]] = {
        "memory": lambda: None,
        "sqlite": lambda: f"sqlite:///{tmp_path}/study.db",
        "journal": lambda: JournalStorage(JournalFileBackend(f"{tmp_path}/study.log")),
    }
    study = optuna.create_study(pruner=TimeLimitPruner(limit=0.1), storage=storages[kind]())
    study.optimize(reports, n_trials=1)
    (trial,) = study.trials
    assert trial.state == TrialState.PRUNED
    assert trial.user_attrs[CENSORED_KEY] == 0.1
    assert 0.1 < trial.user_attrs[SECONDS_KEY] < 4.0
    assert trial.user_attrs[ENFORCER_KEY] == "TimeLimitPruner"
    assert trial.intermediate_values


@pytest.mark.parametrize(
    ("limit", "told", "ran", "censored_at"),
    [
        (60.0, None, 59.0, None),
        (60.0, None, 61.0, 60.0),
        (None, 60, 59.0, None),
        (None, 60, 61.0, 60.0),
        (60.0, 30.0, 45.0, 30.0),
        (30.0, 60.0, 45.0, 30.0),
        (None, None, 1e6, None),
        (math.inf, None, 1e6, None),
    ],
)
def test_the_smaller_limit_counts(
    limit: float | None, told: float | None, ran: float, censored_at: float | None
) -> None:
    answer, attributes = asks(TimeLimitPruner(limit), ran, told)
    assert answer is (censored_at is not None)
    assert attributes.get(CENSORED_KEY) == censored_at
    assert attributes[ENFORCER_KEY] == "TimeLimitPruner"
    if answer:
        assert attributes[SECONDS_KEY] == pytest.approx(ran, abs=1.0)
    else:
        assert SECONDS_KEY not in attributes


def test_within_the_limit_the_other_pruner_decides() -> None:
    stops, goes_on = ThresholdPruner(upper=0.5), NopPruner()
    assert asks(TimeLimitPruner(60.0, stops), 1.0)[0]
    assert CENSORED_KEY not in asks(TimeLimitPruner(60.0, stops), 1.0)[1]
    assert not asks(TimeLimitPruner(60.0, goes_on), 1.0)[0]
    assert asks(TimeLimitPruner(60.0, goes_on), 61.0)[0]


def test_both_enforcers_go_together() -> None:
    study = optuna.create_study(pruner=TimeLimitPruner(limit=0.1))
    with time_limited(reports, limit=3.0) as limited:
        study.optimize(limited, n_trials=1)
    (trial,) = study.trials
    assert trial.state == TrialState.PRUNED
    assert trial.user_attrs[CENSORED_KEY] == 0.1
    assert trial.user_attrs[ENFORCER_KEY] == "time_limited"


@pytest.mark.parametrize(
    ("arguments", "kind", "shown"),
    [
        ({"limit": 0.0}, ValueError, "limit must be a positive number of seconds, got 0.0"),
        ({"limit": math.nan}, ValueError, "limit"),
        ({"limit": True}, TypeError, "limit must be a number of seconds or None, got True"),
        ({"limit": "60"}, TypeError, "limit"),
        ({"pruner": 0.5}, TypeError, "pruner must be a pruner of Optuna or None, got 0.5"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: dict[str, Any], kind: type[Exception], shown: str
) -> None:
    with pytest.raises(kind, match=shown):
        TimeLimitPruner(**arguments)


def test_a_bad_limit_of_the_sampler_is_named() -> None:
    with pytest.raises(ValueError, match=f"{LIMIT_KEY}.*of trial 0 must be a positive number"):
        asks(TimeLimitPruner(60.0), 1.0, -1.0)
