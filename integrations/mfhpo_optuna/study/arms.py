"""The arms of a race: which parameters each of them stands for."""

import math
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mfhpo._validation import (
    MOST_ARMS,
    check_configurations,
    check_count,
    check_dictionaries,
    check_instance,
    check_name,
    check_parameters,
    shown,
)
from mfhpo.knowledge.fidelity import native
from mfhpo_optuna.study.places import from_unit

Params: TypeAlias = dict[str, Any]
ArmsLike: TypeAlias = int | Sequence[Mapping[str, Any]] | Mapping[str, BaseDistribution]

_DEFAULT_NUMBER = 32


def draw_arms(
    distributions: Mapping[str, BaseDistribution], n: int = _DEFAULT_NUMBER, seed: int = 0
) -> list[Params]:
    """Draw different configurations that fill the space evenly.

    Those of a Latin hypercube: each parameter takes a value from each of `n` equally likely parts
    of its range. Raises TypeError if anything but a distribution is given.

    Parameters
    ----------
    distributions
        Optuna's distributions, by the names of the parameters.
    n
        How many to draw. They are fewer where a finite space gives repeats; one with at most `n`
        configurations is returned whole.
    seed
        Makes the draw repeatable.

    Examples
    --------
    >>> from optuna.distributions import FloatDistribution
    >>> [round(arm["lr"], 1) for arm in draw_arms({"lr": FloatDistribution(0, 4)}, n=2, seed=1)]
    [3.6, 0.1]
    """
    check_instance("distributions", distributions, Mapping, "a dictionary of distributions")
    if not distributions:
        raise ValueError("distributions must not be empty; give {name: distribution, ...}.")
    check_count("n", n, 1, MOST_ARMS)
    return _drawn("distributions", distributions, n, check_count("seed", seed, 0))


def _drawn(
    argument: str, distributions: Mapping[str, BaseDistribution], n: int, seed: int
) -> list[Params]:
    for name, distribution in distributions.items():
        check_name(f"a parameter of {argument}", name)
        if not isinstance(distribution, BaseDistribution):
            raise TypeError(
                f"{argument}[{name!r}] must be a distribution such as FloatDistribution(0, 1), got "
                f"{shown(distribution)}; give configurations as a list of dictionaries."
            )
    grid_size = math.prod(_size(distribution) for distribution in distributions.values())
    if grid_size <= n:
        return _grid(distributions, int(grid_size))
    hypercube = _LatinHypercube(n, seed)
    drawn = [
        {name: hypercube.draw(arm, name, value) for name, value in distributions.items()}
        for arm in range(n)
    ]
    return list({repr(params): params for params in drawn}.values())


@dataclass
class Arm:
    """An arm, as far as it is known."""

    params: Params = field(default_factory=dict)
    distributions: dict[str, BaseDistribution] = field(default_factory=dict)
    # Number of the first trial that was tagged with the arm, and whether one came to its end.
    first_trial: int | None = None
    decided: bool = False


class Arms:
    """Parameters of every arm, declared or learned from the trials that were tagged with it.

    `owned` are the parameters that the sampler itself decides, such as the fidelity: no arm may
    contain them.
    """

    def __init__(self, arms: ArmsLike, owned: Collection[str], seed: int) -> None:
        self.declared = isinstance(arms, bool) or not isinstance(arms, Integral)
        self._arms = [Arm(params) for params in _listed(arms, owned, seed)]
        self.owned = frozenset(owned)
        self._hypercube = _LatinHypercube(len(self._arms), seed)
        self._owner: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._arms)

    def params(self, arm: int) -> Params:
        """Return the known parameters of an arm, without those that the sampler decides."""
        return self._arms[arm].params

    def distributions(self, arm: int) -> dict[str, BaseDistribution]:
        """Return the distributions with which its parameters were suggested."""
        return self._arms[arm].distributions

    def is_new(self, arm: int) -> bool:
        """Return whether no trial was tagged with the arm, and nothing was declared about it."""
        entry = self._arms[arm]
        return not self.declared and entry.first_trial is None and not entry.params

    def suggest(self, arm: int, name: str, distribution: BaseDistribution) -> Any:
        """Return the arm's value of a parameter, drawn now if it was never asked for."""
        entry = self._arms[arm]
        if name not in entry.params:
            entry.params[name] = self._hypercube.draw(arm, name, distribution)
        return entry.params[name]

    def begun(self, arm: int, trial: int, params: Params) -> None:
        """Note what a running trial has suggested; the first trial of an arm has its way."""
        entry = self._arms[arm]
        if entry.first_trial is None or trial < entry.first_trial:
            entry.first_trial = trial
        if trial == entry.first_trial and not self.declared and not entry.decided:
            entry.params.update(self._without_owned(params))

    def remember(self, arm: int, params: Params) -> None:
        """Keep what a trial without a value was to evaluate, as far as nothing is known."""
        entry = self._arms[arm]
        if not self.declared and not entry.decided:
            entry.params = {**self._without_owned(params), **entry.params}

    def adopt(
        self, arm: int, params: Params, distributions: dict[str, BaseDistribution], *, whole: bool
    ) -> bool:
        """Learn what an arm is from a finished trial; False if it evaluated something else.

        The first trial that came to its end (`whole`) decides what the arm is.
        """
        entry = self._arms[arm]
        params = self._without_owned(params)
        if whole and not self.declared and not entry.decided:
            entry.params = params
        elif any(entry.params.get(name, value) != value for name, value in params.items()):
            return False
        if whole:
            entry.decided = True
            for name, value in params.items():
                entry.params.setdefault(name, value)
                entry.distributions[name] = distributions[name]
        return True

    def owner(self, arm: int, params: Params) -> int:
        """Return the first arm with the parameters that a whole trial had at the target.

        Declared arms are different by declaration.
        """
        if self.declared:
            return arm
        key = repr(sorted(self._without_owned(params).items()))
        return self._owner.setdefault(key, arm)

    def maybe_equal(self, other: int, arms: Collection[int]) -> list[int]:
        """Return those of some arms that may turn out to be drawn equal to another one."""
        if self.declared:
            return []
        params = self.params(other).items()
        return [arm for arm in arms if self.params(arm).items() <= params]

    def never_asked(self, arm: int, params: Params) -> list[str]:
        """Return names that were declared for an arm, but that a whole trial did not ask for."""
        return sorted(set(self._arms[arm].params) - set(params)) if self.declared else []

    def _without_owned(self, params: Params) -> Params:
        return {name: value for name, value in params.items() if name not in self.owned}

    def known_as(self, fixed: Mapping[str, Any]) -> int | None:
        """Return the first arm whose parameters are known to be these."""
        for arm, entry in enumerate(self._arms):
            known = entry.params
            if known and all(name in known and known[name] == fixed[name] for name in fixed):
                return arm
        return None

    def matching(self, fixed: Mapping[str, Any]) -> int | None:
        """Return the arm of fixed parameters; an arm that is still new takes them up."""
        known = self.known_as(fixed)
        if known is not None:
            return known
        for arm in range(len(self._arms)):
            if self.is_new(arm):
                self._arms[arm].params.update(fixed)
                return arm
        return None


def _listed(arms: ArmsLike, owned: Collection[str], seed: int) -> list[Params]:
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        return [{} for _ in range(check_count("arms", int(arms), 1, MOST_ARMS))]
    if isinstance(arms, Mapping):
        if not arms:
            raise ValueError("arms={} has no parameters; give {name: distribution, ...}.")
        check_parameters("arms", arms, owned)
        return _drawn("arms", arms, _DEFAULT_NUMBER, seed)
    right = "a number, a list of parameter dictionaries or a dictionary of distributions"
    rows = check_dictionaries("arms", arms, right)
    if not rows:
        raise ValueError("arms=[] is empty; give at least one configuration.")
    listed = [{name: native(value) for name, value in arm.items()} for arm in rows]
    check_configurations("arms", listed, owned=owned)
    names: set[str] = set().union(*listed)
    for position, arm in enumerate(listed):
        if set(arm) != names:
            missing = ", ".join(repr(name) for name in sorted(names - set(arm)))
            warnings.warn(
                f"arms have different keys: arms[{position}]={arm} lacks {missing}; if the "
                f"objective asks for it there, the sampler draws a value. Give every arm the same "
                f"keys unless the space is conditional.",
                stacklevel=4,
            )
            break
    return listed


def _size(distribution: BaseDistribution) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step + 1
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return math.floor((distribution.high - distribution.low) / distribution.step + 1e-9) + 1
    return 1 if distribution.single() else float("inf")


def _grid(distributions: Mapping[str, BaseDistribution], size: int) -> list[Params]:
    arms: list[Params] = []
    for index in range(size):
        params: Params = {}
        for name, distribution in distributions.items():
            choices = int(_size(distribution))
            index, choice = divmod(index, choices)
            params[name] = from_unit((choice + 0.5) / choices, _linear(distribution))
        arms.append(params)
    return arms


def _linear(distribution: BaseDistribution) -> BaseDistribution:
    """Return the same values with equal weights, so that a grid meets each of them."""
    if isinstance(distribution, IntDistribution) and distribution.log:
        return IntDistribution(distribution.low, distribution.high)
    return distribution


class _LatinHypercube:
    """One stratified column per parameter name: a function of (seed, name, arm), no state."""

    def __init__(self, n: int, seed: int) -> None:
        self._n = n
        self._seed = seed
        self._columns: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}

    def draw(self, arm: int, name: str, distribution: BaseDistribution) -> Any:
        column = self._columns.get(name)
        if column is None:
            rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
            column = (rng.permutation(self._n) + rng.random(self._n)) / self._n
            self._columns[name] = column
        return from_unit(float(column[arm]), distribution)
