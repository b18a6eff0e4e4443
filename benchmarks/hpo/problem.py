"""The contract of a problem: what can be tuned, how cheaply it can be looked at, what it costs."""

import abc
from dataclasses import dataclass

from benchmarks.hpo.space import Configuration, ConfigurationSpace


@dataclass(frozen=True)
class FidelitySpace:
    """How cheaply a configuration can be evaluated.

    Parameters
    ----------
    name
        Of the parameter that sets it, such as "epochs".
    levels
        Its levels, cheapest first; the last one is the target.
    continues
        Whether an evaluation can go on from a cheaper one of the same run (a checkpoint), so that
        only the difference of the costs is paid.
    """

    name: str
    levels: tuple[float, ...]
    continues: bool

    @property
    def target(self) -> float:
        """The level that counts."""
        return self.levels[-1]


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation gave.

    Parameters
    ----------
    value
        Noisy, and the larger the better.
    cost
        Of an evaluation from scratch, in the problem's unit of cost.
    """

    value: float
    cost: float


class Problem(abc.ABC):
    """Something to tune, in HPOBench's terms; values are maximised.

    Attributes
    ----------
    name
        Unique, such as "lcbench 3945".
    space, fidelity
        What is tuned, and the levels at which it can be evaluated.
    full_cost
        Cost of an evaluation at the target level (of a typical one, where costs differ): budgets
        are given in this unit.
    seconds
        Seconds that an evaluation at the target level takes, measured or as the table says; None
        where there is no such thing.
    best_value
        The largest true value, where it is known exactly; else None.
    """

    name: str
    space: ConfigurationSpace
    fidelity: FidelitySpace
    full_cost: float
    seconds: float | None = None
    best_value: float | None = None

    @abc.abstractmethod
    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        """Evaluate a configuration.

        Parameters
        ----------
        configuration
            Values of the parameters that apply.
        fidelity
            One of the levels.
        seed
            Of the run: with the same seed the value is the same. One run's values at different
            levels have noise of their own.

        Raises
        ------
        ValueError
            If the configuration lacks a parameter, or the fidelity is no level.
        """

    def seconds_of(self, configuration: Configuration, fidelity: float) -> float | None:
        """Seconds that a training from scratch takes; None where costs are seconds anyway."""
        return None

    @abc.abstractmethod
    def true_value(self, configuration: Configuration) -> float | None:
        """The expected value at the target level, or None if it is not known."""
