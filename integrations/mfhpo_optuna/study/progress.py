"""One line that says where a race or a game stands."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mfhpo_optuna.study.race import Race

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


def progress_text(race: Race) -> str:
    """Arms left, fidelity, cost spent, and the leader with its interval.

    Raises
    ------
    ValueError
        If the levels of the fidelity are not known yet.
    """
    policy = race.policy
    if policy is None:
        raise ValueError("the race has not begun: no trial has asked for the fidelity yet.")
    arm, mean, interval, fidelity = policy.leader()
    phase = (
        "pilot"
        if policy.piloting
        else f"{race.fidelity.name}={_level(race.levels[policy.fidelity])}"
    )
    arms = f"{len(policy.active)}/{len(race.arms)} arms {'left' if race.certifies else 'in play'}"
    text = f"{arms} | {phase} | cost {policy.cost:.6g}"
    if arm is None:
        return f"{text} | every arm failed"
    low, high = sorted(race.sign * bound for bound in interval)
    if high - low < float("inf"):
        # Of all levels together: the mean of a single one need not lie within.
        return f"{text} | leader: arm {arm} in [{low:.4g}, {high:.4g}]"
    leader = f"leader: arm {arm}, {race.sign * mean:.4g}"
    count, _, half = policy.summary(arm, fidelity)
    width = f"± {half:.2g}" if half < float("inf") else f"({count} values)"
    return f"{text} | {leader} {width} at {race.fidelity.name}={_level(race.levels[fidelity])}"


def _level(level: object) -> str:
    return f"{level:.4g}" if isinstance(level, float) else str(level)
