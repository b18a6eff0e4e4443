"""The clock of the objective that a thread serves, for whoever is asked on its behalf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["objective_seconds", "serving"]

_clock: ContextVar[Callable[[], float] | None] = ContextVar("_clock", default=None)


@contextmanager
def serving(clock: Callable[[], float]) -> Iterator[None]:
    """Let `objective_seconds` tell what a clock shows, in this thread.

    Parameters
    ----------
    clock
        Returns the seconds that the objective has run.
    """
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


def objective_seconds() -> float | None:
    """How long the objective has run that this thread serves, or None if it serves none."""
    clock = _clock.get()
    return None if clock is None else clock()
