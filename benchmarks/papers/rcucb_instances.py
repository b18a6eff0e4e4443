"""Arms that earn a reward and consume a resource: instances of Bengs and Hüllermeier (2023)."""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from mfhpo.censored.options import Charge, Linear, check_charge
from mfhpo.knowledge.arrays import FloatArray


@dataclass(frozen=True)
class Deadline:
    """A second costs `slope` up to a deadline, and `fine` once it has passed, also those before.

    The penalty of the paper's Example 2.
    """

    slope: float
    deadline: float
    fine: float

    def __call__(self, seconds: FloatArray) -> FloatArray:
        """The charge for so many seconds."""
        seconds = np.asarray(seconds, dtype=np.float64)
        return np.where(seconds <= self.deadline, self.slope, self.fine) * seconds


#: Cost and penalty of the paper's simulations (Section 5.1): c(x) = x / 10, and the same as penalty
#: up to .5, but 10 x beyond.
PUBLISHED_COST = Linear(0.1)
PUBLISHED_PENALTY = Deadline(slope=0.1, deadline=0.5, fine=10.0)

#: Limits and penalty of `lock_in`. With the published cost, the longer limit earns .05 more.
LOCK_IN_LIMITS = (0.3, 0.9)
LOCK_IN_PENALTY = Deadline(slope=0.1, deadline=0.5, fine=1.4278)

# Gauss-Legendre: nodes of a panel, and panels between 0 and the largest limit, at least.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 64


class CensoredInstance(abc.ABC):
    """A bandit whose rewards are lost when a limit on consumption is exceeded.

    A pull of an arm draws a reward and a consumption together (seconds, or any resource). A policy
    sees the reward if the consumption is at most the limit it chose. Here everything is known, so
    that its choices can be judged.
    """

    @property
    @abc.abstractmethod
    def n_arms(self) -> int:
        """Number of arms n."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, arm: int, size: int) -> tuple[FloatArray, FloatArray]:
        """Rewards and consumptions of `size` independent pulls of an arm, each of shape (size,)."""

    @abc.abstractmethod
    def survival(self, limits: npt.ArrayLike) -> FloatArray:
        """P(C > limit), the probability of being censored, shape (n_arms, n_limits)."""

    def gains(self, limits: npt.ArrayLike, cost: Charge, penalty: Charge) -> FloatArray:
        """Expected gain of every arm with every limit (Bengs and Hüllermeier 2023, Eq. 2).

            nu(i, tau) = E[(R - c(C)) 1{C <= tau}] - lambda(tau) P(C > tau)

        The limits are positive and increase, shape (n_limits,); `cost` is c, and `penalty` lambda.
        The result has shape (n_arms, n_limits).
        """
        places = np.asarray(limits, dtype=np.float64)
        check_charge("cost", cost, places)
        fines = check_charge("penalty", penalty, places)
        return self._earned(places, cost) - fines * self.survival(places)

    @abc.abstractmethod
    def _earned(self, limits: FloatArray, cost: Charge) -> FloatArray:
        """E[(R - c(C)) 1{C <= limit}], shape (n_arms, n_limits)."""


class _Continuous(CensoredInstance):
    """Consumptions with a density: what is earned is integrated by quadrature.

    The quadrature is exact to about 1e-12 where the cost is smooth between the limits; a jump of
    the cost elsewhere is off by at most its height times the probability of 1/64 of the range.
    """

    @abc.abstractmethod
    def _densities(self, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f(x) and E[R | C = x] f(x), each of shape (n_arms, len(seconds))."""

    def _earned(self, limits: FloatArray, cost: Charge) -> FloatArray:
        def integrand(seconds: FloatArray) -> FloatArray:
            density, earned = self._densities(seconds)
            return earned - cost(seconds) * density

        return _integrals(integrand, limits)


def _integrals(integrand: Charge, ends: FloatArray) -> FloatArray:
    """Integrals of rows of values from 0 to each end, shape (rows, len(ends)).

    `integrand` gives the rows at some places. Panels end at the ends, by which the values may jump.
    """
    edges = np.union1d(np.linspace(0.0, ends[-1], _PANELS + 1), ends)
    half = np.diff(edges) / 2.0
    places = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    values = integrand(places.ravel()).reshape(-1, *places.shape)
    sums = np.cumsum((values @ _WEIGHTS) * half, axis=1)
    return np.asarray(sums[:, np.searchsorted(edges, ends) - 1])


class BivariateNormalInstance(_Continuous):
    """Reward and consumption are jointly normal, and kept only within [0, 1] x [0, 1].

    Draws are exact, by rejection. All arguments are those of the distributions before they are cut
    off: means, shape (n_arms,), the variance of both (the paper's sigma is this, not its root), and
    the correlation, one number or one per arm.
    """

    def __init__(
        self,
        rewards: npt.ArrayLike,
        consumptions: npt.ArrayLike,
        *,
        variance: float,
        correlation: npt.ArrayLike,
    ) -> None:
        self.rewards: FloatArray = np.array(rewards, dtype=np.float64)
        self.consumptions: FloatArray = np.array(consumptions, dtype=np.float64)
        self.sd = math.sqrt(variance)
        self.correlation: FloatArray = np.broadcast_to(
            np.asarray(correlation, dtype=np.float64), self.rewards.shape
        )
        # Share of draws that are accepted.
        self._accepted = np.ones(self.n_arms)
        self._accepted = _integrals(lambda x: self._densities(x)[0], np.ones(1))[:, 0]

    @property
    def n_arms(self) -> int:
        """Number of arms n."""
        return len(self.rewards)

    def draw(self, rng: np.random.Generator, arm: int, size: int) -> tuple[FloatArray, FloatArray]:
        """Rewards and consumptions of `size` independent pulls of an arm, each of shape (size,)."""
        correlation = self.correlation[arm]
        rest = math.sqrt(1.0 - correlation**2)
        found = np.empty((2, 0))
        while found.shape[1] < size:
            tried = int(1.1 * (size - found.shape[1]) / self._accepted[arm]) + 8
            first, second = rng.standard_normal((2, tried))
            pairs = np.stack([correlation * first + rest * second, first])
            pairs *= self.sd
            pairs += [[self.rewards[arm]], [self.consumptions[arm]]]
            within = ((pairs >= 0.0) & (pairs <= 1.0)).all(axis=0)
            found = np.concatenate([found, pairs[:, within]], axis=1)
        return found[0, :size], found[1, :size]

    def survival(self, limits: npt.ArrayLike) -> FloatArray:
        """P(C > limit), the probability of being censored, shape (n_arms, n_limits)."""
        # Beyond 1 there is nothing left: quadrature would have to find the end of the density.
        within = np.minimum(limits, 1.0)
        places, back = np.unique(within, return_inverse=True)
        below = _integrals(lambda x: self._densities(x)[0], places)[:, back]
        return np.clip(1.0 - below, 0.0, 1.0)

    def _earned(self, limits: FloatArray, cost: Charge) -> FloatArray:
        places, back = np.unique(np.minimum(limits, 1.0), return_inverse=True)
        return super()._earned(places, cost)[:, back]

    def _densities(self, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
        deviation = (seconds - self.consumptions[:, None]) / self.sd
        # Given the consumption, the reward is normal, cut off at 0 and 1.
        correlation = self.correlation[:, None]
        mean = self.rewards[:, None] + self.sd * correlation * deviation
        sd = self.sd * np.sqrt(1.0 - correlation**2)
        low, high = -mean / sd, (1.0 - mean) / sd
        kept = ndtr(high) - ndtr(low)
        marginal = _normal(deviation) / (self.sd * self._accepted[:, None])
        return marginal * kept, marginal * (mean * kept + sd * (_normal(low) - _normal(high)))


def _normal(z: FloatArray) -> FloatArray:
    """Density of the standard normal distribution."""
    return np.asarray(np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi))


class BetaExponentialInstance(_Continuous):
    """Rewards of a beta distribution, consumptions of an exponential one, independent.

    `shapes` holds the parameters (a, b) of the beta distributions, shape (n_arms, 2), and `rates`
    1 over the mean consumptions, shape (n_arms,); all are positive.
    """

    def __init__(self, shapes: npt.ArrayLike, rates: npt.ArrayLike) -> None:
        self.rates: FloatArray = np.array(rates, dtype=np.float64)
        self.shapes: FloatArray = np.array(shapes, dtype=np.float64)

    @property
    def n_arms(self) -> int:
        """Number of arms n."""
        return len(self.rates)

    def draw(self, rng: np.random.Generator, arm: int, size: int) -> tuple[FloatArray, FloatArray]:
        """Rewards and consumptions of `size` independent pulls of an arm, each of shape (size,)."""
        first, second = self.shapes[arm]
        return rng.beta(first, second, size), rng.exponential(1.0 / self.rates[arm], size)

    def survival(self, limits: npt.ArrayLike) -> FloatArray:
        """P(C > limit), the probability of being censored, shape (n_arms, n_limits)."""
        return np.exp(-self.rates[:, None] * np.asarray(limits, dtype=np.float64))

    def _densities(self, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
        density = self.rates[:, None] * np.exp(-self.rates[:, None] * seconds)
        means = self.shapes[:, :1] / self.shapes.sum(axis=1, keepdims=True)
        return density, means * density


class ReplayedCensoredInstance(CensoredInstance):
    """Recorded pairs of reward and consumption, drawn again with replacement.

    The problem is then about the records, of shape (n_arms, n_records): their gains are the true
    ones. Consumptions are not negative.

    Examples
    --------
    >>> instance = ReplayedCensoredInstance([[1.0, 0.5]], [[2.0, 4.0]])
    >>> instance.gains([3.0, 5.0], Linear(0.0), Linear(0.1)).tolist()  # (1 - .3) / 2, (1 + .5) / 2
    [[0.35, 0.75]]
    """

    def __init__(self, rewards: npt.ArrayLike, consumptions: npt.ArrayLike) -> None:
        self.rewards: FloatArray = np.array(rewards, dtype=np.float64)
        self.consumptions: FloatArray = np.array(consumptions, dtype=np.float64)

    @property
    def n_arms(self) -> int:
        """Number of arms n."""
        return len(self.rewards)

    def draw(self, rng: np.random.Generator, arm: int, size: int) -> tuple[FloatArray, FloatArray]:
        """Rewards and consumptions of `size` independent pulls of an arm, each of shape (size,)."""
        records = rng.integers(self.rewards.shape[1], size=size)
        return self.rewards[arm, records], self.consumptions[arm, records]

    def survival(self, limits: npt.ArrayLike) -> FloatArray:
        """P(C > limit), the probability of being censored, shape (n_arms, n_limits)."""
        shares = [(self.consumptions > limit).mean(axis=1) for limit in np.asarray(limits)]
        return np.stack(shares, axis=1)

    def _earned(self, limits: FloatArray, cost: Charge) -> FloatArray:
        kept = self.rewards - cost(self.consumptions)
        return np.stack(
            [np.where(self.consumptions <= limit, kept, 0.0).mean(axis=1) for limit in limits],
            axis=1,
        )


class ArmStreams:
    """Draws of an instance in which every arm has random numbers of its own.

    What an arm's k-th pull yields depends on the seed alone, not on what else was pulled or on how
    many pulls were asked for at once. So policies with the same seed meet the same luck.
    """

    def __init__(self, instance: CensoredInstance, seed: int | Sequence[int]) -> None:
        self._instance = instance
        # Spawned, so that no arm's stream is one that somebody else makes of the same numbers.
        spawned = np.random.SeedSequence(seed).spawn(instance.n_arms)
        self._rngs = [np.random.default_rng(each) for each in spawned]
        self._drawn = [(np.empty(0), np.empty(0))] * instance.n_arms
        self._block = [64] * instance.n_arms

    def __call__(self, arm: int, size: int) -> tuple[FloatArray, FloatArray]:
        """Rewards and consumptions of the arm's next `size` pulls, each of shape (size,)."""
        rewards, consumptions = self._drawn[arm]
        while len(rewards) < size:
            drawn = self._instance.draw(self._rngs[arm], arm, self._block[arm])
            rewards = np.concatenate([rewards, drawn[0]])
            consumptions = np.concatenate([consumptions, drawn[1]])
            self._block[arm] = min(2 * self._block[arm], 4096)
        self._drawn[arm] = rewards[size:], consumptions[size:]
        return rewards[:size], consumptions[:size]


def published_limits(count: int = 10, longest: float = 0.9) -> FloatArray:
    """An equidistant grid from .1 to `longest`, as in the paper's simulations.

    The paper prints a grid of (0, 1], and of (0, .6] in F.3. But its probabilities of being
    censored belong to the grids that end at .9 and at .6.
    """
    return np.linspace(0.1, longest, count)


def _correlation(x: npt.ArrayLike) -> FloatArray:
    """The correlation of Eq. 35 by its parameter x."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(2.0 * x * np.sqrt(1.0 - x * x))


def positively_correlated() -> BivariateNormalInstance:
    """PosCorr (Appendix E.2): ten arms, of which the first is better and quicker."""
    x = [0.2, 0.3, 0.4, 0.4, *[0.6] * 6]
    return BivariateNormalInstance(
        [0.6, *[0.5] * 9], [0.45, *[0.5] * 9], variance=0.2, correlation=_correlation(x)
    )


def negatively_correlated() -> BivariateNormalInstance:
    """NegCorr (Appendix E.2): ten arms, where what takes long is worth less.

    The paper calls arm 0 optimal. It is the others: within the square, the first one's higher mean
    comes with too much censoring.
    """
    return BivariateNormalInstance(
        [0.9, *[0.8] * 9], [0.8] * 10, variance=0.2, correlation=_correlation(-0.2)
    )


def independent() -> BetaExponentialInstance:
    """Indep (Appendix E.2): ten arms whose rewards do not depend on the consumption."""
    shapes = np.array([(0.8, 0.2), *[(0.8, 0.3)] * 9])
    return BetaExponentialInstance(shapes, shapes[:, 0] / shapes.sum(axis=1) + 1.0)


def many_arms(n_arms: int) -> BivariateNormalInstance:
    """The instance of Appendix F.2, with 20, 50 or 80 arms: from good and quick to bad and slow."""
    worse = np.arange(n_arms) / n_arms
    return BivariateNormalInstance(
        (1.0 - worse) * 0.9, 0.3 + 0.7 * worse, variance=0.2, correlation=_correlation(0.2)
    )


def low_censoring() -> BivariateNormalInstance:
    """The instance of Appendix F.3: five arms that hardly take any time."""
    worse = np.arange(5) / 5
    return BivariateNormalInstance(
        (1.0 - worse) * 0.9, np.zeros(5), variance=0.1, correlation=_correlation(0.2)
    )


def lock_in() -> BetaExponentialInstance:
    """One arm and two limits (`LOCK_IN_LIMITS`), between which a wrong estimate can never mend.

    The longer limit is the better one, by .05 (with `PUBLISHED_COST` and `LOCK_IN_PENALTY`).
    Pulls with the shorter one are mostly censored. A policy that takes these for pulls that would
    have exceeded the longer limit too overrates the penalty there by .49.
    """
    return BetaExponentialInstance([[0.8, 0.2]], rates=[1.8])
