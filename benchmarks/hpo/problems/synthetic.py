"""Functions in closed form that multi-fidelity methods are commonly compared on.

The level z of the fidelity is between 0, the crudest published form, and 1, the function itself; an
evaluation costs z. Functions that are published to be minimised are negated.

- Branin and Hartmann: Kandasamy et al., "Tuning hyperparameters without grad students: scalable and
  robust Bayesian optimisation with Dragonfly", JMLR 21 (2020), and "Multi-fidelity Bayesian
  optimisation with continuous approximations", ICML 2017; all their fidelities are the same z.
- Currin: Currin et al., "A Bayesian approach to the design and analysis of computer experiments",
  ORNL-6498 (1988); the crude form of Xiong, Qian and Wu, Technometrics 55 (2013).
- Forrester: Forrester, Sóbester and Keane, "Multi-fidelity optimization via surrogate modelling",
  Proceedings of the Royal Society A 463 (2007), with its crude form.

Where only two forms are published (Currin, Forrester), those between are their weighted means. The
crude forms of Branin, Currin and Hartmann rank configurations almost as the target does: what is
hard about them is the noise. Forrester's misleads: at 1/27 the rank correlation is about .3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.known import NoisyProblem, checked_sigma
from benchmarks.hpo.space import Configuration, ConfigurationSpace, Float
from mfhpo.knowledge.arrays import FloatArray

LEVELS = (1 / 27, 1 / 9, 1 / 3, 1.0)
"""Levels of the fidelity, and their costs."""

_DEFAULT_NOISE = 0.05  # of the distance of the best value from the median random one


def _branin(points: FloatArray, level: float) -> FloatArray:
    first, second = points.T
    square = 5.1 / (4.0 * np.pi**2) - 0.01 * (1.0 - level)
    slope = 5.0 / np.pi - 0.1 * (1.0 - level)
    share = 1.0 / (8.0 * np.pi) + 0.005 * (1.0 - level)
    valley = second - square * first**2 + slope * first - 6.0
    values: FloatArray = -(valley**2 + 10.0 * (1.0 - share) * np.cos(first) + 10.0)
    return values


def _currin(points: FloatArray, level: float) -> FloatArray:
    shifts = 0.05 * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    near = points + shifts[:, None, :]
    near[..., 1] = np.maximum(near[..., 1], 0.0)
    crude: FloatArray = _currin_target(near).mean(axis=0)
    return level * _currin_target(points) + (1.0 - level) * crude


def _currin_target(points: FloatArray) -> FloatArray:
    first, second = points[..., 0], points[..., 1]
    with np.errstate(divide="ignore"):  # where the second is 0, the factor is its limit, 1
        factor = 1.0 - np.exp(-1.0 / (2.0 * second))
    above = 2300.0 * first**3 + 1900.0 * first**2 + 2092.0 * first + 60.0
    below = 100.0 * first**3 + 500.0 * first**2 + 4.0 * first + 20.0
    values: FloatArray = factor * above / below
    return values


def _forrester(points: FloatArray, level: float) -> FloatArray:
    place = points[:, 0]
    target = (6.0 * place - 2.0) ** 2 * np.sin(12.0 * place - 4.0)
    crude = 0.5 * target + 10.0 * (place - 0.5) - 5.0
    values: FloatArray = -(level * target + (1.0 - level) * crude)
    return values


_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_WIDTHS_3 = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
_CENTRES_3 = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
_WIDTHS_6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_CENTRES_6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(
    points: FloatArray, level: float, widths: FloatArray, centres: FloatArray
) -> FloatArray:
    distances = (widths * (points[:, None, :] - centres) ** 2).sum(axis=2)
    values: FloatArray = np.exp(-distances) @ (_HEIGHTS - 0.1 * (1.0 - level))
    return values


def _hartmann_3(points: FloatArray, level: float) -> FloatArray:
    return _hartmann(points, level, _WIDTHS_3, _CENTRES_3)


def _hartmann_6(points: FloatArray, level: float) -> FloatArray:
    return _hartmann(points, level, _WIDTHS_6, _CENTRES_6)


@dataclass(frozen=True)
class _Form:
    function: Callable[[FloatArray, float], FloatArray]  # points of shape (n, parameters), level
    ranges: tuple[tuple[float, float], ...]
    best: float  # found by descent from the best of 200,000 points, and as published


_FORMS = {
    "branin": _Form(_branin, ((-5.0, 10.0), (0.0, 15.0)), -0.39788735772973816),
    "currin": _Form(_currin, ((0.0, 1.0),) * 2, 13.798722044728),
    "forrester": _Form(_forrester, ((0.0, 1.0),), 6.020740055767),
    "hartmann3": _Form(_hartmann_3, ((0.0, 1.0),) * 3, 3.862779787332),
    "hartmann6": _Form(_hartmann_6, ((0.0, 1.0),) * 6, 3.322368011415),
}

SYNTHETIC = tuple(_FORMS)
"""Names of the functions."""


class Synthetic(NoisyProblem):
    """One of the functions.

    Parameters
    ----------
    name
        One of `SYNTHETIC`.
    sigma
        Standard deviation of the noise; by default 5 % of the distance between the best value and
        that of the median random configuration.
    levels
        Greater than 0, increasing, the last one 1.

    Raises
    ------
    ValueError
        If the name is unknown, or the levels do not increase to 1.

    Examples
    --------
    >>> problem = Synthetic("forrester", sigma=0.0)
    >>> problem.true_value({"x1": 0.75})
    5.99...
    >>> problem.objective_function({"x1": 0.75}, fidelity=1.0, seed=0)
    Evaluation(value=5.99..., cost=1.0)
    """

    def __init__(
        self, name: str, sigma: float | None = None, levels: tuple[float, ...] = LEVELS
    ) -> None:
        if name not in _FORMS:
            raise ValueError(f"name must be one of {SYNTHETIC}, got {name!r}.")
        if levels[0] <= 0.0 or levels[-1] != 1.0:
            raise ValueError(f"levels must be greater than 0 and end with 1, got {levels!r}.")
        form = _FORMS[name]
        self._function = form.function
        ranges = {f"x{i}": Float(*bounds) for i, bounds in enumerate(form.ranges, 1)}
        space = ConfigurationSpace(ranges)
        super().__init__(name, space, FidelitySpace("level", levels, continues=False), 0.0)
        self.best_value = form.best
        if sigma is None:
            rng = np.random.default_rng(0)
            median = np.median(self.true_values([space.draw(rng) for _ in range(1000)]))
            sigma = _DEFAULT_NOISE * float(form.best - median)
        self.sigma = checked_sigma(sigma)

    def noiseless(self, configurations: Sequence[Configuration], fidelity: float) -> FloatArray:
        """The function's values at a level."""
        names = list(self.space.parameters)
        points = [[configuration[name] for name in names] for configuration in configurations]
        return self._function(np.array(points, dtype=np.float64), fidelity)
