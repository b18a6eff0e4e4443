import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import NashSampler
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


def ask_at_once(one, two, monkeypatch):
    """Begin two trials, of which the second one's worker reads the first one's claim too late."""
    blind = two.sampler._read(two)
    first, claim = one.ask(), blind.claim
    monkeypatch.setattr(blind, "read", lambda study: True)

    def claim_and_read(*given):
        monkeypatch.undo()
        claim(*given)

    monkeypatch.setattr(blind, "claim", claim_and_read)
    return first, two.ask()


def profile(trial):
    return trial.user_attrs[QUERY].get("point")


@pytest.mark.parametrize("budget", [12.0, 4.0])
def test_of_two_that_choose_the_same_the_earlier_stands(budget, monkeypatch):
    storage = InMemoryStorage()
    one, two = worker(storage, budget), worker(storage, budget)
    one.optimize(on_a_grid, n_trials=3)
    earlier, later = ask_at_once(one, two, monkeypatch)
    first, second = (trial for trial in one.trials[3:])
    assert (earlier.number, later.number) == (3, 4)
    assert profile(first) is not None
    if budget > 4.0:
        assert profile(first) != profile(second) is not None
        return
    assert second.user_attrs["mfhpo:lost"]["is_withdrawn"]
    one.tell(earlier, on_a_grid(earlier))
    one.tell(later, (0.0, 0.0))
    for study in (one, two, worker(storage, budget)):
        answer = study.sampler.equilibrium(study)
        assert (answer.finished, answer.trials, answer.cost) == (True, 4, 4.0)


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
