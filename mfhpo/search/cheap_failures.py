"""What failures at cheap levels mean: for the configuration, and for the level."""

from dataclasses import dataclass, field

# Configurations without any value below that have come to an end at a level, before it may be left.
_FEWEST = 5
# Once so many that failed at a level have failed at the target, too, it is not the level's fault...
_ENOUGH_LOST = 2
# ... unless at least this share of those that were tried above it gave a value there.
_SHARE_RECOVERED = 1.0 / 3.0


@dataclass
class _Level:
    failed: dict[int, None] = field(default_factory=dict)  # in their order
    recovered: int = 0  # how many of these had a value above it later
    lost: int = 0  # how many failed at the target, too


class CheapFailures:
    """Keeps count of configurations that failed for good at a level before they had any value.

    An evaluation that is too cheap may fail for that reason: twenty samples have no fifty
    neighbours. So who fails below the target may be tried at the next higher level. A level
    condemns only once two that failed there have failed at the target as well, and fewer than a
    third of those that were tried above it gave a value.

    A level is too low if more than half of the configurations fail there, five at least have come
    to an end, and one that failed had a value above it. All of it is a function of what was told.

    Parameters
    ----------
    n_levels
        Number of levels; the last one is the target.
    """

    def __init__(self, n_levels: int) -> None:
        self._levels = [_Level() for _ in range(n_levels)]
        self._highest: dict[int, int] = {}

    @property
    def arms(self) -> set[int]:
        """Arms that failed at some level for good and have no value yet."""
        return set(self._highest)

    def highest(self, arm: int) -> int:
        """Return the highest level at which an arm without a value has failed, or -1."""
        return self._highest.get(arm, -1)

    def at(self, level: int) -> list[int]:
        """Return the arms that have failed at a level, also those that had a value above it."""
        return list(self._levels[level].failed)

    def add(self, arm: int, level: int) -> None:
        """Note that an arm without a value has failed at a level for good."""
        self._levels[level].failed[arm] = None
        self._highest[arm] = max(level, self.highest(arm))
        if level == len(self._levels) - 1:
            for below in self._levels[:-1]:
                below.lost += arm in below.failed

    def recover(self, arm: int, level: int) -> None:
        """Note an arm's first value."""
        if self._highest.pop(arm, -1) < 0:
            return
        for below in self._levels[:level]:
            below.recovered += arm in below.failed
        for above in self._levels[level:]:
            above.failed.pop(arm, None)

    def condemns(self, level: int) -> bool:
        """Return whether who fails at a level is taken to fail at the target as well."""
        here = self._levels[level]
        tried = here.lost + here.recovered
        return here.lost >= _ENOUGH_LOST and here.recovered < _SHARE_RECOVERED * tried

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
