"""Whose turn it is to be told, against its definition: each that waits with each under way."""

from collections import Counter
from datetime import datetime, timedelta

import optuna
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import TrialState

from mfhpo import Observation, Pull
from mfhpo.racing.in_order import most_held
from mfhpo.search import Replicate
from mfhpo_optuna.study.trials.turns import Turns
from mfhpo_optuna.study.trials.under_way import Running

BEGAN = datetime(2026, 1, 1)
ARMS, LEVELS = 4, 2


def pulls():
    return st.builds(
        lambda kind, arm, level: kind(arm, level),
        st.sampled_from([Pull, Replicate]),
        st.integers(0, ARMS - 1),
        st.integers(0, LEVELS - 1),
    )


@st.composite
def situations(draw):
    """Trials under way and others that wait, some of them begun at the same moment."""
    n = draw(st.integers(1, 40))
    moments = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    all_pulls = draw(st.lists(pulls(), min_size=n, max_size=n))
    flags = draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=n, max_size=n))
    equal = draw(st.sets(st.tuples(st.integers(0, ARMS - 1), st.integers(0, ARMS - 1))))
    given_up = draw(st.sets(st.integers(0, n - 1)))
    order = draw(st.permutations(range(n)))
    return moments, all_pulls, flags, equal, given_up, order


def made(situation):
    moments, all_pulls, flags, equal, given_up, order = situation
    running = {}

    def equal_arms(pull, arms):
        return [arm for arm in arms if pull.fidelity and (arm, pull.arm) in equal]

    turns = Turns(running, equal_arms)
    for number in order:
        since, (runs, is_open) = BEGAN + timedelta(moments[number]), flags[number]
        if runs:
            running[number] = Running(all_pulls[number], since, level_is_open=is_open)
        else:
            trial = optuna.trial.create_trial(state=TrialState.RUNNING)
            trial.number, trial.datetime_start = number, since
            turns.end(trial, all_pulls[number], None if is_open else Observation(1.0))
    turns.given_up |= given_up & running.keys()
    return turns, running


def holds_back(situation, number, running, ended):
    equal = situation[3]
    mine, theirs = running.pull, ended.pull
    return (
        type(mine) is type(theirs)
        and (running.since, number) < (ended.since, ended.number)
        and (running.level_is_open or mine.fidelity == theirs.fidelity)
        and (mine.arm == theirs.arm or (theirs.fidelity > 0 and (mine.arm, theirs.arm) in equal))
    )


@given(situations())
def test_what_nothing_holds_back_has_its_turn(situation):
    turns, running = made(situation)
    awaited = {number: one for number, one in running.items() if number not in turns.given_up}
    free = {
        ended.number
        for ended in turns.waiting.values()
        if not any(holds_back(situation, number, one, ended) for number, one in awaited.items())
    }
    waiting = set(turns.waiting)
    released = list(turns.release())
    assert {ended.number for ended in released} == free
    assert set(turns.waiting) == waiting - free
    last = {}
    for ended in released:
        kind = type(ended.pull), ended.pull.arm, ended.pull.fidelity
        assert last.get(kind, (BEGAN, -1)) < (ended.since, ended.number)
        last[kind] = ended.since, ended.number


@given(situations(), st.booleans(), st.integers(0, 39))
def test_what_is_waited_for_no_longer(situation, expired, ending):
    turns, running = made(situation)
    before = set(turns.given_up)
    held = Counter(
        number
        for number, one in running.items()
        for ended in turns.waiting.values()
        if ended.observation is not None and holds_back(situation, number, one, ended)
    )
    least = 1 if expired else most_held(len(running))
    turns.give_up(ending, lambda number: expired)
    assert turns.given_up == before | {
        number for number in running if number != ending and held[number] >= least
    }
