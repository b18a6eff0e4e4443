"""What evaluations cost, by level and by configuration, learned from those that were paid for."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.space import Point, SearchSpace
from mfhpo.search.measured_costs import MeasuredCosts

# Standard deviations of a logarithm before anything is seen: of what a feature does, of an arm's
# own part, of what all have in common, of a level's own part, and of a single evaluation.
_EFFECT, _OWN, _COMMON, _LEVEL, _NOISE = 1.0, 0.4, 2.0, 1.0, 0.2
_NEIGHBOURS = 0.95  # correlation of neighbouring levels: less is set-up at the higher one
_FEWEST, _MOST = 3, 100  # payments that are learned from, of these the latest
_LEAST = 1e-9  # of a price, as a coarse clock measures 0


class Prices:
    """Learns what levels cost (`MeasuredCosts`), and how much dearer some configurations are.

    The logarithm of a payment, less that of the usual cost of its level, is a linear function of
    the configuration's features and of the squares of its numbers, plus parts of the level and of
    the arm, plus noise. Coefficients and the arm's part change slowly from level to level: where
    setting up takes most of the time, configurations differ less. All have normal priors of fixed
    spreads (Bayesian linear regression), so that few payments change little. Logarithms make
    prices positive, and the unit of the costs without effect.

    Parameters
    ----------
    guess, continues
        See `MeasuredCosts`.

    Examples
    --------
    >>> from mfhpo.knowledge.space import Numeric
    >>> space = SearchSpace({"width": Numeric()})
    >>> points = {arm: {"width": arm / 4} for arm in range(5)}
    >>> prices = Prices((1.0,), continues=False)
    >>> for arm in range(5):
    ...     prices.add(arm, -1, 0, 10.0 ** (arm / 4))
    >>> prices.learn(space, points, version=1)
    >>> narrow, wide = prices.dearness(space.features([{"width": 0.1}, {"width": 0.9}]), -1, 0)
    >>> bool(wide > 3.0 * narrow)
    True
    """

    def __init__(self, guess: Sequence[float], *, continues: bool) -> None:
        self.usual = MeasuredCosts(guess, continues=continues)
        self._continues = continues
        self._paid: list[tuple[int, int, int, float]] = []
        apart = np.abs(np.subtract.outer(np.arange(len(guess)), np.arange(len(guess))))
        self._alike = _NEIGHBOURS**apart
        # What is added to a logarithm, by level: for all, for each column of the basis, for arms.
        self._common: FloatArray = np.zeros(len(guess))
        self._effects: FloatArray | None = None
        self._own: dict[int, FloatArray] = {}
        self._costs: FloatArray = np.array(self.usual.costs())
        self._learned = (0, -1)  # payments, and version of the points
        self._numbers: BoolArray = np.zeros(0, dtype=np.bool_)

    def add(self, arm: int, start: int, level: int, cost: float) -> None:
        """Note what an evaluation has cost that went on from the level `start`, -1 for none."""
        self._paid.append((arm, start, level, cost))
        self.usual.add(start, level, cost)

    def learn(self, space: SearchSpace, points: Mapping[int, Point], version: int) -> None:
        """Learn from what was paid for arms that are known; `version` changes with their points."""
        if self._learned == (now := (len(self._paid), version)):
            return
        self._learned = now
        self._costs = np.array(self.usual.costs())
        known = [payment for payment in self._paid if payment[0] in points][-_MOST:]
        self._effects = None
        if len(known) < _FEWEST or not space.parameters:
            return
        arms, which = np.unique([arm for arm, *_ in known], return_inverse=True)
        levels = np.array([level for _, _, level, _ in known])
        logs = np.log([max(cost, _LEAST) for *_, cost in known]) - self._usual_logs(known)
        features = space.features([points[arm] for arm in arms.tolist()])[which]
        basis = _basis(features, space.numbers)
        covariance = _EFFECT**2 * basis @ basis.T + _OWN**2 * (which[:, None] == which)
        covariance *= self._alike[np.ix_(levels, levels)]
        covariance += _COMMON**2 + _LEVEL**2 * (levels[:, None] == levels)
        covariance[np.diag_indices_from(covariance)] += _NOISE**2
        weights = cho_solve(cho_factor(covariance, lower=True), logs)
        by_level = weights[:, None] * self._alike[levels]
        at_level = np.eye(len(self._alike))[levels]
        self._common = _COMMON**2 * weights.sum() + _LEVEL**2 * weights @ at_level
        self._effects = _EFFECT**2 * basis.T @ by_level
        own = _OWN**2 * np.eye(len(arms))[which].T @ by_level
        self._own = dict(zip(arms.tolist(), own, strict=True))
        self._numbers = space.numbers

    def dearness(
        self,
        features: FloatArray,
        start: int | IntArray,
        end: int | IntArray,
        arms: Sequence[int] = (),
    ) -> FloatArray:
        """How many times the usual cost it takes to bring configurations to a level, shape (n,).

        Parameters
        ----------
        features
            Of the configurations, shape (n, d).
        start, end
            Levels that they have come to, -1 for none, and that they are brought to: one for all,
            or shape (n,).
        arms
            Which arms they are, if they were begun.
        """
        if self._effects is None:
            return np.ones(len(features))
        logs: FloatArray = _basis(features, self._numbers) @ self._effects + self._common
        for row, arm in enumerate(arms):
            logs[row] += self._own.get(arm, 0.0)
        costs = self._costs
        if not self._continues:  # a higher level is not cheaper
            own = np.maximum.accumulate(np.exp(logs) * costs, axis=1)
            relative: FloatArray = own[np.arange(len(features)), end] / costs[end]
            return relative
        level = np.arange(len(costs))
        taken = (level > np.asarray(start)[..., None]) & (level <= np.asarray(end)[..., None])
        steps = np.diff(costs, prepend=0.0) * taken
        of_steps: FloatArray = (np.exp(logs) * steps).sum(axis=1) / steps.sum(axis=-1)
        return of_steps

    def _usual_logs(self, payments: Sequence[tuple[int, int, int, float]]) -> FloatArray:
        steps = {(start, level) for _, start, level, _ in payments}
        logs = {
            (start, level): np.log(
                self.usual.from_scratch(level)
                if start < 0
                else self._costs[level] - self._costs[start]
            )
            for start, level in steps
        }
        return np.array([logs[start, level] for _, start, level, _ in payments])

    def state_dict(self) -> list[list[float]]:
        """What was paid so far, as plain JSON values."""
        return [list(payment) for payment in self._paid]

    def load_state_dict(self, state: Sequence[Sequence[float]]) -> None:
        """Go on from a saved state."""
        self._paid.clear()
        self.usual.forget()
        self._learned = (0, -1)
        for arm, start, level, cost in state:
            self.add(int(arm), int(start), int(level), cost)


def _basis(features: FloatArray, numbers: BoolArray) -> FloatArray:
    """The features, and the squares of numbers: very small and very large ones may both be dear."""
    return np.hstack([features, 2.0 * (features[:, numbers] - 0.5) ** 2])
