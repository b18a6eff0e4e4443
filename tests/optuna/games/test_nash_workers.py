import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import NashSampler
from mfhpo_optuna.games.queries import planned
from tests.optuna.games.nash_games import PLAYERS, QUERY, on_a_grid


def worker(storage, budget=12.0):
    """The study as another process has it, with a sampler of its own."""
    return optuna.create_study(
        study_name="game",
        storage=storage,
        load_if_exists=True,
        directions=["minimize"] * 2,
        sampler=NashSampler(PLAYERS, budget=budget, seed=0),
    )


def test_who_comes_later_gives_way():
    storage = InMemoryStorage()
    one, two = worker(storage, 5.0), worker(storage, 5.0)
    one.optimize(on_a_grid, n_trials=3)
    first = one.ask()
    hidden = planned(first)
    read = two.sampler._read(two)
    propose, seen = read.propose, []

    def propose_before_the_first_is_seen(trial):
        if not seen:
            read.under_way.pop(first.number)
        plan = propose(trial)
        seen.append(plan)
        return plan

    ahead_of = read.ahead_of
    read.propose = propose_before_the_first_is_seen
    read.ahead_of = lambda number: ahead_of(number) if seen else {}
    second = two.ask()
    assert len(seen) == 2
    assert seen[0] == hidden
    assert planned(second) == seen[1] != hidden


def test_nothing_is_left_for_who_comes_later():
    storage = InMemoryStorage()
    one, two = worker(storage, 4.0), worker(storage, 4.0)
    one.optimize(on_a_grid, n_trials=3)
    first = one.ask()
    two.optimize(on_a_grid)
    assert [trial.state for trial in two.trials[4:]] == [TrialState.PRUNED]
    one.tell(first, on_a_grid(first))
    assert two.sampler.equilibrium(two).finished
    assert two.sampler.equilibrium(two).trials == 4


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_last_of_the_budget_is_not_left_to_who_gives_way(interrupted, monkeypatch):
    """Each of two that choose at the same moment sees the other's plan; the later one gives way."""
    storage = InMemoryStorage()
    one, two = worker(storage, 4.0), worker(storage, 4.0)
    one.optimize(on_a_grid, n_trials=3)
    read = one.sampler._read(one)
    propose, later = read.propose, []

    def propose_after_the_other(trial):
        if not later:
            later.append(two.ask())
            one.sampler._read(one)
        return propose(trial)

    def give_way(seconds):
        if interrupted:
            raise KeyboardInterrupt
        storage.set_trial_user_attr(later[0]._trial_id, QUERY, {"over": True})

    monkeypatch.setattr(read, "propose", propose_after_the_other)
    monkeypatch.setattr("mfhpo_optuna.games.sampler.time.sleep", give_way)
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            one.ask()
        assert one.trials[3].state == TrialState.FAIL
        return
    first = one.ask()
    assert later[0].number > first.number
    assert "levels" in first.user_attrs[QUERY]
