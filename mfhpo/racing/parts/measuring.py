"""How often a winner is evaluated before the race is over."""

from mfhpo.problem import Pull
from mfhpo.racing.claims import evaluations_to_see
from mfhpo.racing.parts.costs import Costs
from mfhpo.racing.rule import Known, Needs

# A certificate that takes the noise for normal waits until its arm's outcomes of this share would
# have been seen: a few values cannot tell a frequent divergence from luck.
_SHARE_TO_SEE = 1.0 / 6.0


class Measuring:
    """What a winner lacks: values at the target, and those that show what a few cannot.

    Attributes
    ----------
    measure
        Number of evaluations that the winner gets at the target.
    waits, waits_for_repeats
        Whether the race waits for values that show what a few cannot, and for repeats that show
        whether a declared sigma is too small.
    """

    def __init__(self, known: Known, costs: Costs, needs: Needs, measure: int, waits: bool) -> None:
        self.measure = measure
        self.waits = waits
        self.waits_for_repeats = True
        self._known, self._costs, self._needs = known, costs, needs

    def lacking(self, winner: int) -> dict[int, int]:
        """Return how many pulls a winner lacks at which fidelity."""
        usual = self.usually_lacking(winner)
        decide = self._needs.lacking
        return usual if decide is None else decide(self._known, winner, usual)

    def usually_lacking(self, winner: int) -> dict[int, int]:
        """Return the same for rules that have no say in it."""
        known, costs = self._known, self._costs
        counts, target = known.evidence.counts[winner], known.problem.target
        lacking = {target: self.measure - int(counts[target])}
        if self.waits:
            unaudited = known.evidence.noise.unaudited if self.waits_for_repeats else {}
            for m, missing in unaudited.items():
                if costs.of(m) > costs.of(target):
                    continue  # it is dearer than what it stands for
                lacking[m] = max(lacking.get(m, 0), missing + int(counts[m] == 0))
            planned = sum(max(lacking.get(m, 0), 0) for m in known.compared)
            short = self._values_awaited - self._values_of(winner) - planned
            if short > 0:
                cheapest = min(known.compared, key=costs.of)
                lacking[cheapest] = max(lacking.get(cheapest, 0), 0) + short
        return {m: missing for m, missing in lacking.items() if missing > 0}

    def _values_of(self, arm: int) -> int:
        return int(self._known.evidence.counts[arm, list(self._known.compared)].sum())

    @property
    def _values_awaited(self) -> int:
        normal = self._known.evidence.supposes_normal
        return evaluations_to_see(_SHARE_TO_SEE, self._known.delta) if normal else 0

    def is_confirmed_by(self, arm: int) -> bool:
        """Tell whether to compare all arms again, now that this one has another value."""
        # Later blocks of a winner alone are compared with nothing.
        if not self.waits or self._needs.intake is not None or self._known.winner != arm:
            return False
        return self._values_of(arm) == self._values_awaited

    def is_short_at_target(self, winner: int) -> bool:
        """Tell whether a winner has fewer values at the target than were asked for."""
        return bool(self._known.evidence.counts[winner, self._known.problem.target] < self.measure)

    def next_pull(self, winner: int, lacking: dict[int, int]) -> Pull:
        """Return the next pull of a winner that lacks some."""
        if self.is_short_at_target(winner):
            return Pull(winner, self._known.problem.target)
        return Pull(winner, min(lacking, key=self._costs.of))

    def stop(self, winner: int | None) -> None:
        """Be content with the winner's target pulls and with repeats, however few they are."""
        self.waits_for_repeats = False
        if winner is not None:
            pulled = int(self._known.evidence.counts[winner, self._known.problem.target])
            self.measure = min(self.measure, pulled)
