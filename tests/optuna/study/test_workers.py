import threading
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.storages import InMemoryStorage

from mfhpo_optuna import Fidelity, IISESampler, MFSampler, NashSampler, RCUCBSampler
from tests.optuna.games.nash_games import PLAYERS, QUERY, tracking
from tests.optuna.samplers.races import (
    ARMS,
    PULL,
    bowl,
    chosen,
    counted_for_their_arm,
    pulls,
    split_bowl,
    worker,
)


def test_threads_share_the_work():
    together = threading.Barrier(4, timeout=20)

    def objective(trial):
        value = bowl(trial)
        together.wait()
        return value

    sampler = IISESampler("epochs", ARMS, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=4, n_jobs=4)
    assert sorted(t.user_attrs[PULL]["arm"] for t in pulls(study)) == [0, 1, 2, 3]


def test_what_was_begun_before_the_levels_were_known_is_not_begun_again():
    study = optuna.create_study(sampler=IISESampler("epochs", ARMS, seed=0))
    trials = [study.ask() for _ in range(3)]
    trials[0].suggest_float("x", -1, 1)
    trials[0].suggest_int("epochs", 1, 9)  # now the levels are known
    trials.append(study.ask())
    assert [trial.user_attrs[PULL]["arm"] for trial in trials] == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:trial 2 evaluated")
def test_an_arm_that_two_workers_define_at_once_stays_one_configuration():
    """One is told what arm 0 is by an enqueued trial, the other draws it; the later ends first."""
    storage = InMemoryStorage()

    def make():
        fidelity = Fidelity("epochs", levels=[1, 9])
        return worker(storage, IISESampler(fidelity, 3, seed=0))

    one, two = make(), make()
    probe = two.ask()  # lets the second worker read the study before the first one begins
    two.tell(probe, bowl(probe))
    one.enqueue_trial({"x": 0.77})
    enqueued = one.ask()
    drawn = [two.ask() for _ in range(3)]  # whichever arm was enqueued is among these
    for trial in drawn:
        two.tell(trial, bowl(trial))
    one.tell(enqueued, bowl(enqueued))
    for study in (one, two, make()):
        assert study.sampler.recommendation(study).trials == len(counted_for_their_arm(study))


def race_with(lease):
    return IISESampler(Fidelity("epochs", levels=[1, 9]), ARMS, seed=0, lease=lease)


def limited(lease):
    return RCUCBSampler(ARMS, [1.0, 4.0], reward_range=(0.0, 1.0), seed=0, lease=lease)


def limits_derived(lease):
    return RCUCBSampler(ARMS, 3, seed=0, lease=lease)


@pytest.mark.parametrize(
    ("make", "lease", "ago", "waits"),
    [
        (race_with, 10, 5, True),
        (race_with, 10, 20, False),
        (race_with, None, 3600, True),  # nobody can tell that its worker is dead
        (limited, 10.0, 5, True),
        (limited, 10.0, 20, False),
        (limited, None, 60, True),  # a minute and twice the largest limit, 4 seconds
        (limited, None, 70, False),
        (limits_derived, None, 50, True),
        (limits_derived, None, 70, False),
    ],
)
def test_a_lost_pull_is_proposed_again_when_its_lease_is_over(make, lease, ago, waits):
    study = optuna.create_study(sampler=make(lease))
    lost = study.ask()
    begun = datetime.now() - timedelta(seconds=ago)
    study._storage._get_trial(lost._trial_id).datetime_start = begun
    study.sampler = make(lease)  # a new process
    after = study.ask()
    assert (chosen(study.trials[after.number]) == chosen(study.trials[lost.number])) != waits


class Behind(datetime):
    """The clock of another machine, which is two hours behind."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - timedelta(hours=2)


@pytest.mark.parametrize(
    ("make", "objective", "key"),
    [
        (lambda: IISESampler("epochs", ARMS, seed=0), bowl, PULL),
        (lambda: MFSampler("epochs", ARMS, replicate="split", seed=0), split_bowl, PULL),
        (lambda: NashSampler(PLAYERS, budget=30, seed=0), tracking, QUERY),
    ],
)
def test_what_others_begin_is_waited_for_by_this_machines_clock(make, objective, key, monkeypatch):
    monkeypatch.setattr("optuna.storages._in_memory.datetime", Behind)
    storage = InMemoryStorage()
    directions = ["minimize"] * (1 + (objective is tracking))
    workers = [worker(storage, make(), directions=directions) for _ in range(2)]
    for study in workers:
        study.optimize(objective, n_trials=1)
    asked = [study.ask() for study in workers * 2]
    wanted = [chosen(study.trials[trial.number], key) for trial in asked]
    assert all(tag not in wanted[:place] for place, tag in enumerate(wanted))


@pytest.mark.parametrize(("lease", "trials"), [(None, 7), (1e-6, 6)])
def test_a_zombie_that_is_told_after_all_counts_unless_it_was_given_up(lease, trials):
    """What was given up may have been slow because it is poor: it is paid, and left out."""
    sampler = IISESampler("epochs", ARMS, seed=0, lease=lease)
    study = optuna.create_study(sampler=sampler)
    lost = study.ask()
    value = bowl(lost)
    study.optimize(bowl, n_trials=6)
    before = sampler.recommendation(study)
    study.tell(lost, value)
    fresh = IISESampler("epochs", ARMS, seed=0, lease=lease)
    for reader in (sampler, fresh):
        answer = reader.recommendation(study)
        assert answer.trials == trials
        assert answer.cost >= before.cost
        assert any("have no worker" in each for each in answer.conditions) == (lease is not None)
