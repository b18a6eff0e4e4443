"""Shows where a study stands: in a line of the terminal, in lines of the log, or in a live view."""

import math
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal, Protocol, TypeAlias

import optuna

from mfhpo._validation import check_choice
from mfhpo_optuna.study.loop.state import Progress

ProgressLike: TypeAlias = bool | Literal["live"] | None

# Seconds between two updates: a terminal's line is rewritten, a log's lines add up.
_TERMINAL_PERIOD = 0.2
_LOG_PERIOD = 5.0
# Seconds of an `optimize` before its end is guessed.
_EARLIEST_GUESS = 2.0

# Below "optuna.", so that optuna.logging.set_verbosity governs it.
_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class Display(Protocol):
    """Where progress is shown."""

    def show(self, progress: Progress, seconds_left: float | None) -> None:
        """Show it."""
        ...

    def end(self) -> None:
        """Leave what was shown last where it is, and go on below it."""
        ...


class TerminalLine:
    """One line of a terminal, rewritten in its place.

    The cursor waits at its beginning, so that a line of Optuna's log takes its place.
    """

    def show(self, progress: Progress, seconds_left: float | None) -> None:
        """Write it over the last one."""
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\x1b[K{progress.line(seconds_left, width)}\r")
        sys.stderr.flush()

    def end(self) -> None:
        """Go on below it."""
        sys.stderr.write("\n")
        sys.stderr.flush()


class LogLines:
    """Lines of Optuna's log."""

    def show(self, progress: Progress, seconds_left: float | None) -> None:
        """Write a line."""
        _logger.info(progress.line(seconds_left))

    def end(self) -> None:
        """Do nothing: a line has ended when it was written."""


class ProgressReport:
    """Shows now and then where a study stands, from its first trial to the end of `optimize`.

    `wanted` is what a sampler was given as `progress`: None for a line on terminals only; True
    for that, and elsewhere lines of Optuna's log; "live" for a view of several lines on terminals
    only; False for nothing. `will_end` says whether `end` is sure to be called, which a live view
    needs to give the terminal back; without it there is a line.
    """

    def __init__(self, wanted: ProgressLike) -> None:
        check_choice("progress", wanted, (True, False, None, "live"))
        if wanted == "live":
            require_rich()
        self._wanted = wanted
        self._display: Display | None = None
        self.will_end = False
        self._is_over = False
        self._shown_at = -math.inf
        self._began = 0.0, 0.0  # the time, and what was spent then

    def show(self, progress: Callable[[], Progress], *, is_last: bool = False) -> None:
        """Show it, unless that was done a moment ago; the last state is always shown."""
        on_terminal = sys.stderr.isatty()
        if self._is_over or self._wanted is False or not (on_terminal or self._wanted is True):
            return
        now = time.monotonic()
        period = _TERMINAL_PERIOD if on_terminal else _LOG_PERIOD
        if not is_last and now - self._shown_at < period:
            return
        state = progress()
        if self._display is None:
            self._display = self._new_display(on_terminal)
            self._began = now, state.spent
        self._shown_at = now
        self._display.show(state, None if is_last else self._seconds_left(state, now))
        if is_last:
            self.end()
            self._is_over = True  # what other workers still evaluate changes nothing

    def end(self) -> None:
        """Say no more about what was shown; what is shown next begins anew."""
        self._is_over = False
        if self._display is not None:
            self._display.end()
            self._display = None

    def _new_display(self, on_terminal: bool) -> Display:
        if not on_terminal:
            return LogLines()
        if self._wanted == "live" and self.will_end:
            from mfhpo_optuna.study.loop.live_view import LiveView

            return LiveView()
        return TerminalLine()

    def _seconds_left(self, state: Progress, now: float) -> float | None:
        """A guess, by what was spent since this began."""
        began, spent_before = self._began
        spent = state.spent - spent_before
        if state.total is None or spent <= 0.0 or now - began < _EARLIEST_GUESS:
            return None
        return max(0.0, state.total - state.spent) * (now - began) / spent

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_display": None}  # which belongs to this process


def require_rich() -> None:
    """Raise ImportError if rich is not installed."""
    if find_spec("rich") is None:
        raise ImportError(
            "progress='live' needs rich, which is not installed; pip install 'mfhpo[live]'."
        )
