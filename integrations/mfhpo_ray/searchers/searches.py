"""Searches among given configurations, by one policy or by the one that suits, or in a space."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ray.tune.utils import flatten_dict

from mfhpo import IISE
from mfhpo.certification.choice import (
    LOSSES_ARE_MAXIMISED,
    PolicyChoice,
    check_parts,
    make_best_policy,
)
from mfhpo.experiment import SearchSettings
from mfhpo.experiment.kinds.race import DeclaredRace
from mfhpo.experiment.kinds.runner import Settings
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.racing.declaration import Declaration
from mfhpo.racing.options import (
    BlockOptions,
    ChoiceOptions,
    IISEOptions,
    MFEliminationOptions,
    MFGradOptions,
    MFLUCBOptions,
    MFUCBOptions,
    own_and_host,
    runs,
)
from mfhpo.regret import MFUCB, MFElimination
from mfhpo.search import BudgetedSearch, DeclaredSearch, SearchOptions
from mfhpo_ray.experiment.configurations import Config, copied, without
from mfhpo_ray.experiment.options import SearcherOptions
from mfhpo_ray.experiment.results import as_results, check_aim
from mfhpo_ray.searchers.candidates import ArmsLike
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials

if TYPE_CHECKING:
    from typing_extensions import Unpack


_TRAINING = "training"  # the key of the configuration that names a training with checkpoints


class _IISE(IISEOptions, BlockOptions, SearcherOptions): ...


class _MFGrad(MFGradOptions, BlockOptions, SearcherOptions): ...


class _MFLUCB(MFLUCBOptions, BlockOptions, SearcherOptions): ...


class _MF(ChoiceOptions, BlockOptions, SearcherOptions): ...


class _MFUCB(MFUCBOptions, SearcherOptions): ...


class _MFElimination(MFEliminationOptions, SearcherOptions): ...


@runs(IISE, _IISE, epsilon=None, measure=10, seed_key="seed")
class IISESearch(ExperimentSearch):
    """Finds the best of a set of configurations, cheap fidelities first, and certifies it.

    Every trial is one noisy evaluation of one configuration at one level of the fidelity, with a
    seed of its own. The run ends by itself when one configuration is left, or when the leader is
    within `epsilon` of all others::

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
    than the best arm, provided that what was declared is true. Without bounds on the bias, only
    values at the target are evidence. A `budget` that does not pay for comparing all configurations
    there makes the race a search (see `estimated_bias`). Draw a new split and initial state from
    ``config["seed"]`` in each trial.

    Notes
    -----
    Evaluations of one configuration at one level count in the order in which they began: else the
    quick ones would bias their mean. So the race waits for slow ones, and names them. Give trials a
    limit, ``search.scheduler(limit=...)``: one that is stopped there counts in its turn. A trial
    whose process or node dies is left out; one that something else ends is paid.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_IISE]
    ) -> None:
        super().__init__(_RaceTrials(self, fidelity, options), arms)


@runs(MFGrad, _MFGrad, epsilon=None, measure=10, seed_key="seed")
class MFGradSearch(ExperimentSearch):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. A step takes
    more computing than one of `MFSearch`, which is the better choice elsewhere. It guarantees the
    same as `IISESearch`; with ``stop="published"`` delta is not proven.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFGrad]
    ) -> None:
        super().__init__(_RaceTrials(self, fidelity, options), arms)


@runs(MFLUCB, _MFLUCB, epsilon=None, measure=10, seed_key="seed")
class MFLUCBSearch(ExperimentSearch):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: for confidence intervals that can be read off each configuration, or to repeat
    published results. Else `MFSearch` usually needs less. It guarantees the same as `IISESearch`.
    Bias bounds of kind "order" are refused.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFLUCB]
    ) -> None:
        super().__init__(_RaceTrials(self, fidelity, options), arms)


@runs(MFTopTwo, _MF, aim="best arm", epsilon=None, measure=None, seed_key="seed")
class MFSearch(ExperimentSearch):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. `choice` and the log "mfhpo_ray" tell
    which policy was chosen, and why. With ``aim="best arm"`` it guarantees what `IISESearch` does,
    which has an example. With the other aims nothing is certified, and the run ends when the budget
    is spent. An option that has no part in the aim is refused.

    Parameters
    ----------
    **options
        See `mfhpo.racing.options.ChoiceOptions`. Without `measure`, the winner for "best arm" gets
        10 evaluations.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MF]
    ) -> None:
        self._race = _RaceTrials(self, fidelity, options, chooses=True)
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
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFUCB]
    ) -> None:
        super().__init__(_RaceTrials(self, fidelity, options), arms)


@runs(MFElimination, _MFElimination, seed_key="seed")
class MFEliminationSearch(ExperimentSearch):
    """Compares configurations at the target, then runs the best of them where it is cheap.

    When to use it: as `MFUCBSearch`, but where each trial counts the same, whatever it costs: it
    is worth its configuration's mean at the target. It is Algorithm 3 of "Multi-Fidelity
    Multi-Armed Bandits Revisited" (NeurIPS 2023). No bias has to be known. Where a minimised metric
    is what every trial *loses*, it does the opposite of what is wanted, and warns once.

    The answer is never certified; its interval holds with probability at least 1 - `delta`. What
    was missed in comparison with the best arm grows as the budget to the power 2/3 at most.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFElimination]
    ) -> None:
        super().__init__(_RaceTrials(self, fidelity, options), arms)


class _RaceTrials(Trials):
    """Trials of a race over levels: see `DeclaredRace.of`; some choose the policy that suits."""

    def __init__(
        self,
        search: Any,
        fidelity: str | Fidelity,
        options: Mapping[str, Any],
        chooses: bool = False,
    ) -> None:
        own, host = own_and_host(type(search), options, SearcherOptions)
        self._name, self._chooses = type(search).__name__, chooses
        given = {name: options[name] for name in options.keys() - host.keys()}
        check_aim(host["metric"], host["mode"])
        policy = search._policy_class
        make, compares = (make_best_policy, "") if chooses else (policy, policy.__name__)
        self.race = DeclaredRace.of(fidelity, own, given, make, compares)
        self.race.rehearse(self.race.fidelity.levels or ())
        super().__init__(self.race.fidelity, host, self.race.replicate)

    def settings(self, source: Source, **common: Any) -> Settings:
        assert isinstance(source, list)
        known = _described(source, self.keys[0])
        return self.race.settings(source, self.levels, known=known, **common)

    def objection(self) -> str | None:
        declared = self.race.declaration
        return declared.objection_to(self.race.options["budget"], self.levels)

    def announcement(self, settings: Any, metric: str) -> list[str]:
        words = self.race.in_words(len(settings.candidates), self.levels)
        said = [f"{self._name}: {words}."] if words else []
        if isinstance(settings, SearchSettings):
            return said
        if settings.sign < 0.0 and isinstance(settings.runner().policy, MFElimination):
            warnings.warn(LOSSES_ARE_MAXIMISED.format(metric), stacklevel=5)
        if self._chooses:
            choice = self.choice(settings)
            said.append(f"{choice.policy.__name__} is chosen: {choice.reason.rstrip('.')}.")
        return said

    def choice(self, settings: Any) -> PolicyChoice:
        """Return the policy that suits the problem, and why."""
        n_arms, searches = len(settings.candidates), isinstance(settings, SearchSettings)
        return self.race.choice(n_arms, self.levels, settings.sign, searches=searches)

    def digest(self) -> dict[str, Any]:
        words = f"{self.race.fidelity.costs_of(self.levels)} and {self.race.declaration.bias}"
        return {"levels": repr(list(self.levels)), "costs and bias": words}


def _described(arms: Sequence[Config], name: str) -> list[Config]:
    """Return the arms' scalars by key for a model; their numbers, where they have anything else."""
    flat = [flatten_dict(arm) for arm in arms]
    values = [native(value) for arm in flat for value in arm.values()]
    if all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        return flat
    # No other key is like this one, as no arm has the fidelity's.
    return [{f"arm/{name}": str(arm)} for arm in range(len(arms))]


# In a space.


class _Space(SearchOptions, SearcherOptions): ...


@runs(BudgetedSearch, _Space, checkpoints=False, seed_key="seed")
class SpaceSearch(ExperimentSearch):
    """Searches a space with cheap and dear evaluations, then certifies the best it has found.

    When to use it: as you would use BOHB or Optuna with ASHA, for any space and a budget of some
    tens or hundreds of full evaluations. A model of all levels of the fidelity decides which
    configuration to begin and which to go on with. The end of the budget re-evaluates the finalists
    from scratch. A space of some tens of configurations is better raced whole, by `MFSearch`.

    What it guarantees: with probability at least 1 - `delta`, no configuration of the shortlist is
    better than the certified one by more than `epsilon`. It says nothing about configurations
    outside the shortlist. With `replicate` it is about the mean over replicates.

    Parameters
    ----------
    fidelity
        The key of the configuration that sets how dear an evaluation is, such as the number of
        epochs: see `IISESearch`; bias is not used. None: each trial is a full evaluation.
    space
        The space to search, in Tune's terms. None: the ``param_space`` of the Tuner. Choices may
        hold dictionaries, lists and domains, as in ``tune.choice([{"kind": "svm", "C":
        tune.loguniform(0.1, 10)}, {"kind": "tree"}])``: the model knows what applies to which. What
        the model cannot place, as what ``tune.sample_from`` gives, is drawn at random.
    seed_key
        As in `IISESearch`, but trials of one training share a seed, so that a split that is
        drawn from it stays the same.
    **options
        See `mfhpo.search.SearchOptions`. Trials under way are counted at what they are expected to
        cost.

    Notes
    -----
    A trial that fails is paid for like any other. After three in a row its configuration is given
    up, but not if they failed below the target before it had any value: then it may go on at the
    next level. A trial whose process or node dies is paid for, and evaluated again.

    With `checkpoints`, ``config["training"]`` is the name of the training that a trial goes on
    with. Trials of one configuration at rising levels share it; each evaluation for the certificate
    has its own. On stops by others and the order in which trials count, see `IISESearch`.
    """

    _draws = True
    _arms_name = "candidates"

    def __init__(self, fidelity: str | Fidelity | None = None, **options: Unpack[_Space]) -> None:
        trials = _SpaceTrials(self, fidelity, options)
        super().__init__(trials, trials.listed)


class _SpaceTrials(Trials):
    """Trials of a search of a space."""

    def __init__(
        self, search: Any, fidelity: str | Fidelity | None, options: Mapping[str, Any]
    ) -> None:
        own, host = own_and_host(type(search), options, SearcherOptions)
        declared = DeclaredSearch.of(fidelity, as_results=as_results, **own)
        keys = (declared.fidelity.name, host["seed_key"], declared.replicate)
        if declared.checkpoints and _TRAINING in keys:
            raise ValueError(f"{_TRAINING!r} is what checkpoints are kept under; rename that key.")
        training = _TRAINING if declared.checkpoints else None
        super().__init__(declared.fidelity, host, declared.replicate, training)
        if declared.fidelity.costs == "measured":
            self.hangs = "a trial that hangs is waited for"
        self.listed = declared.candidates if isinstance(declared.candidates, list) else None
        if isinstance(declared.baseline, Mapping):
            declared = replace(declared, baseline=without(copied(declared.baseline), self.keys))
        self._declared = declared
        self._declaration = Declaration.of(declared.fidelity, own["sigma"], None)

    def settings(self, source: Source, **common: Any) -> SearchSettings:
        common |= {"candidates": source} if isinstance(source, list) else {"space": source}
        return SearchSettings(declared=self._declared, levels=self.levels, **common)

    def objection(self) -> str | None:
        options = self._declared.options
        if options.get("unit") == "evaluations":
            return None
        return self._declaration.objection_to(options["budget"], self.levels)

    def digest(self) -> dict[str, Any]:
        return {"levels": repr(list(self.levels)), "costs": repr(self._declared.fidelity.costs)}
