"""Who is still in the race, who left it, and why."""

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray


class Roster:
    """Which of K arms are active, eliminated (by a comparison) or withdrawn (without one).

    An elimination remembers its grounds, so that it can be undone when they fall away. All masks
    have shape (K,): `merged` left as the repeat of another arm, `ruled_out` was eliminated for good
    as its mean is -inf, `led` was withdrawn for its failures while nobody else was seen to be
    better. `failures` counts pulls in a row without a value, for races that use it.
    """

    def __init__(self, n_arms: int) -> None:
        self.active: BoolArray = np.ones(n_arms, dtype=bool)
        self.withdrawn: BoolArray = np.zeros(n_arms, dtype=bool)
        self.merged, self.ruled_out, self.led = (self.withdrawn.copy() for _ in range(3))
        self.failures: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._exit_fidelity: IntArray = np.full(n_arms, -1, dtype=np.int64)
        self._exit_by: IntArray = np.full(n_arms, -1, dtype=np.int64)
        self._exit_excess: FloatArray = np.zeros(n_arms)

    @property
    def arms(self) -> IntArray:
        """The active arms, shape (n,)."""
        return np.flatnonzero(self.active)

    def eliminate(
        self,
        arms: IntArray,
        by: IntArray | int,
        fidelity: int = -1,
        excess: FloatArray | float = 0.0,
    ) -> None:
        """Note that `by` was found to be better than these arms."""
        self.active[arms] = False
        self._exit_fidelity[arms] = fidelity
        self._exit_by[arms] = by
        self._exit_excess[arms] = excess

    def withdraw(self, arm: int) -> None:
        """Take an arm out for good, and put back the arms that it had eliminated."""
        self.withdrawn[arm] = True
        self._take_out(arm)

    def rule_out(self, arm: int) -> None:
        """Eliminate an arm whose mean is -inf, and put back the arms that it had eliminated."""
        self.ruled_out[arm] = True
        self._take_out(arm)

    def _take_out(self, arm: int) -> None:
        self.active[arm] = False
        self._restore(self._exit_by == arm)

    def merge(self, arm: int, into: int) -> None:
        """Take an arm out that is the same as another; what it had eliminated stays eliminated.

        It comes back if the other one was withdrawn, since nothing is compared with that any more.
        So do arms that would have eliminated each other, or the other one itself.
        """
        self.merged[arm] = True
        self.active[arm] = False
        beaten = self._exit_by == arm
        self._exit_by[beaten] = into
        if self.withdrawn[into]:
            self._restore(beaten)
            return
        better, line = int(self._exit_by[into]), [into]
        while better not in (-1, *line):
            line.append(better)
            better = int(self._exit_by[better])
        if better == into:
            self._restore(np.isin(np.arange(len(beaten)), line))

    def rivals(self, arm: int) -> IntArray:
        """Return the other arms that were not taken out without a comparison, shape (n,)."""
        others = ~(self.withdrawn | self.merged)
        others[arm] = False
        return np.flatnonzero(others)

    def beaten_by(self, arm: int) -> int | None:
        """Return the arm that was found to be better than an eliminated one, if one was."""
        by = int(self._exit_by[arm])
        return None if by < 0 else by

    @property
    def is_lonely(self) -> bool:
        """True if arms left, all of them without a comparison."""
        return bool(self.withdrawn.any() and not self.eliminated.any())

    @property
    def eliminated(self) -> BoolArray:
        """Which arms were eliminated by a comparison, shape (K,)."""
        return ~(self.active | self.withdrawn | self.merged)

    def restore_unsupported(self, margins: FloatArray) -> None:
        """Put back the arms whose elimination does not exceed the margins of its level, (M,)."""
        at = self._exit_fidelity
        self._restore((at < 0) | (self._exit_excess < margins[np.maximum(at, 0)]))

    def restore_eliminated(self) -> None:
        """Put back all arms that were eliminated by a comparison."""
        self._restore(np.ones(len(self.active), dtype=bool))

    def _restore(self, chosen: BoolArray) -> None:
        back = chosen & self.eliminated & ~self.ruled_out
        self.active[back] = True
        self._exit_fidelity[back] = -1
        self._exit_by[back] = -1
