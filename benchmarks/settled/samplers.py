"""The samplers whose studies are stopped, and the packages that some of them need."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    NSGAIISampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import FrozenTrial, TrialState

from benchmarks.hpo.ask_tell import Advice, Job, Optimiser, Setting
from benchmarks.hpo.problem import Problem
from benchmarks.peers.regularised_evolution import Evolution
from mfhpo_optuna import SearchSampler

Make = Callable[[Problem, int, int], BaseSampler]
"""Makes a sampler for a problem, a number of trials and a seed."""


class AskedAndTold(BaseSampler):
    """Another optimiser as a sampler of Optuna."""

    def __init__(self, optimiser: Optimiser) -> None:
        self._optimiser = optimiser
        self._job: Job | None = None

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._job = self._optimiser.ask()

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        assert self._job is not None
        return self._job.configuration[param_name]

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        assert self._job is not None
        assert values is not None
        self._optimiser.tell(self._job, values[0], 0.0)


class Nevergrad:
    """Nevergrad's own choice of an algorithm, on the unit cube."""

    def __init__(self, setting: Setting) -> None:
        import nevergrad

        self._space, self._target = setting.problem.space, setting.target
        cube = nevergrad.p.Array(shape=(len(self._space.parameters),), lower=0.0, upper=1.0)
        cube.random_state.seed(setting.seed)
        self._optimizer = nevergrad.optimizers.NGOpt(cube, budget=int(setting.budget))

    def ask(self) -> Job:
        """The next point."""
        point = self._optimizer.ask()
        return Job(self._space.at(point.value), self._target, point)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """It minimises."""
        self._optimizer.tell(job.handle, -value)

    def advice(self) -> Advice | None:
        """It is not asked for any."""
        return None


def _seeded(make: Callable[[int], BaseSampler]) -> Make:
    return lambda problem, n_trials, seed: make(seed)


def _told(make: Callable[[Setting], Optimiser]) -> Make:
    return lambda problem, n_trials, seed: AskedAndTold(
        make(Setting(problem, float(n_trials), 1, seed))
    )


@dataclass(frozen=True)
class Sampler:
    """A sampler: how it is made, and what it needs.

    Parameters
    ----------
    make
        Makes it.
    package
        What must be installed, besides what benchmarks need.
    slow
        Whether it takes minutes for a study: it is asked for one seed of half of the tasks.
    """

    make: Make
    package: str | None = None
    slow: bool = False

    @property
    def is_there(self) -> bool:
        """True if its package is installed."""
        return self.package is None or find_spec(self.package) is not None


SAMPLERS: dict[str, Sampler] = {
    "random": Sampler(_seeded(lambda seed: RandomSampler(seed=seed))),
    "quasi-random": Sampler(_seeded(lambda seed: QMCSampler(scramble=True, seed=seed))),
    "TPE": Sampler(_seeded(lambda seed: TPESampler(seed=seed))),
    "TPE, univariate": Sampler(_seeded(lambda seed: TPESampler(multivariate=False, seed=seed))),
    "GP": Sampler(_seeded(lambda seed: GPSampler(seed=seed)), package="torch", slow=True),
    "NSGA-II": Sampler(_seeded(lambda seed: NSGAIISampler(seed=seed))),
    "CMA-ES": Sampler(_seeded(lambda seed: CmaEsSampler(seed=seed)), package="cmaes"),
    "regularised evolution": Sampler(_told(Evolution)),
    "nevergrad": Sampler(_told(Nevergrad), package="nevergrad"),
    "mfhpo search": Sampler(
        lambda problem, n_trials, seed: SearchSampler(
            budget=4 * n_trials, seed=seed, progress=False
        )
    ),
}
