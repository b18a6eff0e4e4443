"""Parameters that look like a seed, a split or a fold, and were not declared as the replicate."""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from mfhpo.knowledge.arrays import FloatArray

_SEED_WORDS = {"split", "fold", "seed", "rng", "cv", "replicate", "repeat"}
# With one of these, a name counts or bounds something: "min_samples_split", "n_repeat".
_AMOUNT_WORDS = {"min", "max", "n", "num", "number", "count", "size"}

# A range of integers that is wider than this may be one of seeds.
_WIDE = 10_000
# So many different values are looked at, once. Nearly all given or drawn races have as many arms.
_LOOKED_AT = 30
# Standard errors of Spearman's correlation, and of the likeness of neighbours, beyond which results
# depend on where the values lie: those of seeds seem to in 2 % of cases.
_MONOTONE, _NEIGHBOURS = 2.6, 2.05


class ForgottenReplicateWarning(UserWarning):
    """A parameter looks like a seed, a split or a fold, and is not the replicate."""


class ForgottenReplicate:
    """Finds the first parameter of a study that looks like a replicate, from its trials.

    `owned` are the parameters that are no part of a configuration, such as the fidelity.
    """

    def __init__(self, owned: Collection[str]) -> None:
        self._owned = frozenset(owned)
        self._first: dict[str, Any] = {}  # value of each parameter
        # Results by value, for each wide range at each level.
        self._results: dict[tuple[str, str], dict[int, float]] = {}
        self._looked_at: set[str] = set()
        self.notice = ""  # what was found, in words

    def learn(
        self,
        params: Mapping[str, Any],
        distributions: Mapping[str, BaseDistribution],
        result: float | None,
    ) -> None:
        """Learn from an evaluation, without a result if it gave none."""
        level = repr([params.get(owned) for owned in sorted(self._owned)])
        for name, value in params.items():
            if self.notice or name in self._owned:
                continue
            distribution, seen = distributions[name], ""
            if self._first.setdefault(name, value) != value and _is_named(name, distribution):
                seen = "by its name"
            elif name not in self._looked_at and isinstance(distribution, IntDistribution):
                is_wide = distribution.step == 1 and distribution.high - distribution.low > _WIDE
                if distribution.log or not is_wide:
                    continue
                results = self._results.setdefault((name, level), {})
                if result is not None and math.isfinite(result):
                    results.setdefault(value, result)
                if len(results) < _LOOKED_AT:
                    continue
                self._looked_at.add(name)
                if not _depends_on_place(np.array([results[place] for place in sorted(results)])):
                    place = f"where it lies in {distribution.low} to {distribution.high}"
                    seen = f"no dependence on {place} was seen in {_LOOKED_AT} results"
            if seen:
                self.notice = (
                    f"{name!r} looks like a seed, a split or a fold ({seen}), and it is not the "
                    f"replicate. Each configuration keeps one value of it for ever, and its "
                    f"interval says nothing about the others. Declare replicate={name!r}; or draw "
                    f"it with mfhpo_optuna.seed_of(trial), and leave it out of the parameters"
                )


def _is_named(name: str, distribution: BaseDistribution) -> bool:
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    if words & _AMOUNT_WORDS or not (words & _SEED_WORDS or {"random", "state"} <= words):
        return False
    if isinstance(distribution, CategoricalDistribution):
        return all(type(choice) is int for choice in distribution.choices)
    return isinstance(distribution, IntDistribution) and not distribution.log


def _depends_on_place(results: FloatArray) -> bool:
    """Return whether results depend on the place of their values, in whose order they come.

    By Spearman's correlation, and by von Neumann's ratio of ranks (Bartels 1982).
    """
    n = len(results)
    _, place_of, counts = np.unique(results, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2.0 - n / 2.0)[place_of]  # equal ones share theirs
    places = np.arange(n) - (n - 1) / 2.0
    squares = float(ranks @ ranks)
    if squares == 0.0:
        return True  # nothing is known
    monotone = abs(float(ranks @ places)) / math.sqrt(squares * float(places @ places))
    ratio = float(np.square(np.diff(ranks)).sum()) / squares
    is_monotone = monotone * math.sqrt(n - 1) > _MONOTONE
    return is_monotone or (2.0 - ratio) * math.sqrt(n) / 2.0 > _NEIGHBOURS
