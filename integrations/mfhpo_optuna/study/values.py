"""The values of each configuration by name: given, told by a trial, or drawn when asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from mfhpo_optuna.study.arms import LatinHypercube, Params
from mfhpo_optuna.study.distributions import contains, described, drawn, drawn_near, value_at


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
        if name in known.centres:
            return drawn_near(known.centres[name], self._seed, arm, name, distribution)
        place = (point or {}).get(name)
        if place is None:
            return drawn(self._seed, arm, name, distribution)
        return value_at(place, distribution)

    def configuration(self, params: Mapping[str, Any]) -> Params:
        """Return parameters without those that the sampler decides."""
        return {name: value for name, value in params.items() if name not in self.owned}

    def see(self, arm: int, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
        """Learn from a trial what a configuration is; its first trial has its way.

        What was enqueued outside the objective's ranges is no configuration's.
        """
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

    def expect(self, arm: int, params: Params) -> None:
        """Learn what the objective will be given for a draw, unless a trial has said otherwise."""
        known = self[arm]
        known.expected |= params.keys() - known.params.keys()
        for name, value in params.items():
            known.params.setdefault(name, value)

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
