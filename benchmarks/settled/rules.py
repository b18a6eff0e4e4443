"""Rules that stop a study, each by the values of its trials or by what Optuna makes of them.

The free parameter of each rule is its last argument.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from optuna.study import StudyDirection
from optuna.terminator import EMMREvaluator, RegretBoundEvaluator
from optuna.trial import FrozenTrial

from mfhpo.certification.settling import N_FIRST, N_IN_A_ROW, Settling
from mfhpo.knowledge.arrays import FloatArray

AHEAD = 50  # further trials that `StopWhenSettled` speaks of
EVERY, EVERY_MODEL = 10, 50  # trials after which Optuna's terminators look again, to save time
IQR_SHARE = 0.1  # the default of Ax's `improvement_bar`
DEFAULTS = "settled, defaults"
EPSILONS = (1.0, 2.0)  # standard deviations of the noise


@dataclass(frozen=True)
class Played:
    """A study that has been played to its end.

    Parameters
    ----------
    values
        The larger the better, shape (n,).
    sigma
        Standard deviation of their noise.
    trials
        Those that gave the values.
    """

    values: FloatArray
    sigma: float
    trials: Sequence[FrozenTrial] = ()

    @cached_property
    def regret_bounds(self) -> dict[int, float]:
        """Bounds on the regret by the number of trials, in units of the value."""
        return self._regrets(RegretBoundEvaluator, EVERY)

    @cached_property
    def model_regrets(self) -> dict[int, float]:
        """Expected minimum model regrets by the number of trials, in units of the value.

        Optuna gives them in standard deviations of all values.
        """
        found = self._regrets(EMMREvaluator, EVERY_MODEL)
        return {n: regret * float(np.std(self.values[:n])) for n, regret in found.items()}

    def _regrets(
        self, evaluator: type[RegretBoundEvaluator | EMMREvaluator], every: int
    ) -> dict[int, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that they are experimental
            return {
                n: evaluator(seed=0).evaluate(list(self.trials[:n]), StudyDirection.MAXIMIZE)
                for n in range(N_FIRST, len(self.values), every)
            }


@dataclass(frozen=True)
class Stop:
    """Where a rule has cut a study: after so many trials, with what it promised, and epsilon."""

    n: int
    epsilon: float
    chance: float | None = None


def settled(study: Played, epsilons: float | None, delta: float = 0.1) -> Stop:
    """Cut a study as `StopWhenSettled` does, if 50 trials are left to look at."""
    values = study.values
    rule = Settling(None if epsilons is None else epsilons * study.sigma, AHEAD, delta)
    row = 0
    for n in range(N_FIRST, len(values) - AHEAD + 1):
        found = rule.outlook(values[:n])
        row = row + 1 if found.chance <= rule.delta else 0
        if row == N_IN_A_ROW:
            return Stop(n, found.epsilon, found.chance)
    return Stop(len(values), rule.outlook(values).epsilon)


def patience(study: Played, epsilons: float, length: int) -> Stop:
    """Cut a study when nothing was better by epsilon for a number of trials."""
    best, since, epsilon = -np.inf, 0, epsilons * study.sigma
    for n, value in enumerate(study.values, 1):
        best, since = (value, 0) if value > best + epsilon else (best, since + 1)
        if since == length:
            return Stop(n, epsilon)
    return Stop(len(study.values), epsilon)


def stagnation(study: Played, epsilons: float, length: int) -> Stop:
    """Cut a study when nothing was better at all for a number of trials.

    That is what Optuna's `BestValueStagnationEvaluator` does, looking after each trial.
    """
    return Stop(patience(study, 0.0, length + 1).n, epsilons * study.sigma)


def fixed(study: Played, epsilons: float, n: int) -> Stop:
    """Cut every study after as many trials."""
    return Stop(min(n, len(study.values)), epsilons * study.sigma)


def improvement(study: Played, epsilons: float, window: int) -> Stop:
    """Cut a study as Ax's `ImprovementGlobalStoppingStrategy` does.

    It looks at the last trials of a window. By less than a tenth of the interquartile range of all
    values must the last of them have a better best value than the first.
    """
    values = study.values
    best = np.maximum.accumulate(values)
    for n in range(max(N_FIRST, window), len(values) + 1):
        high, low = np.percentile(values[:n], [75, 25])
        if best[n - 1] - best[n - window] < IQR_SHARE * (high - low):
            return Stop(n, epsilons * study.sigma)
    return Stop(len(values), epsilons * study.sigma)


def regret_bound(study: Played, epsilons: float, times: float) -> Stop:
    """Cut a study as Optuna's `Terminator` does: when the bound is below so many epsilons."""
    return _below(study, study.regret_bounds, epsilons, times)


def model_regret(study: Played, epsilons: float, times: float) -> Stop:
    """Cut a study in the same way by the expected minimum model regret."""
    return _below(study, study.model_regrets, epsilons, times)


def _below(study: Played, regrets: dict[int, float], epsilons: float, times: float) -> Stop:
    epsilon = epsilons * study.sigma
    for n, regret in regrets.items():
        if regret < times * epsilon:
            return Stop(n, epsilon)
    return Stop(len(study.values), epsilon)


@dataclass(frozen=True)
class Family:
    """A rule with the settings that are looked at.

    Parameters
    ----------
    rule
        Given a study, how many standard deviations of the noise epsilon is, and the setting.
    name
        The rule's, with a place for the setting.
    free
        The rule's, with what the setting is.
    shown
        Settings that are usual.
    grid
        Settings of which one is chosen on development tasks.
    chosen
        That setting, by the number of standard deviations; both as they are written to results.
    slow
        Whether it models the objective, by PyTorch: it is asked about one study of a task.
    """

    rule: Callable[[Played, float, Any], Stop]
    name: str
    free: str
    shown: tuple[float, ...] = ()
    grid: tuple[float, ...] = ()
    chosen: dict[str, float] = field(default_factory=dict)
    slow: bool = False

    @property
    def is_there(self) -> bool:
        """True if what it needs is installed."""
        return not self.slow or find_spec("torch") is not None

    def settings(self, epsilons: float, judged: bool) -> list[float]:
        """Return the settings that are played, each once."""
        if judged:
            more = [self.chosen[f"{epsilons:g}"]] if self.chosen else []
        else:
            more = list(self.grid)
        return list(dict.fromkeys([*self.shown, *more]))

    def full_name(self, setting: float, epsilons: float) -> str:
        """Return the name of the rule with its setting and epsilon."""
        return f"{self.name.format(setting)}, epsilon {epsilons:g} sigma"


# What is chosen is printed by `python -m benchmarks.settled --tasks development --seeds 1`: the
# setting that saves most, of those by which at most one study of ten loses something.
FAMILIES: dict[str, Family] = {
    "settled": Family(
        settled,
        "settled, delta {:g}",
        "settled: delta",
        (0.1, 0.2, 0.3),
        (0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.25, 0.3),
        {"1": 0.12, "2": 0.12},
    ),
    "patience": Family(
        patience,
        "patience of {:g}",
        "patience: trials",
        (30,),
        tuple(range(30, 160, 10)),
        {"1": 150, "2": 130},
    ),
    "fixed": Family(
        fixed,
        "{:g} trials",
        "fixed: trials",
        (100, 150, 200),
        tuple(range(100, 250, 10)),
        {"1": 230, "2": 220},
    ),
    "stagnation": Family(
        stagnation, "Optuna's stagnation of {:g}", "Optuna's stagnation: trials", (30,)
    ),
    "regret bound": Family(
        regret_bound,
        "Optuna's regret bound < {:g} epsilon",
        "Optuna's regret bound: times epsilon",
        (1.0,),
        (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0),
        {"1": 2.0, "2": 1.75},
        slow=True,
    ),
    "EMMR": Family(
        model_regret,
        "Optuna's EMMR < {:g} epsilon",
        "Optuna's EMMR: times epsilon",
        (1.0,),
        slow=True,
    ),
    "Ax": Family(
        improvement,
        "Ax, window of {:g}",
        "Ax: window",
        (5,),
        tuple(range(20, 160, 10)),
        {"1": 150, "2": 140},
    ),
}
