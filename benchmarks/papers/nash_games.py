"""The games of the experiments on Nash equilibria, with what is known of their equilibria."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import exp1
from scipy.stats import gamma

from mfhpo._validation import check_count, check_positive
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Numeric, Point

_TRIED = 361  # powers to which a link may deviate
_FAR = 500.0  # from which on exponentials overflow, and a logarithm is its argument


@dataclass(frozen=True, eq=False)
class RandomGame:
    """A game drawn from the model itself, on a grid (Section V-B).

    Parameters
    ----------
    values
        Utilities of each player at each fidelity and profile, shape (N, M, G, ..., G) with one axis
        of G actions for each of the N players.
    sigma
        Standard deviation of the noise.

    Examples
    --------
    >>> game = RandomGame.draw(np.random.default_rng(0), n_actions=11)
    >>> game.values.shape, float(game.regret(game.equilibrium()))
    ((2, 2, 11, 11), 0.0)
    """

    values: FloatArray
    sigma: float

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        n_players: int = 2,
        n_actions: int = 41,
        rate: float = 0.89,
        level_rate: float = 0.78,
        correlations: Sequence[float] = (0.768,),
        sigma: float = math.sqrt(0.1),
    ) -> RandomGame:
        """Draw one by Eq. 19: the target first, then each cheaper level from the next one.

        Parameters
        ----------
        rng
            Source of randomness.
        n_players, n_actions
            N, and G values of each player's action, evenly spread from -1 to 1.
        rate, level_rate
            h and zeta of Eq. 20 and 21.
        correlations
            rho of each level with the next one.
        sigma
            Standard deviation of the noise.
        """
        grid = np.linspace(-1.0, 1.0, check_count("n_actions", n_actions, 2))
        values = np.zeros((n_players, len(correlations) + 1, *(n_actions,) * n_players))
        for player in range(n_players):
            values[player, -1] = _draw_function(grid, rate, n_players, rng)
            for level in reversed(range(len(correlations))):
                rho = correlations[level]
                own = _draw_function(grid, level_rate, n_players, rng)
                values[player, level] = (
                    rho * values[player, level + 1] + math.sqrt(1.0 - rho**2) * own
                )
        return cls(values, sigma)

    @property
    def players(self) -> dict[str, dict[str, Numeric]]:
        """Each player's parameter, for a policy."""
        n_players, _, n_actions = self.values.shape[:3]
        places = Numeric(tuple(np.linspace(0.0, 1.0, n_actions).tolist()))
        return {f"player {index}": {f"x{index}": places} for index in range(n_players)}

    def utilities(
        self, profile: Point, levels: Sequence[int], rng: np.random.Generator
    ) -> list[float]:
        """One noisy observation of each player's utility."""
        at = self._index(profile)
        noise = self.sigma * rng.standard_normal(len(levels))
        return [
            float(self.values[(player, level, *at)] + noise[player])
            for player, level in enumerate(levels)
        ]

    def at_target(self, profile: Point) -> FloatArray:
        """Each player's utility at the target fidelity, without noise, shape (N,)."""
        at = self._index(profile)
        return np.array([of_player[(-1, *at)] for of_player in self.values])

    def gains(self, profile: Point) -> FloatArray:
        """What each player would gain by deviating from a profile (Eq. 2), shape (N,)."""
        gains: FloatArray = np.moveaxis(self._gains(), 0, -1)[self._index(profile)]
        return gains

    def dissatisfaction(self) -> FloatArray:
        """The largest dissatisfaction of any player at each profile, shape (G, ..., G)."""
        worst: FloatArray = self._gains().max(axis=0)
        return worst

    def regret(self, profile: Point) -> float:
        """How much larger the largest dissatisfaction is than it need be (Eq. 49)."""
        worst = self.dissatisfaction()
        return float(worst[self._index(profile)] - worst.min())

    def equilibrium(self) -> Point:
        """The profile of the smallest largest dissatisfaction."""
        worst = self.dissatisfaction()
        at = np.unravel_index(int(worst.argmin()), worst.shape)
        n_actions = worst.shape[0]
        return {f"x{index}": float(i) / (n_actions - 1) for index, i in enumerate(at)}

    def _gains(self) -> FloatArray:
        """Of each player at each profile, shape (N, G, ..., G)."""
        return np.stack(
            [
                values.max(axis=player, keepdims=True) - values
                for player, values in enumerate(self.values[:, -1])
            ]
        )

    def _index(self, profile: Point) -> tuple[int, ...]:
        n_players, _, n_actions = self.values.shape[:3]
        return tuple(round(profile[f"x{index}"] * (n_actions - 1)) for index in range(n_players))


@dataclass(frozen=True)
class RandomAccess:
    """Terminals that choose how often they are active and try to send (Section V-D).

    A terminal's utility is its throughput (Eq. 51) minus omega times its energy (Eq. 52). Actions
    whose energy is above its limit are left out: a place is the tried probability, and the share of
    the activity that the energy allows. Throughput then pays for its energy, so that all terminals
    spend what they may, in the way that sends most: the only equilibrium.

    Parameters
    ----------
    most_energy
        Of each terminal.
    active, sending
        Energy of being active and of sending.
    omega
        Weight of the energy at each fidelity, the target's last.
    sigma
        Standard deviation of the noise; the paper gives none.

    Examples
    --------
    >>> [round(throughput, 4) for throughput in RandomAccess().equilibrium_throughput()]
    [0.0658, 0.0557, 0.047, 0.0395, 0.0329]
    """

    most_energy: tuple[float, ...] = (60.0, 55.0, 50.0, 45.0, 40.0)
    active: float = 50.0
    sending: float = 70.0
    omega: tuple[float, ...] = (4.9e-4, 5.5e-4, 6.1e-4, 6.5e-4)
    sigma: float = 1e-3

    @property
    def players(self) -> dict[str, dict[str, Numeric]]:
        """Each terminal's parameters, for a policy."""
        return {
            f"terminal {index}": {f"activity{index}": Numeric(), f"sending{index}": Numeric()}
            for index in range(len(self.most_energy))
        }

    def sending_probabilities(self, profile: Point) -> FloatArray:
        """Probability that each terminal sends, shape (N,)."""
        return self._activity(profile) * self._sending(profile)

    def throughput(self, profile: Point) -> FloatArray:
        """Probability that each terminal's message is received (Eq. 51), shape (N,)."""
        return _received(self.sending_probabilities(profile))

    def utilities(
        self, profile: Point, levels: Sequence[int], rng: np.random.Generator
    ) -> list[float]:
        """One noisy observation of each terminal's utility."""
        energy = self._activity(profile) * (self.active + self.sending * self._sending(profile))
        weight = np.array(self.omega)[list(levels)]
        noise = self.sigma * rng.standard_normal(len(levels))
        utilities: list[float] = (self.throughput(profile) - weight * energy + noise).tolist()
        return utilities

    def equilibrium_throughput(self) -> list[float]:
        """Throughput of each terminal at the equilibrium."""
        most: list[float] = _received(
            np.array(self.most_energy) / (self.active + self.sending)
        ).tolist()
        return most

    def _sending(self, profile: Point) -> FloatArray:
        return np.array([profile[f"sending{index}"] for index in range(len(self.most_energy))])

    def _activity(self, profile: Point) -> FloatArray:
        share = np.array([profile[f"activity{index}"] for index in range(len(self.most_energy))])
        allowed = np.array(self.most_energy) / (self.active + self.sending * self._sending(profile))
        activity: FloatArray = share * np.minimum(allowed, 1.0)
        return activity


@dataclass(frozen=True)
class PowerAllocation:
    """Links that choose their power and disturb each other (Section V-C).

    A link's utility is its mean spectral efficiency over fading channels minus a price for its
    power (Eq. 50); a place is the power in decibels. An observation averages as many realisations
    of the channels as it costs.

    Parameters
    ----------
    n_links
        N.
    interference
        Gain of the channels between links, psi, in decibels.
    price
        xi.
    noise
        Power of the receivers' noise in decibels.
    lowest, highest
        Power in decibels.
    realisations
        That each fidelity averages.

    Examples
    --------
    >>> round(PowerAllocation(n_links=20, interference=-20.0).equilibrium_power(), 1)
    10.3
    """

    n_links: int = 5
    interference: float = -20.0
    price: float = 0.1
    noise: float = -20.0
    lowest: float = -13.0
    highest: float = 23.0
    realisations: tuple[int, ...] = (1, 10, 20, 50, 100)

    def __post_init__(self) -> None:
        check_count("n_links", self.n_links, 2)
        check_positive("price", self.price)

    @property
    def players(self) -> dict[str, dict[str, Numeric]]:
        """Each link's parameter, for a policy."""
        return {f"link {index}": {f"power{index}": Numeric()} for index in range(self.n_links)}

    def powers(self, profile: Point) -> FloatArray:
        """Each link's power, not in decibels, shape (N,)."""
        places = np.array([profile[f"power{index}"] for index in range(self.n_links)])
        return _linear(self.lowest + (self.highest - self.lowest) * places)

    def utilities(
        self, profile: Point, levels: Sequence[int], rng: np.random.Generator
    ) -> list[float]:
        """One observation of each link's utility."""
        powers = self.powers(profile)
        utilities = []
        for link, level in enumerate(levels):
            n = self.realisations[level]
            own = rng.exponential(size=n) * powers[link]
            others = np.delete(powers, link)
            channels = rng.exponential(size=(n, len(others)))
            disturbance = float(_linear(self.noise)) + float(_linear(self.interference)) * (
                channels @ others
            )
            efficiency = np.log2(1.0 + own / disturbance).mean()
            utilities.append(float(efficiency - self.price * powers[link]))
        return utilities

    def gains(self, profile: Point, n_draws: int = 4_000) -> FloatArray:
        """What each link would gain by deviating (Eq. 2), in bits per second and hertz.

        Over a link's own channel the mean is exact; over those of the others it is the mean of
        draws, which are the same for all powers.

        Parameters
        ----------
        profile
            Each link's place.
        n_draws
            Number of draws.

        Returns
        -------
        array of shape (N,)
        """
        powers = self.powers(profile)
        rng = np.random.default_rng(0)
        channels = rng.exponential(size=(n_draws, self.n_links - 1))
        tried = _linear(np.linspace(self.lowest, self.highest, _TRIED))
        gains = np.zeros(self.n_links)
        for link, power in enumerate(powers):
            disturbance = float(_linear(self.noise)) + float(_linear(self.interference)) * (
                channels @ np.delete(powers, link)
            )
            own = np.append(tried, power)
            ratios = own[:, None] / disturbance
            utility = _mean_log(ratios).mean(axis=1) / math.log(2.0) - self.price * own
            gains[link] = utility.max() - utility[-1]
        return gains

    def equilibrium_power(self) -> float:
        """Power, not in decibels, at which no link gains by deviating if all have it.

        Raises
        ------
        ValueError
            If the range of powers does not hold it.
        """
        low, high = float(_linear(self.lowest)), float(_linear(self.highest))
        if self._slope(low) < 0.0 or self._slope(high) > 0.0:
            raise ValueError(
                f"price={self.price!r} must be such that the powers from {low:g} to {high:g} hold "
                f"an equilibrium."
            )
        return float(brentq(self._slope, low, high, xtol=1e-10))

    def _slope(self, power: float) -> float:
        """Derivative of a link's utility with its own power, where all have the same."""
        base = float(_linear(self.noise))
        spread = float(_linear(self.interference)) * power
        others = gamma(self.n_links - 1)

        def integrand(share: float) -> float:
            disturbance = base + spread * float(others.ppf(share))
            return _log_slope(power / disturbance) / power

        # Over the quantiles of the sum of the other links' channels.
        mean, _ = quad(integrand, 0.0, 1.0, limit=200)
        return mean / math.log(2.0) - self.price


def _mean_log(ratio: FloatArray) -> FloatArray:
    """Mean of ``ln(1 + h r)`` over h with the standard exponential distribution."""
    inverse = 1.0 / ratio
    near = np.minimum(inverse, _FAR)
    mean: FloatArray = np.where(inverse < _FAR, np.exp(near) * exp1(near), ratio)
    return mean


def _log_slope(ratio: float) -> float:
    """Mean of ``h r / (1 + h r)`` over h with the standard exponential distribution."""
    inverse = 1.0 / ratio
    if inverse > _FAR:
        return ratio
    return 1.0 - inverse * math.exp(inverse) * float(exp1(inverse))


def _received(sending: FloatArray) -> FloatArray:
    """Probability that each of several terminals sends while no other does."""
    silent = 1.0 - sending
    return np.array(
        [p * np.prod(np.delete(silent, index)) for index, p in enumerate(sending)], dtype=float
    )


def _linear(decibels: float | FloatArray) -> FloatArray:
    linear: FloatArray = np.asarray(10.0 ** (np.asarray(decibels) / 10.0))
    return linear


def _draw_function(
    grid: FloatArray, rate: float, n_axes: int, rng: np.random.Generator
) -> FloatArray:
    """A function drawn from the Gaussian process with the kernel exp(-rate |x - x'|**2)."""
    kernel = np.exp(-rate * (grid[:, None] - grid[None, :]) ** 2)
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn: FloatArray = rng.standard_normal((len(grid),) * n_axes)
    # The kernel is a product over the axes, and so is its root.
    for _ in range(n_axes):
        drawn = np.tensordot(drawn, root, axes=([0], [1]))
    return drawn
