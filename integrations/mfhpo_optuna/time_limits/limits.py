"""How long a trial may run, and how long the objective in this thread has run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from optuna.trial import BaseTrial

from mfhpo_optuna.study.trials.attributes import LIMIT_KEY, read_attribute

_clock: ContextVar[Callable[[], float] | None] = ContextVar("_clock", default=None)


def limit_of(trial: BaseTrial, limit: float | None) -> float | None:
    """Return the smaller of a given limit and the one that a trial notes; None if neither."""
    limits = [read_attribute(trial, LIMIT_KEY), limit]
    return min((limit for limit in limits if limit is not None), default=None)


@contextmanager
def serving(clock: Callable[[], float]) -> Iterator[None]:
    """Let `objective_seconds` return what `clock` returns, in this thread."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


def objective_seconds() -> float | None:
    """Return how long the objective has run that this thread serves; None without one."""
    clock = _clock.get()
    return None if clock is None else clock()
