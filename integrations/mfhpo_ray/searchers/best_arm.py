"""Searchers among given configurations, by one policy or by the one that suits the problem.

Some find the best configuration and certify it. Others maximise what the trials themselves earn.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING

from mfhpo import IISE
from mfhpo.certification.choice import (
    LOSSES_ARE_MAXIMISED,
    PolicyChoice,
    check_parts,
    choose_blocks,
    make_best_policy,
    make_elimination,
    make_lucb,
    recommend_policy,
)
from mfhpo.experiment import RaceSettings, SearchSettings
from mfhpo.experiment.settings import Settings
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import MFEliminationOptions, MFUCBOptions, runs
from mfhpo.regret import MFUCB, MFElimination
from mfhpo.search import BudgetedSearch
from mfhpo_ray.searchers.candidates import ArmsLike
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.options import (
    FidelitySearchOptions,
    IISESearchOptions,
    MFGradSearchOptions,
    MFLUCBSearchOptions,
    MFSearchOptions,
)
from mfhpo_ray.searchers.race import RaceTrials

if TYPE_CHECKING:
    from typing_extensions import Unpack

_logger = logging.getLogger("mfhpo_ray")


@runs(IISE, IISESearchOptions, epsilon=None, measure=10, seed_key="seed")
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
    than the best arm, provided that what was declared is true. Where no bias is declared, only
    values at the target level are evidence. Noise that is not declared is estimated from the first
    trials, and the certificate names it. Trials must be noisy in the way that matters: draw a new
    split and initial state from ``config["seed"]`` in each.

    A `budget` below four evaluations of each configuration at the target changes what cheap levels
    do, if neither `bias` nor `variant` is given and costs are not measured. They then choose at
    most four finalists, which are evaluated again, and the claim is about these. The answer is
    that of a search then.

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
    `recommendation` answers all the same. A trial that another scheduler or a stop of the
    ``RunConfig`` has ended early is paid, and gives neither a value nor a failure.

    Evaluations of one configuration at one level count in the order in which they began, failures
    included: else the quick ones would bias their mean. So the race waits for slow ones, and names
    them in the answer and in the log. Give trials a limit, ``search.scheduler(limit=...)``: one
    that is stopped there counts in its turn. A trial whose process or node dies is left out.

    With its scheduler, nothing is lost when the driver dies: ``Tuner.restore(...).fit()`` goes on
    where it stopped. With another scheduler, the last ten seconds or so are evaluated again.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[IISESearchOptions]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options, make_elimination), arms)


@runs(MFGrad, MFGradSearchOptions, epsilon=None, measure=10, seed_key="seed")
class MFGradSearch(ExperimentSearch):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. It learns the
    best split of the cost among all pairs of configuration and level. A step takes more computing
    than one of `MFSearch`, which is the better choice elsewhere. It guarantees the same as
    `IISESearch`; with ``stop="published"`` delta is not proven.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[MFGradSearchOptions]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options), arms)


@runs(MFLUCB, MFLUCBSearchOptions, epsilon=None, measure=10, seed_key="seed")
class MFLUCBSearch(ExperimentSearch):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: when the two best means are roughly known beforehand (then ``explore="A"`` or
    "B" picks the levels that pay), or to repeat published results. Else `MFSearch` usually needs
    less. It guarantees the same as `IISESearch`: what is declared about the two best means only
    chooses levels. If it is wrong, the race is dearer, and the certificate as good. Bias bounds of
    kind "order" are refused.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[MFLUCBSearchOptions]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options, make_lucb), arms)


@runs(MFTopTwo, MFSearchOptions, aim="best arm", epsilon=None, measure=None, seed_key="seed")
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
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[MFSearchOptions]
    ) -> None:
        self._race = RaceTrials(self, fidelity, options, make_best_policy, looks=True)
        super().__init__(self._race, arms)
        check_parts(options)

    @property
    def choice(self) -> PolicyChoice:
        """Chosen policy and the reason; ValueError before the first suggestion."""
        if self.evaluations.log is None:
            raise ValueError("no policy is chosen yet: it is in the first suggestion.")
        return self._chosen(self._log.experiment.settings)

    def _chosen(self, settings: Settings) -> PolicyChoice:
        if isinstance(settings, SearchSettings):
            n_arms = len(settings.candidates)
            return PolicyChoice(BudgetedSearch, self._race.in_words(n_arms))
        assert isinstance(settings, RaceSettings)
        assert not isinstance(settings.candidates, int)
        if settings.in_blocks:
            return choose_blocks()
        n_arms, levels = len(settings.candidates), settings.fidelity.levels or ()
        problem = settings.declaration.problem(n_arms, levels, settings.sign)
        return recommend_policy(problem, self._race.options["aim"])

    def _announce(self, settings: Settings) -> None:
        super()._announce(settings)
        choice = self._chosen(settings)
        if choice.policy is not BudgetedSearch:
            _logger.info("%s is chosen: %s.", choice.policy.__name__, choice.reason.rstrip("."))
            if self._race.options["aim"] == "reward per pull" and settings.sign < 0.0:
                warnings.warn(LOSSES_ARE_MAXIMISED.format(self._metric), stacklevel=5)


class _MFUCB(MFUCBOptions, FidelitySearchOptions):
    pass


class _MFElimination(MFEliminationOptions, FidelitySearchOptions):
    pass


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
    Multi-Armed Bandits Revisited" (NeurIPS 2023).

    A metric that is minimised is taken for the negative reward: the arm with the smallest loss is
    played as often as the budget allows, at the cheapest level. Where every trial *is* a loss, that
    is the opposite of what keeps the sum of the losses small, and a warning says so once.

    The answer is never certified; its interval holds with probability at least 1 - `delta`. What
    was missed in comparison with the best arm grows as the budget to the power 2/3 at most, if what
    was declared is true. No bias has to be known.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFElimination]
    ) -> None:
        super().__init__(RaceTrials(self, fidelity, options), arms)

    def _announce(self, settings: Settings) -> None:
        super()._announce(settings)
        if settings.sign < 0.0:
            warnings.warn(LOSSES_ARE_MAXIMISED.format(self._metric), stacklevel=5)
