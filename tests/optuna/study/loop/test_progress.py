import re
import sys

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler

from mfhpo_optuna import IISESampler, NashSampler, SearchSampler
from mfhpo_optuna.study.loop import report
from mfhpo_optuna.study.loop.report import Progress, ProgressReport
from tests.optuna.games.nash_games import PLAYERS, tracking
from tests.optuna.visualization.figures import quadratic

HALFWAY = Progress("search", "9 tried", "arm 3, 0.5 ± 0.1", 50.0, 100.0)


class Terminal:
    """Standard error as a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def use_terminal(monkeypatch):
    """Make standard error a terminal; in the test, as pytest sets its own one after fixtures."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "120")
    return sys.stderr


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves on by what it is told."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(report, "time", clock)
    return clock


def progress_of(sampler, objective=quadratic, n_trials=20, directions=("minimize",)):
    study = optuna.create_study(directions=directions, sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    known = study.sampler.known(study)
    return known.kind.progress(known)


def test_a_line_has_phase_configurations_leader_and_spending():
    assert HALFWAY.line() == "search | 9 tried | arm 3, 0.5 ± 0.1 | cost 50/100"


def test_escape_sequences_are_not_obeyed():
    shown = Progress("search", "", "\x1b[31mtrial 3", 50.0, 100.0).line()
    assert shown == r"search | \x1b[31mtrial 3 | cost 50/100"


def test_a_flag_of_numpy_is_one():
    IISESampler("epochs", arms=4, progress=np.True_)


def test_a_terminal_s_line_is_rewritten_and_ended(monkeypatch, clock):
    terminal = use_terminal(monkeypatch)
    shown = ProgressReport(None)
    shown.show(lambda: HALFWAY)
    shown.show(lambda: pytest.fail("too soon"))
    clock.now = 10.0
    shown.show(lambda: Progress("search", "9 tried", "", 75.0, 100.0))
    shown.end()
    lines = terminal.text.split("\r")
    assert lines[0] == "\x1b[Ksearch | 9 tried | arm 3, 0.5 ± 0.1 | cost 50/100"
    assert lines[1] == "\x1b[Ksearch | 9 tried | cost 75/100"
    assert lines[2] == "\n"


@pytest.mark.parametrize(("wanted", "lines"), [(None, 0), (True, 1), (False, 0)])
def test_where_there_is_no_terminal_only_true_writes_to_the_log(wanted, lines, log, capsys):
    ProgressReport(wanted).show(lambda: HALFWAY)
    assert log == [HALFWAY.line()] * lines
    assert capsys.readouterr().err == ""


def test_a_race_s_progress():
    state = progress_of(IISESampler("epochs", arms=4, sigma=0.1, epsilon=0.01, seed=0))
    assert re.fullmatch(r"[1-4]/4 arms left", state.configurations)
    assert re.match(r"x=", state.leader)
    assert state.total is None or state.is_guess
    assert state.has_end
    sampler = IISESampler("epochs", arms=4, sigma=0.1, budget=70.0, seed=0)
    budgeted = progress_of(sampler, n_trials=5)
    assert budgeted.total <= 70.0
    assert budgeted.spent <= budgeted.total


@pytest.mark.parametrize(
    ("options", "total", "unit"),
    [({"budget": 200}, 200.0, "cost"), ({"trials": 50}, 50.0, "trials"), ({}, None, "cost")],
)
def test_a_search_s_progress(options, total, unit):
    proposer = RandomSampler(seed=0)
    state = progress_of(SearchSampler("epochs", proposer=proposer, seed=0, **options))
    assert (state.phase, state.total, state.unit) == ("search", total, unit)
    assert state.has_end == (total is not None)
    assert re.fullmatch(r"\d+ tried, \d+ at the target", state.configurations)


def test_a_game_s_progress():
    sampler = NashSampler(PLAYERS, budget=10, seed=0)
    state = progress_of(sampler, tracking, 6, ["minimize"] * 2)
    assert (state.spent, state.total) == (6.0, 10.0)
