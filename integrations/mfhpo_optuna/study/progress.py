"""One line that says where a race or a game stands."""

from __future__ import annotations

import sys
import time
from typing import Protocol

__all__ = ["HasProgress", "ProgressLine"]

# Seconds between two updates: a terminal's line is rewritten, a log's lines add up.
_TERMINAL_PERIOD = 0.1
_LOG_PERIOD = 5.0


class HasProgress(Protocol):
    """What has a line to show: a race, a game."""

    def progress_text(self) -> str:
        """The line."""
        ...


class ProgressLine:
    """Writes where a race or a game stands to standard error, on a terminal in one line.

    Parameters
    ----------
    wanted
        Whether to write; None writes to terminals only.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = wanted
        self._written_at = 0.0

    def show(self, race: HasProgress) -> None:
        """Write the line, unless the last one is too recent."""
        terminal = sys.stderr.isatty()
        if not (terminal if self._wanted is None else self._wanted):
            return
        now = time.monotonic()
        if now - self._written_at < (_TERMINAL_PERIOD if terminal else _LOG_PERIOD):
            return
        self._written_at = now
        self._write(race, terminal)

    def close(self, race: HasProgress) -> None:
        """Write the last state and end the line."""
        terminal = sys.stderr.isatty()
        if terminal if self._wanted is None else self._wanted:
            self._write(race, terminal)
            if terminal:
                sys.stderr.write("\n")

    def _write(self, race: HasProgress, terminal: bool) -> None:
        line = race.progress_text()
        sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
