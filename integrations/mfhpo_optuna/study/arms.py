"""The configurations of a study: as users give them, and each one's values as they become known."""

import math
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

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
from mfhpo_optuna.study.distributions import contains, described, drawn, from_unit, value_at
from mfhpo_optuna.study.trials.attributes import certificate_of, parameters_before

Params: TypeAlias = dict[str, Any]
ArmsLike: TypeAlias = int | Sequence[Mapping[str, Any]] | Mapping[str, BaseDistribution]

_DEFAULT_NUMBER = 32

BASELINE_KEY = "baseline"
"""The user attribute that is True for the trial of the configuration in use today."""


def draw_arms(
    distributions: Mapping[str, BaseDistribution], n: int = _DEFAULT_NUMBER, seed: int = 0
) -> list[Params]:
    """Draw different configurations that fill the space evenly: those of a Latin hypercube.

    Each parameter takes a value from each of `n` equally likely parts of its range.

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
        return _grid(distributions)
    hypercube, drawn = LatinHypercube(n, seed), {}
    for arm in range(n):
        params = {name: hypercube.draw(arm, name, value) for name, value in distributions.items()}
        drawn[repr(params)] = params
    return list(drawn.values())


def given_arms(arms: ArmsLike, owned: Collection[str], seed: int) -> int | list[Params]:
    """Return a checked list of configurations, or how many are to be drawn."""
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        return check_count("arms", int(arms), 1, MOST_ARMS)
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


def _grid(distributions: Mapping[str, BaseDistribution]) -> list[Params]:
    """Return all configurations of a finite space, in which the first parameter changes first."""
    values: list[list[Any]] = []
    for distribution in distributions.values():
        n = int(_size(distribution))
        if isinstance(distribution, IntDistribution) and distribution.log:
            # The same values with equal weights, so that the grid meets each of them.
            distribution = IntDistribution(distribution.low, distribution.high)
        values.insert(0, [from_unit((choice + 0.5) / n, distribution) for choice in range(n)])
    return [dict(zip(distributions, reversed(arm), strict=True)) for arm in product(*values)]


class LatinHypercube:
    """Draws values that fill each range evenly: a function of (seed, name, arm)."""

    def __init__(self, n: int, seed: int) -> None:
        self._n = n
        self._seed = seed
        self._columns: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}

    def draw(self, arm: int, name: str, distribution: BaseDistribution) -> Any:
        """Return an arm's value of a parameter."""
        column = self._columns.get(name)
        if column is None:
            rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
            column = (rng.permutation(self._n) + rng.random(self._n)) / self._n
            self._columns[name] = column
        return from_unit(float(column[arm]), distribution)


@dataclass
class Known:
    """A configuration, as far as it is known."""

    params: Params = field(default_factory=dict)
    given: frozenset[str] = frozenset()  # names of what a list has said
    distributions: dict[str, BaseDistribution] = field(default_factory=dict)
    first: FrozenTrial | None = None  # the first trial that evaluated it and ended
    expected: set[str] = field(default_factory=set)  # names of what was enqueued, and not yet told
    centres: Params = field(default_factory=dict)  # values that it is to be near
    told_by: int | None = None  # the first trial that suggested anything for it
    # What the first whole trial at each level asked for.
    whole: dict[int, tuple[int, Params]] = field(default_factory=dict)


class Values:
    """The values of configurations; a number stands for one of a list, or for a draw.

    `given` is the list, or how many draws fill the space evenly. The sampler decides the `owned`
    parameters, which are part of no configuration.
    """

    def __init__(self, given: int | list[Params], owned: Collection[str], seed: int) -> None:
        self.is_declared = not isinstance(given, int)
        self.owned = frozenset(owned)
        self._seed = seed
        self.n_even = given if isinstance(given, int) else 0  # the first draws fill the space
        self._hypercube = LatinHypercube(self.n_even, seed)
        listed = [] if isinstance(given, int) else given
        self._known = {arm: Known(dict(p), frozenset(p)) for arm, p in enumerate(listed)}
        self.is_overturned = False  # whether what was judged by is not the first trial's any more

    def __getitem__(self, arm: int) -> Known:
        """Return what is known about a configuration."""
        return self._known.setdefault(arm, Known())

    def planned(
        self,
        arm: int,
        name: str,
        distribution: BaseDistribution,
        point: Mapping[str, float] | None = None,
    ) -> Any:
        """Return the value that a draw has, as long as no trial says otherwise."""
        known = self[arm]
        if name in known.expected and not contains(distribution, known.params[name]):
            known.expected.discard(name)
            del known.params[name]
        if name in known.params:
            return known.params[name]
        if arm < self.n_even:
            return self._hypercube.draw(arm, name, distribution)
        place = (point or {}).get(name)
        if place is None:
            return drawn(self._seed, arm, name, distribution, known.centres)
        return value_at(place, distribution)

    def configuration(self, params: Mapping[str, Any]) -> Params:
        """Return parameters without those that the sampler decides."""
        return {name: value for name, value in params.items() if name not in self.owned}

    def see(self, arm: int, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
        """Learn what a configuration is: its first trial has its way, within the ranges."""
        known, told = self[arm], self.configuration(params)
        outside = outside_ranges(trial) & told.keys()
        for name in outside:
            del told[name]
        for name in outside & known.expected:
            del known.params[name]
        known.expected -= {*outside, *told}
        if told and (known.told_by is None or trial.number < known.told_by):
            known.told_by = trial.number
            known.params |= {n: v for n, v in told.items() if n not in known.given}
        for name, value in told.items():
            known.params.setdefault(name, value)
        for name in told.keys() & trial.distributions.keys():
            known.distributions.setdefault(name, trial.distributions[name])

    def end(self, arm: int, level: int, trial: FrozenTrial) -> bool:
        """Learn from a trial with a value; False if it evaluated something else.

        The first one at each level says which parameters there are: then all must have the same.
        """
        if outside_ranges(trial):
            return False
        known, now = self[arm], self.configuration(trial.params)
        number, first = known.whole.get(level, (trial.number, now))
        if number >= trial.number:
            self.is_overturned |= described(now) != described(first)
            known.whole[level] = trial.number, now
            first = now
        return bool(described(now) == described(first)) and self.is_of(arm, trial)

    def is_of(self, arm: int, trial: FrozenTrial) -> bool:
        """Return whether a trial evaluates a configuration, as far as it came."""
        known = self[arm].params
        for name, value in self.configuration(trial.params).items():
            if name in known and described(known[name]) != described(value):
                return False
        return True


def outside_ranges(trial: FrozenTrial) -> set[str]:
    """Return the parameters of a trial out of their ranges, as enqueued and added ones may be."""
    asked = trial.distributions
    return {name for name, value in trial.params.items() if not contains(asked[name], value)}


def is_baseline(trial: FrozenTrial) -> bool:
    """Return whether a trial is marked as the baseline, and was evaluated as it was given."""
    is_marked = trial.user_attrs.get(BASELINE_KEY) is True and certificate_of(trial) is None
    return is_marked and not (trial.state.is_finished() and fault_of_baseline(trial))


def fault_of_baseline(trial: FrozenTrial) -> str:
    """Return what is wrong with the parameters that a baseline was given, "" for nothing."""
    if trial.user_attrs.get(BASELINE_KEY) is not True or not trial.params:
        return ""
    given: Params = trial.system_attrs.get("fixed_params", trial.params)
    if not given:
        return "it has no parameters"
    if missing := sorted(given.keys() - trial.params.keys()):
        return f"the objective does not ask for {missing[0]!r}"
    wrong = (name for name in given if not contains(trial.distributions[name], given[name]))
    name = next(wrong, None)
    return "" if name is None else f"{name}={given[name]!r} is not in {trial.distributions[name]}"


def enqueue_baseline(study: optuna.Study, params: Mapping[str, Any] | None) -> None:
    """Enqueue the baseline, if there is one, unless a trial of the study is marked as such."""
    if params is not None and not any(map(is_baseline, study.get_trials(deepcopy=False))):
        study.enqueue_trial(dict(params), user_attrs={BASELINE_KEY: True})


def marked_baseline(study: optuna.Study) -> Params | None:
    """Return the parameters of the last trial that is marked; None without one."""
    trials = [*filter(is_baseline, study.get_trials(deepcopy=False))]
    return trials[-1].params or parameters_before(trials[-1]) if trials else None
