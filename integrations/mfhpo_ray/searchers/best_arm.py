"""Searchers among given configurations, by one policy or by the one that suits the problem.

Some find the best configuration and certify it. Others maximise what the trials themselves earn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mfhpo import IISE
from mfhpo.certification.choice import (
    PolicyChoice,
    check_parts,
    make_best_policy,
    make_elimination,
    make_lucb,
)
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import (
    BlockOptions,
    ChoiceOptions,
    IISEOptions,
    MFEliminationOptions,
    MFGradOptions,
    MFLUCBOptions,
    MFUCBOptions,
    runs,
)
from mfhpo.regret import MFUCB, MFElimination
from mfhpo_ray.experiment.options import FidelitySearchOptions
from mfhpo_ray.searchers.candidates import ArmsLike
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.race import RaceTrials

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _IISE(IISEOptions, BlockOptions, FidelitySearchOptions):
    pass


class _MFGrad(MFGradOptions, BlockOptions, FidelitySearchOptions):
    pass


class _MFLUCB(MFLUCBOptions, BlockOptions, FidelitySearchOptions):
    pass


class _MF(ChoiceOptions, BlockOptions, FidelitySearchOptions):
    pass


class _MFUCB(MFUCBOptions, FidelitySearchOptions):
    pass


class _MFElimination(MFEliminationOptions, FidelitySearchOptions):
    pass


@runs(IISE, _IISE, epsilon=None, measure=10, seed_key="seed")
class IISESearch(ExperimentSearch):
    """Finds the best of a set of configurations, cheap fidelities first, and certifies it.

    Every trial is one noisy evaluation of one configuration (arm) at one level of the fidelity,
    with a seed of its own. Configurations that cannot be the best any more are not evaluated again;
    the run ends by itself when one is left, or when the leader is within `epsilon` of all others::

        search = IISESearch("epochs", arms=32, metric="accuracy", mode="max", delta=0.05)
        tuner = tune.Tuner(
            train,
            param_space={"lr": tune.loguniform(1e-5, 1e-1), "epochs": tune.randint(1, 82)},
            tune_config=tune.TuneConfig(
                search_alg=search, scheduler=search.scheduler(), num_samples=-1,
                max_concurrent_trials=8,
            ),
        )
        print(mfhpo_ray.recommendation(tuner.fit()))

    With probability at least 1 - `delta`, the certified configuration is at most `epsilon` worse
    than the best arm, provided that what was declared is true. Noise that is not declared is
    estimated, and the certificate says so. Without bounds on the bias, only values at the target
    are evidence. A `budget` that does not pay for comparing all configurations there makes the race
    a search (see `estimated_bias`). Draw a new split and initial state from ``config["seed"]`` in
    each trial.

    Parameters
    ----------
    fidelity
        The key of the configuration that the search is to set: its name, or a `mfhpo.Fidelity`
        that also declares levels, costs or bias. Else levels come from the search space: geometric
        ones of a range, or the categories of a choice in their order. Measured costs are
        ``time_total_s`` of a trial's last result. Here and in the search space ``"train/epochs"``
        is the key ``epochs`` of the dictionary ``train``.
    arms
        The configurations to compare: how many to draw from the search space; or a list of
        configurations. A finite space with fewer configurations is raced whole.

    Notes
    -----
    ``num_samples=-1`` lets the race go on until it is over; a number ends it earlier, and
    `recommendation` answers all the same.

    Evaluations of one configuration at one level count in the order in which they began, failures
    included: else the quick ones would bias their mean. So the race waits for slow ones, and names
    them in the answer and in the log. Give trials a limit, ``search.scheduler(limit=...)``: one
    that is stopped there counts in its turn. A trial whose process or node dies is left out. One
    that another scheduler or a stop of the ``RunConfig`` has ended early is paid, and gives neither
    a value nor a failure.

    With its scheduler, nothing is lost when the driver dies: ``Tuner.restore(...).fit()`` goes on
    where it stopped. With another scheduler, the last ten seconds or so are evaluated again.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_IISE]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options, make_elimination), arms)


@runs(MFGrad, _MFGrad, epsilon=None, measure=10, seed_key="seed")
class MFGradSearch(ExperimentSearch):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. A step takes
    more computing than one of `MFSearch`, which is the better choice elsewhere. It guarantees the
    same as `IISESearch`; with ``stop="published"`` delta is not proven.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFGrad]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options), arms)


@runs(MFLUCB, _MFLUCB, epsilon=None, measure=10, seed_key="seed")
class MFLUCBSearch(ExperimentSearch):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: when the two best means are roughly known beforehand (then ``explore="A"`` or
    "B" picks the levels that pay), or to repeat published results. Else `MFSearch` usually needs
    less. It guarantees the same as `IISESearch`, also if what is declared about the two best means
    is wrong. Bias bounds of kind "order" are refused.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFLUCB]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options, make_lucb), arms)


@runs(MFTopTwo, _MF, aim="best arm", epsilon=None, measure=None, seed_key="seed")
class MFSearch(ExperimentSearch):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. `choice` and the log "mfhpo_ray" tell
    which policy was chosen, and why. With ``aim="best arm"`` it guarantees what `IISESearch` does,
    which has an example. With the other aims nothing is certified, and the run ends when the budget
    is spent. An option that has no part in the aim is refused.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    **options
        See `mfhpo.racing.options.ChoiceOptions`. Without `measure`, the winner for "best arm" gets
        10 evaluations.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MF]
    ) -> None:
        self._race = RaceTrials(self, fidelity, options, make_best_policy, chooses=True)
        super().__init__(self._race, arms)
        check_parts(options)

    @property
    def choice(self) -> PolicyChoice:
        """Chosen policy and the reason; ValueError before the first suggestion."""
        if self.evaluations.log is None:
            raise ValueError("no policy is chosen yet: it is in the first suggestion.")
        return self._race.choice(self._log.experiment.settings)


@runs(MFUCB, _MFUCB, seed_key="seed")
class MFUCBSearch(ExperimentSearch):
    """Evaluates good configurations more and more often: for what the trials earn, per cost.

    When to use it: when the trials themselves count, not only the answer, and a dearer trial
    counts for more. Each is worth its configuration's mean at the target times its cost, such as
    the share of traffic that a variant is shown to. Bad configurations are left at cheap levels.
    To find a configuration, use `MFSearch`: it stops, and says how sure it is.

    The answer is never certified; its interval holds with probability at least 1 - `delta`. What
    was missed in comparison with the best arm at the target grows with the logarithm of the cost
    only, if what was declared is true. Give a `budget`, or a number of samples: without either the
    run goes on for ever. Bias bounds of kind "order" are refused.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFUCB]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options), arms)


@runs(MFElimination, _MFElimination, seed_key="seed")
class MFEliminationSearch(ExperimentSearch):
    """Compares configurations at the target, then runs the best of them where it is cheap.

    When to use it: as `MFUCBSearch`, but where each trial counts the same, whatever it costs: it
    is worth its configuration's mean at the target. It is Algorithm 3 of "Multi-Fidelity
    Multi-Armed Bandits Revisited" (NeurIPS 2023). No bias has to be known.

    A metric that is minimised is taken for the negative reward: the arm with the smallest loss is
    played as often as the budget allows, at the cheapest level. Where every trial *is* a loss, that
    is the opposite of what keeps the sum of the losses small, and a warning says so once.

    The answer is never certified; its interval holds with probability at least 1 - `delta`. What
    was missed in comparison with the best arm grows as the budget to the power 2/3 at most, if what
    was declared is true.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFElimination]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options), arms)
