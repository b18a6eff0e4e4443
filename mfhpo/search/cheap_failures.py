"""Failures at cheap levels, and what follows for the configuration and the level."""

from collections.abc import Sequence
from dataclasses import dataclass, field

# Configurations without any value below that were evaluated at a level, before it may be left.
_FEWEST = 5
# Once so many that failed at a level have failed at the target, too, it is not the level's fault...
_ENOUGH_LOST = 2
# ... unless at least this share of those that were tried above it gave a value there.
_SHARE_RECOVERED = 1.0 / 3.0


@dataclass
class _Level:
    failed: dict[int, None] = field(default_factory=dict)  # in their order
    recovered: int = 0  # how many of these had a value above it later
    lost: int = 0  # how many were given up at the target


class CheapFailures:
    """Keeps count of configurations that failed at a level before they had any value.

    An evaluation that is too cheap may fail for that reason: twenty samples have no fifty
    neighbours. So who fails below the target may be tried at the next higher level. A level is too
    low if more than half of at least five configurations fail there, and one of these had a value
    above it.
    """

    def __init__(self, n_levels: int) -> None:
        self._levels = [_Level() for _ in range(n_levels)]
        self.lowest = 0  # the level at which new configurations begin
        self._given_up: dict[int, int] = {}  # the highest level, by arm
        self.failed_up_to: dict[int, int] = {}  # the same, of failures that may not be for good

    @property
    def given_up(self) -> set[int]:
        """Arms without a value that failed at some level for good."""
        return set(self._given_up)

    def highest(self, arm: int) -> int:
        """Return the highest level at which an arm without a value failed for good, or -1."""
        return self._given_up.get(arm, -1)

    def at(self, level: int) -> list[int]:
        """Return the arms that have failed at a level, also those that had a value above it."""
        return list(self._levels[level].failed)

    def add(self, arm: int, level: int) -> None:
        """Note that an arm without a value has failed at a level."""
        self._levels[level].failed[arm] = None
        self.failed_up_to[arm] = max(level, self.failed_up_to.get(arm, -1))

    def give_up(self, arm: int, level: int) -> None:
        """Note that an arm has failed at a level for good."""
        self._given_up[arm] = max(level, self.highest(arm))
        if level == len(self._levels) - 1:
            for below in self._levels[:-1]:
                below.lost += arm in below.failed

    def recover(self, arm: int, level: int) -> bool:
        """Note an arm's first value; return whether it had failed at the same level."""
        self._given_up.pop(arm, None)
        self.failed_up_to.pop(arm, None)
        for below in self._levels[:level]:
            below.recovered += arm in below.failed
        had_failed = arm in self._levels[level].failed
        for above in self._levels[level:]:
            above.failed.pop(arm, None)
        return had_failed

    def condemns(self, level: int) -> bool:
        """Return whether who fails at a level is taken to fail at the target as well."""
        here = self._levels[level]
        tried = here.lost + here.recovered
        return here.lost >= _ENOUGH_LOST and here.recovered < _SHARE_RECOVERED * tried

    def chance(self, arm: int) -> float:
        """Return how likely an arm is to give a value above the level where it was given up.

        It is the share of those that did, with one more of either kind.
        """
        if arm not in self._given_up:
            return 1.0
        here = self._levels[self._given_up[arm]]
        return (here.recovered + 1) / (here.recovered + here.lost + 2)

    def rise(self, n_values: Sequence[int]) -> None:
        """Leave the first level that is too low, where so many arms have values at each level."""
        for level in range(self.lowest, len(self._levels) - 1):
            if self.are_of_level(level, n_values[level]):
                self.lowest = level + 1
                return

    def are_of_level(self, level: int, n_values: int) -> bool:
        """Return whether a level is too low, at which so many arms have a value."""
        return self._levels[level].recovered > 0 and self._are_many(level, n_values)

    def are_unexplained(self, level: int, n_values: int) -> bool:
        """Return whether most fail at a level, and none that failed had a value above it yet."""
        return self._levels[level].recovered == 0 and self._are_many(level, n_values)

    def _are_many(self, level: int, n_values: int) -> bool:
        n_failed = len(self._levels[level].failed)
        is_most = n_failed > n_values and n_failed + n_values >= _FEWEST
        return is_most and not self.condemns(level)
