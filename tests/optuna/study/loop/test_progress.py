import re
import sys

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler

from mfhpo_optuna import IISESampler, NashSampler, SearchSampler
from mfhpo_optuna.study.loop import report
from mfhpo_optuna.study.loop.report import ProgressReport
from mfhpo_optuna.study.loop.state import Progress, ends_in
from tests.optuna.games.nash_games import PLAYERS, tracking
from tests.optuna.samplers.races import REWARD
from tests.optuna.samplers.time_limits.timed import make, score
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
    return study.sampler._of(study).progress()


def test_a_line_has_phase_configurations_leader_spending_and_end():
    line = "search | 9 tried | arm 3, 0.5 ± 0.1 | cost 50/100 | ~30 s left"
    assert HALFWAY.line(30.0) == line
    assert HALFWAY.line(None) == line.removesuffix(" | ~30 s left")


def test_escape_sequences_are_not_obeyed():
    shown = Progress("search", "", "\x1b[31mtrial 3", 50.0, 100.0).line(None)
    assert shown == r"search | \x1b[31mtrial 3 | cost 50/100"


@pytest.mark.parametrize("wanted", [1, "yes"])
def test_other_ways_to_show_it_are_refused(wanted):
    with pytest.raises(TypeError, match="progress must be True, False or None, got"):
        IISESampler("epochs", arms=4, progress=wanted)


def test_a_flag_of_numpy_is_one_and_the_view_that_is_gone_says_so():
    IISESampler("epochs", arms=4, progress=np.True_)
    with pytest.raises(TypeError, match="'live', which is gone: True shows one line"):
        IISESampler("epochs", arms=4, progress="live")


def test_a_narrow_line_keeps_what_was_spent_and_when_it_ends():
    assert HALFWAY.line(30.0, width=45) == "arm 3, 0.5 ± 0.1 | cost 50/100 | ~30 s left"
    assert HALFWAY.line(30.0, width=30) == "cost 50/100 | ~30 s left"
    assert len(HALFWAY.line(30.0, width=5)) == 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.2, "~1 s left"),
        (80, "~80 s left"),
        (150, "~2.5 min left"),
        (9000, "~2.5 h left"),
    ],
)
def test_the_end_in_words(seconds, text):
    assert ends_in(seconds) == text


def test_what_is_left_in_words():
    assert HALFWAY.left == "50 of the budget of 100 are left"
    guess = Progress("", "", "", 100.0, 1334.0, is_guess=True)
    assert guess.left == "a certificate costs about 1,200 more"
    assert guess.spending == "cost 100/~1,300"
    certified = Progress("", "", "", 1334.0, 1334.0, is_guess=True)
    assert certified.spending == "cost 1,334"
    assert certified.left == "a certificate needs little more"
    seconds = Progress("", "", "", 0.123456, 2.0, unit="seconds")
    assert seconds.spending == "seconds 0.1235/2"
    assert seconds.left == "1.877 seconds of the budget of 2 are left"
    unknown = Progress("", "", "", 100.0, None)
    assert unknown.left == "how much a certificate takes is not known yet"
    assert unknown.spending == "cost 100"


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
    # 25 in 10 s: the other 25 take as long.
    assert lines[1] == "\x1b[Ksearch | 9 tried | cost 75/100 | ~10 s left"
    assert lines[2] == "\n"


def test_after_the_last_state_nothing_is_shown_until_the_next_begin(monkeypatch, clock):
    terminal = use_terminal(monkeypatch)
    shown = ProgressReport(None)
    shown.show(lambda: HALFWAY, is_last=True)
    before = terminal.text
    clock.now = 10.0
    shown.show(lambda: pytest.fail("it is over"), is_last=True)
    assert terminal.text == before
    shown.end()
    shown.show(lambda: HALFWAY)
    assert terminal.text != before


@pytest.mark.parametrize(("wanted", "lines"), [(None, 0), (True, 1), (False, 0)])
def test_where_there_is_no_terminal_only_true_writes_to_the_log(wanted, lines, log, capsys):
    ProgressReport(wanted).show(lambda: HALFWAY)
    assert log == [HALFWAY.line(None)] * lines
    assert capsys.readouterr().err == ""


def test_the_log_s_verbosity_governs_it(log):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ProgressReport(True).show(lambda: HALFWAY)
    assert log == []


def test_a_race_s_progress():
    state = progress_of(IISESampler("epochs", arms=4, sigma=0.1, epsilon=0.01, seed=0))
    assert re.fullmatch(r"[1-4]/4 arms left", state.configurations)
    assert re.match(r"arm \d", state.leader)
    assert state.total is None or state.is_guess
    assert state.has_end
    sampler = IISESampler("epochs", arms=4, sigma=0.1, budget=70.0, seed=0)
    budgeted = progress_of(sampler, n_trials=5)
    assert budgeted.total <= 70.0
    assert budgeted.spent <= budgeted.total


def test_a_race_for_reward_has_no_end_of_its_own():
    state = progress_of(REWARD["UCB"]("epochs", arms=4, sigma=0.1, seed=0))
    assert not state.has_end
    assert state.configurations == "4/4 arms in play"


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


def test_limits_progress():
    state = progress_of(make(horizon=50), score, directions=["maximize"])
    assert (state.spent, state.total, state.unit) == (20, 50, "trials")


def test_a_game_s_progress():
    sampler = NashSampler(PLAYERS, budget=10, seed=0)
    state = progress_of(sampler, tracking, 6, ["minimize"] * 2)
    assert (state.spent, state.total) == (6.0, 10.0)
