"""Which claims should move, because an earlier one is equal: two workers have chosen the same."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.ledger import Ledger
from mfhpo.problem import Pull


class Rivals:
    """The claims that an earlier one is equal to, and what their equality is about.

    `configurations` and `ledger` are those of the experiment.

    Attributes
    ----------
    ids
        Of claims that should move.
    repeats
        Of claims of a block whose evaluation an earlier one has begun: they give no value.
    seen
        Arms, levels and blocks of values.
    replicates
        Those that were claimed, by purpose.
    """

    def __init__(self, configurations: Configurations, ledger: Ledger) -> None:
        self.ids: set[str] = set()
        self.repeats: set[str] = set()
        self.replicates: defaultdict[str, set[int]] = defaultdict(set)
        self._configurations = configurations
        self._ledger = ledger
        self.seen: set[tuple[int, int, int | None]] = set()
        self._shortlist: tuple[str, ...] = ()

    def agreed(self, begun: Begun) -> Begun:
        """Return a claim of the first shortlist: of several that workers drew up it stands."""
        if begun.purpose != "certificate":
            return begun
        self._shortlist = self._shortlist or begun.shortlist
        return replace(begun, shortlist=self._shortlist)

    def note_value(self, pull: Pull) -> None:
        """Take note of a value, of which a block has one."""
        if pull.block is not None:
            self.seen.add((pull.arm, pull.fidelity, pull.block))

    def has_value(self, pull: Pull) -> bool:
        """Tell whether the block of a pull has its value."""
        return (pull.arm, pull.fidelity, pull.block) in self.seen

    def has_rival(self, begun: Begun, arm: int) -> bool:
        """Tell whether a claim should move, because an earlier one is equal.

        That is under way, or has given the value of a block.
        """
        if begun.draw is not None and self._has_rival_of_draw(begun, arm):
            return True
        if begun.id in self.repeats:
            return True
        if begun.origin == "enqueued":
            return False
        if begun.shortlist and self._configurations.key(arm) not in begun.shortlist:
            return True
        if begun.block is None and begun.purpose != "search":  # one more value, on new replicates
            return begun.replicate in self.replicates[begun.purpose]
        return self._is_under_way(begun, arm)

    def note_repeat(self, begun: Begun, arm: int) -> None:
        """Take note of a claim of a block whose evaluation has begun; a search may repeat it."""
        if begun.block is None or begun.purpose == "search":
            return
        levels = begun.levels or ()
        has_value = any((arm, level, begun.block) in self.seen for level in levels)
        if has_value or self._is_under_way(begun, arm):
            self.repeats.add(begun.id)

    def _is_under_way(self, begun: Begun, arm: int) -> bool:
        return any(
            claim.pull.arm == arm
            and claim.begun.block == begun.block
            and (begun.levels is None or not claim.tickets.keys().isdisjoint(begun.levels))
            for claim in self._ledger.open.values()
        )

    def _has_rival_of_draw(self, begun: Begun, arm: int) -> bool:
        """Tell whether a claim lacks values of its draw, brings other ones, or begins it, too."""
        known, own = self._configurations[arm], begun.configuration
        is_shared = any(claim.pull.arm == arm for claim in self._ledger.open.values())
        if not known.keys() <= own.keys():
            return True
        if begun.origin == "enqueued" and own:
            return is_shared and not self._configurations.has(arm, own)
        return is_shared and begun.purpose == "search"
