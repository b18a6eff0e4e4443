"""One line that says where a race or a game stands."""

import sys
import time
from collections.abc import Callable

# Seconds between two updates: a terminal's line is rewritten, a log's lines add up.
_TERMINAL_PERIOD = 0.1
_LOG_PERIOD = 5.0


class ProgressLine:
    """Writes where a race or a game stands to standard error, on a terminal in one line.

    If it is `wanted`; None: to terminals only.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = wanted
        self._written_at = 0.0

    def show(self, text: Callable[[], str], *, is_last: bool = False) -> None:
        """Write the line, unless the last one is too recent; the last state ends it."""
        terminal = sys.stderr.isatty()
        if not (terminal if self._wanted is None else self._wanted):
            return
        now = time.monotonic()
        if not is_last:
            if now - self._written_at < (_TERMINAL_PERIOD if terminal else _LOG_PERIOD):
                return
            self._written_at = now
        end = "\n" if is_last or not terminal else ""
        sys.stderr.write(f"\r\x1b[K{text()}{end}" if terminal else f"{text()}{end}")
        sys.stderr.flush()
