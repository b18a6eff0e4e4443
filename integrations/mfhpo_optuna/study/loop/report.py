"""Shows where a study stands: in a line of the terminal, or in lines of the log."""

import math
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import optuna

from mfhpo._validation import check_instance
from mfhpo.knowledge.fidelity import native
from mfhpo.racing.text import clean

ProgressLike: TypeAlias = bool | None

# Seconds between two updates: a terminal's line is rewritten, a log's lines add up.
_TERMINAL_PERIOD = 0.2
_LOG_PERIOD = 5.0

_SEPARATOR = " | "

# Below "optuna.", so that optuna.logging.set_verbosity governs it.
_logger = optuna.logging.get_logger(f"optuna.{__name__}")


@dataclass(frozen=True)
class Progress:
    """Where it stands, in the words that a line shows."""

    phase: str  # what is being done, such as "search"
    configurations: str  # how many are left, or were tried
    leader: str  # the best so far, with its interval; "" if there is none yet
    spent: float
    total: float | None  # None if nobody knows
    unit: str = "cost"  # or "trials", "seconds"
    is_guess: bool = False  # whether the total is a guess at what a certificate takes
    has_end: bool = True  # whether it ends by itself at all

    @property
    def spending(self) -> str:
        """The amount that was spent, and of how much."""
        text = f"{self.unit} {self._number(self.spent)}"
        if self.total is None or (self.is_guess and self.total <= self.spent):
            return text
        total, about = self.total, ""
        if self.is_guess and total > 0.0:  # two digits of it
            total, about = round(total, 1 - math.floor(math.log10(total))), "~"
        return f"{text}/{about}{self._number(total)}"

    def line(self, width: int | None = None) -> str:
        """Return all of it in one line; drop the first parts where it would be too wide."""
        parts = [self.phase, self.configurations, self.leader, self.spending]
        shown = [clean(part) for part in parts if part]
        while width is not None and len(shown) > 1 and len(_SEPARATOR.join(shown)) > width:
            del shown[0]
        return _SEPARATOR.join(shown)[:width]

    def _number(self, amount: float) -> str:
        return f"{amount:,.4g}" if self.unit == "seconds" and amount < 1e4 else f"{amount:,.6g}"


def is_shown(wanted: ProgressLike) -> bool:
    """Return whether progress is shown: None means on a terminal only."""
    return sys.stderr.isatty() if wanted is None else bool(wanted)


def say(words: str, wanted: ProgressLike) -> None:
    """Say something in the log, if progress is shown."""
    if is_shown(wanted):
        _logger.info(words)


class ProgressReport:
    """Shows now and then where a study stands, if that is `wanted`, until `optimize` ends."""

    def __init__(self, wanted: ProgressLike) -> None:
        self._wanted = native(wanted)
        check_instance("progress", self._wanted, bool | None, "True, False or None")
        self._has_line = self._is_over = False
        self._shown_at = -math.inf

    def show(self, progress: Callable[[], Progress], *, is_last: bool = False) -> None:
        """Show it, unless that was done a moment ago; the last state is always shown."""
        on_terminal = sys.stderr.isatty()
        if self._is_over or not is_shown(self._wanted):
            return
        now = time.monotonic()
        period = _TERMINAL_PERIOD if on_terminal else _LOG_PERIOD
        if not is_last and now - self._shown_at < period:
            return
        self._shown_at = now
        if on_terminal:
            self._has_line = True
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\x1b[K{progress().line(width)}\r")
            sys.stderr.flush()
        else:
            _logger.info(progress().line())
        if is_last:
            self.end()
            self._is_over = True  # what other workers still evaluate changes nothing

    def end(self) -> None:
        """Say no more about what was shown; what is shown next begins anew."""
        self._is_over = False
        if self._has_line:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._has_line = False
