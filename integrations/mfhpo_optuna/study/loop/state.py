"""Where a race, a search or a game stands, in the words that a line shows."""

import math
from dataclasses import dataclass

from mfhpo.racing.text import clean

_SEPARATOR = " | "


@dataclass(frozen=True)
class Progress:
    """Where it stands, in the words that a line shows."""

    phase: str  # what is being done, such as "search"
    configurations: str  # how many are left, or were tried
    leader: str  # the best so far, with its interval; "" if there is none yet
    spent: float
    total: float | None  # None if nobody knows
    unit: str = "cost"  # or "trials", "seconds"
    is_guess: bool = False  # whether the total is a guess at what a certificate takes
    has_end: bool = True  # whether it ends by itself at all

    @property
    def spending(self) -> str:
        """The amount that was spent, and of how much."""
        text = f"{self.unit} {self._number(self.spent)}"
        if self.total is None or self._is_guess_reached:
            return text
        return f"{text}/{'~' if self.is_guess else ''}{self._rounded(self.total)}"

    @property
    def left(self) -> str:
        """The rest of the budget, or of a guess at it, as a clause."""
        if self.total is None:
            return "how much a certificate takes is not known yet"
        if self._is_guess_reached:
            return "a certificate needs little more"
        amount = self._rounded(max(0.0, self.total - self.spent))
        if not self.is_guess:
            unit = "" if self.unit == "cost" else f" {self.unit}"
            return f"{amount}{unit} of the budget of {self._rounded(self.total)} are left"
        if self.unit == "cost":
            return f"a certificate costs about {amount} more"
        return f"a certificate takes about {amount} more {self.unit}"

    @property
    def _is_guess_reached(self) -> bool:
        return self.is_guess and self.total is not None and self.total <= self.spent

    def line(self, seconds_left: float | None, width: int | None = None) -> str:
        """Return all of it in one line; drop the first parts where it would be too wide."""
        parts = [self.phase, self.configurations, self.leader, self.spending, ends_in(seconds_left)]
        shown = [clean(part) for part in parts if part]
        while width is not None and len(shown) > 1 and len(_SEPARATOR.join(shown)) > width:
            del shown[0]
        return _SEPARATOR.join(shown)[:width]

    def _rounded(self, amount: float) -> str:
        """Return a guess with two digits, a budget with all of them."""
        if self.is_guess and amount > 0.0:
            amount = round(amount, 1 - math.floor(math.log10(amount)))
        return self._number(amount)

    def _number(self, amount: float) -> str:
        return f"{amount:,.4g}" if self.unit == "seconds" and amount < 1e4 else f"{amount:,.6g}"


def ends_in(seconds: float | None) -> str:
    """Return how long it takes to the end, in words; "" if nobody knows."""
    if seconds is None:
        return ""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"~{seconds / length:.2g} {unit} left"
    return f"~{math.ceil(seconds)} s left"
