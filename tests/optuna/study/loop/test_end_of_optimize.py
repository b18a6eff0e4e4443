import threading

import optuna
import pytest
from optuna.samplers import RandomSampler

from mfhpo_optuna import IISESampler
from mfhpo_optuna.study.loop.ends import call_at_end
from tests.optuna.games.nash_games import play, tracking
from tests.optuna.visualization.figures import ARMS, quadratic


class Watching(RandomSampler):
    """Notes when an `optimize` ends, and in which thread."""

    def __init__(self):
        super().__init__(seed=0)
        self.ends = []

    def before_trial(self, study, trial):
        def then(error):
            self.ends.append((len(study.trials), threading.get_ident(), error))

        self.is_watched = call_at_end(study, self, then)


def drawn(trial):
    return trial.suggest_float("x", 0, 1)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_it_is_called_once_after_the_last_trial(n_jobs):
    study = optuna.create_study(sampler=(sampler := Watching()))
    study.optimize(drawn, n_trials=7, n_jobs=n_jobs)
    assert sampler.ends == [(7, threading.get_ident(), None)]
    study.optimize(drawn, n_trials=2, n_jobs=n_jobs)
    assert [trials for trials, *_ in sampler.ends] == [7, 9]
    assert not study._thread_local.in_optimize_loop


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError])
def test_it_is_called_after_an_error(error, n_jobs):
    study = optuna.create_study(sampler=(sampler := Watching()))

    def fails(trial):
        raise error

    with pytest.raises(error) as raised:
        study.optimize(fails, n_jobs=n_jobs)
    [(_, _, ended_by)] = sampler.ends
    assert ended_by is raised.value


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_that_the_caller_handles_has_not_ended_it(n_jobs):
    study = optuna.create_study(sampler=(sampler := Watching()))

    def fails(trial):
        raise LookupError

    try:
        study.optimize(fails)
    except LookupError:
        study.optimize(drawn, n_trials=2, n_jobs=n_jobs)
    assert isinstance(sampler.ends[0][2], LookupError)
    assert sampler.ends[1][2] is None


@pytest.mark.parametrize("own_error", [None, LookupError("own")])
def test_all_are_called_and_the_first_failure_is_raised(own_error, log):
    study, called = optuna.create_study(), []

    def fail_at_end(name):
        def then(error):
            called.append(name)
            raise OSError(name)

        return then

    def objective(trial):
        for name in ("first", "second"):
            call_at_end(study, name, fail_at_end(name))
        if own_error:
            raise own_error
        return 0.0

    expected = own_error or OSError("first")
    with pytest.raises(type(expected), match=str(expected)):
        study.optimize(objective, n_trials=1)
    assert called == ["first", "second"]
    failed = [line for line in log if line.startswith("At the end of optimize()")]
    assert len(failed) == (2 if own_error else 1)
    assert "OSError('second')" in failed[-1]


def test_ask_and_tell_have_no_end():
    study = optuna.create_study(sampler=(sampler := Watching()))
    study.tell(study.ask(), 0.0)
    assert sampler.ends == []
    assert not sampler.is_watched


def warned(log):
    return [line for line in log if line.startswith("optimize() ended before")]


def race(**options):
    options = {"sigma": 0.1, "epsilon": 0.01, "seed": 0} | options
    return optuna.create_study(sampler=IISESampler("epochs", arms=ARMS, **options))


def test_a_race_that_is_cut_short_says_so_once(log):
    study = race(budget=900.0)
    study.optimize(quadratic, n_trials=9)
    known = study.sampler.known(study)
    state = known.kind.progress(known)
    [said] = warned(log)
    assert state.spending in said
    study.optimize(quadratic, n_trials=1)
    assert len(warned(log)) == 1, "once is enough"


def test_a_game_that_is_cut_short_says_so(log):
    study = play(budget=10, n_trials=6)
    [said] = warned(log)
    assert "at cost 6/10" in said
    assert "print(study.sampler.equilibrium(study))" in said
    study.optimize(tracking)
    assert len(warned(log)) == 1, "it has ended by itself now"
