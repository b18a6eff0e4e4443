"""How many trials may run at once: what limits the search algorithm, and the cluster's size."""

import math
from collections.abc import Iterator
from typing import Any

import ray
from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter

from mfhpo_ray.experiment.prices import required_resources

MOST_SAMPLES = 1_000_000
"""More are meant as "without end"."""
_PARTS = 10_000  # of a resource: to these Ray rounds what it counts


def searchers_of(search: Any) -> Iterator[Any]:
    """Yield the searchers that a search algorithm wraps, the outermost first."""
    searcher = getattr(search, "searcher", None)
    while searcher is not None:
        yield searcher
        searcher = getattr(searcher, "searcher", None)


def suggests(search: Any) -> bool:
    """Return whether a search algorithm suggests trials one at a time instead of listing them."""
    return next(searchers_of(search), None) is not None


def live_trials(search: Any) -> set[str]:
    """Return the trials that a limiter counts as under way; a new set without a limiter."""
    limiter = _limiter_of(search)
    return set() if limiter is None else limiter.live_trials


def most_at_once(search: Any) -> float:
    """Return ``max_concurrent_trials``; infinite for no limit."""
    if isinstance(search, BasicVariantGenerator):
        return search.max_concurrent or math.inf
    limiter = _limiter_of(search)
    return math.inf if limiter is None else limiter.max_concurrent


def slots_for(trial: Trial) -> float:
    """Return how many trials like this one fit into the cluster, at least one."""
    if not ray.is_initialized():
        return math.inf
    there = ray.cluster_resources()
    needed = required_resources(trial)
    parts = {name: round(amount * _PARTS) for name, amount in needed.items()}
    fitting = [
        round(there.get(name, 0.0) * _PARTS) // amount for name, amount in parts.items() if amount
    ]
    return max(1.0, min(fitting, default=math.inf))


def expected_arms(search: Any, declared: int | None, n_arms: int, owner: str) -> int:
    """Return how many arms there will be, of which `n_arms` are known; those declared at most."""
    if search.is_finished():
        return min(n_arms, declared) if declared is not None and suggests(search) else n_arms
    expected = int(search.total_samples) if declared is None else declared
    if expected > MOST_SAMPLES:
        raise ValueError(
            f"{owner} needs the number of arms where the search goes on without end; give "
            f"arms=... to it, or num_samples to tune.TuneConfig."
        )
    return expected


def _limiter_of(search: Any) -> ConcurrencyLimiter | None:
    for searcher in searchers_of(search):
        if isinstance(searcher, ConcurrencyLimiter) and searcher._limit_concurrency:
            return searcher
    return None
