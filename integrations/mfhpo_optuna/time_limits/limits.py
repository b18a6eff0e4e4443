"""How long a trial may run, and how long the objective in this thread has run."""

from collections.abc import Callable
from contextvars import ContextVar

from optuna.trial import BaseTrial

from mfhpo_optuna.study.trials.attributes import LIMIT_KEY, read_attribute

# Returns the seconds that the objective has run which this thread serves; None without one.
objective_clock: ContextVar[Callable[[], float] | None] = ContextVar(
    "objective_clock", default=None
)


def limit_of(trial: BaseTrial, limit: float | None) -> float | None:
    """Return the smaller of a given limit and the one that a trial notes; None if neither."""
    limits = [read_attribute(trial, LIMIT_KEY), limit]
    return min((limit for limit in limits if limit is not None), default=None)
