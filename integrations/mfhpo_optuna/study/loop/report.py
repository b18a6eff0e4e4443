"""Shows where a study stands: in a line of the terminal, or in lines of the log."""

import math
import shutil
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

import optuna

from mfhpo._validation import check_instance
from mfhpo.knowledge.fidelity import native
from mfhpo_optuna.study.loop.state import Progress

ProgressLike: TypeAlias = bool | None

# Seconds between two updates: a terminal's line is rewritten, a log's lines add up.
_TERMINAL_PERIOD = 0.2
_LOG_PERIOD = 5.0
# Seconds of an `optimize` before its end is guessed.
_EARLIEST_GUESS = 2.0

# Below "optuna.", so that optuna.logging.set_verbosity governs it.
_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class ProgressReport:
    """Shows now and then where a study stands, from its first trial to the end of `optimize`.

    `wanted` is what a sampler was given as `progress`. A terminal's line is rewritten in its place:
    the cursor waits at its beginning, so that a line of Optuna's log takes its place.
    """

    def __init__(self, wanted: ProgressLike) -> None:
        self._wanted = native(wanted)
        check_instance("progress", self._wanted, bool | None, "True, False or None")
        self._is_shown = self._has_line = False
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
        if not self._is_shown:
            self._is_shown, self._began = True, (now, state.spent)
        self._shown_at = now
        left = None if is_last else self._seconds_left(state, now)
        if on_terminal:
            self._has_line = True
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\x1b[K{state.line(left, width)}\r")
            sys.stderr.flush()
        else:
            _logger.info(state.line(left))
        if is_last:
            self.end()
            self._is_over = True  # what other workers still evaluate changes nothing

    def end(self) -> None:
        """Say no more about what was shown; what is shown next begins anew."""
        self._is_over = self._is_shown = False
        if self._has_line:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._has_line = False

    def _seconds_left(self, state: Progress, now: float) -> float | None:
        began, spent_before = self._began
        spent = state.spent - spent_before
        if state.total is None or spent <= 0.0 or now - began < _EARLIEST_GUESS:
            return None
        return max(0.0, state.total - state.spent) * (now - began) / spent

    def __getstate__(self) -> dict[str, object]:
        # What is shown belongs to this process.
        return self.__dict__ | {"_is_shown": False, "_has_line": False}
