"""How long a trial may run, and how long the objective in this thread has run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mfhpo._validation import check_limit
from mfhpo_optuna.study.attributes import LIMIT_KEY

_clock: ContextVar[Callable[[], float] | None] = ContextVar("_clock", default=None)


def limit_of(attributes: Mapping[str, Any], number: int, limit: float | None) -> float | None:
    """The smaller of a trial's given limit and the one in its user attributes, None if neither.

    Raises TypeError or ValueError if the attribute is no positive number.
    """
    name = f"the user attribute {LIMIT_KEY!r} of trial {number}"
    limits = [check_limit(name, attributes.get(LIMIT_KEY)), limit]
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
    """How long the objective has run that this thread serves, or None if it serves none."""
    clock = _clock.get()
    return None if clock is None else clock()
