"""The searcher that searches a space, then certifies the best that was found."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mfhpo import Observation, Policy, Problem, Pull
from mfhpo._validation import shown
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import runs, with_defaults
from mfhpo.search import (
    BudgetedSearch,
    DeclaredSearch,
    Replicate,
    SearchOptions,
    SearchPolicy,
    SearchSpace,
    has_levels,
)
from mfhpo_ray.experiment.encoding import decode
from mfhpo_ray.experiment.pulls import Ended
from mfhpo_ray.experiment.recommendation import TuneRecommendation, TuneSearchRecommendation
from mfhpo_ray.experiment.replay import as_search
from mfhpo_ray.experiment.space import Config, assign, fingerprint
from mfhpo_ray.experiment.time_limits import MEMORY_KEY
from mfhpo_ray.searchers.arms import Arms
from mfhpo_ray.searchers.candidates import Candidates, OpenCandidates
from mfhpo_ray.searchers.fidelity_search import FidelitySearch

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TRAINING = "training"  # the key of the configuration that names a training with checkpoints


@runs(BudgetedSearch, SearchOptions, checkpoints=False)
class SpaceSearch(FidelitySearch):
    """Searches a space with cheap and dear evaluations, then certifies the best it has found.

    When to use it: as you would use BOHB or Optuna with ASHA, for any space and a budget of some
    tens or hundreds of full evaluations. A model of all levels of the fidelity decides which
    configuration to begin and which to go on with. The end of the budget re-evaluates the finalists
    from scratch. That gives the winner's value with an interval, and the probability that another
    finalist is better. It is given to a Tuner as `IISESearch` is. A space of some tens of
    configurations is better raced whole, by `MFSearch`.

    What it guarantees: with probability at least 1 - `delta`, no configuration of the shortlist is
    better than the certified one by more than `epsilon`. It says nothing about configurations
    outside the shortlist. The intervals rest on the evaluations of the shortlist alone, never on
    values that the search has selected. With `replicate` it is about the mean over replicates.

    Each trial is one evaluation of one configuration at one level of the fidelity. Schedulers that
    stop trials early, such as ASHA, falsify the values.

    Parameters
    ----------
    fidelity
        The key of the configuration that sets how dear an evaluation is, such as the number of
        epochs; see `IISESearch`. It is a name, or a `mfhpo.Fidelity` whose bias is not used. None:
        there is no such key, and each trial is a full evaluation.
    metric, mode, prices, seed
        See `mfhpo_ray.searchers.options.FidelitySearchOptions`.
    space
        The space to search, in Tune's terms. None: the ``param_space`` of the Tuner. Choices may
        hold dictionaries, lists and domains, as in ``tune.choice([{"kind": "svm", "C":
        tune.loguniform(0.1, 10)}, {"kind": "tree"}])``: the model knows what applies to which. What
        the model cannot place, as what ``tune.sample_from`` gives, is drawn at random.
    seed_key
        As in `SearchOptions`, but trials of one training share a seed, so that a split that is
        drawn from it stays the same.
    **options
        See `mfhpo.search.SearchOptions`. Trials under way are counted at what they are expected to
        cost.

    Notes
    -----
    A trial that fails (raises, reports NaN, infinity or no metric) is paid for like any other.
    After three in a row its configuration is given up, but not if they failed below the target
    before it had any value: then it may go on at the next level. Where most configurations fail at
    the lowest level, new ones begin above it. A trial whose process or node dies is not paid for,
    and the configuration is evaluated again.

    Where seconds are measured, each trial has a limit, beyond which something else is worth more.
    The search's scheduler keeps it. A configuration that was stopped is evaluated again, with a
    larger limit, once that is worth it.

    With `checkpoints`, ``config["training"]`` is the name of the training that a trial goes on
    with. Trials of one configuration at rising levels share it; each evaluation for the certificate
    has its own. Keep checkpoints under that name, in a folder of the experiment that all nodes
    reach, and go on from whatever there is::

        def train(config):
            path = Path("/shared/my_experiment", config["training"])
            model, done = load(path) if path.exists() else (Model(config), 0)
            for epoch in range(done, config["epochs"]):
                model.train_one_epoch()
            save(path, model, config["epochs"])
            tune.report({"accuracy": model.accuracy()})

    On errors, saving, restoring and the order in which trials count, see `IISESearch`.
    """

    _policy_class: Callable[..., BudgetedSearch]
    _options_type: type
    _defaults: dict[str, Any]
    _candidates: Candidates

    def __init__(
        self,
        fidelity: str | Fidelity | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        space: Mapping[str, Any] | None = None,
        prices: Mapping[str, float] | None = None,
        seed_key: str | None = "seed",
        seed: int | None = None,
        **options: Unpack[SearchOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        if own["seconds"] is not None and prices is not None:
            raise ValueError(
                f"seconds={shown(own['seconds'])} counts seconds alone, "
                f"prices={shown(prices)} what they cost; leave prices out, or give budget=... for "
                f"a fidelity with costs='measured'."
            )
        if prices is not None and fidelity is None:
            raise ValueError(
                f"prices={shown(prices)} are for measured seconds, but without a fidelity a budget "
                f"counts trials; leave prices out."
            )
        self._declared = DeclaredSearch.of(fidelity, **own)
        super().__init__(
            fidelity=self._declared.fidelity,
            arms=1,
            metric=metric,
            mode=mode,
            space=space,
            sigma=own["sigma"],
            bias=None,
            prices=prices,
            seed_key=seed_key,
            replicate=self._declared.replicate,
            seed=seed,
            options=self._declared.options,
        )
        if self._declared.checkpoints:
            if _TRAINING in self._keys:
                raise ValueError(
                    f"{_TRAINING!r} is what checkpoints are kept under; rename that key."
                )
            self._keys = (*self._keys, _TRAINING)
        given = self._declared.candidates
        if isinstance(given, list):
            self._candidates = Candidates(given, space, self._keys)
        else:
            self._candidates = OpenCandidates(space, self._keys)

    def recommendation(self) -> TuneSearchRecommendation:
        """Return the best answer so far, with its certificate if there is one."""
        answer = super().recommendation()
        assert isinstance(answer, TuneSearchRecommendation)
        return answer

    def limit_of(self, trial_id: str) -> float | None:
        """Return the seconds after which another trial is worth more, if they are measured."""
        begun = self._open.get(trial_id)
        if begun is None or begun.pull.limit is None:
            return None
        price = self._prices.of(begun.resources or {})
        return begun.pull.limit / price if price > 0.0 else None

    # What the base asks.

    def _stopped_at(self, result: Mapping[str, Any]) -> Any:
        # A larger limit of time may be worth it; one of memory there will not be.
        return math.inf if MEMORY_KEY in result else super()._stopped_at(result)

    def _make_policy(self, n_arms: int, sign: float) -> BudgetedSearch:
        race = self._declared.race(self._levels, seed=self._seed, sign=sign, params=self._params)
        candidates = self._candidates
        if isinstance(candidates, OpenCandidates):
            race.search.space = SearchSpace(candidates.parameters.kinds)
            drawn = Arms()  # each is drawn again when it is begun
            known: set[str] = set()
            for arm in range(race.search.n_given):
                drawn.adopt(arm, candidates.draw(arm, None, self._seed, drawn))
                race.search.describe(arm, candidates.parameters.point_of(drawn.config(arm)))
                if fingerprint(drawn.config(arm)) in known:
                    race.search.merge(arm)
                known.add(fingerprint(drawn.config(arm)))
        race.most_blocks = self._most_blocks
        return race

    def _make(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> BudgetedSearch:
        seed = options["seed"]
        return self._declared.race(self._levels, seed=seed, sign=sign, params=self._params)

    def _answer(self, policy: Policy) -> TuneRecommendation:
        answer = super()._answer(policy)
        return answer if has_levels(self._fidelity) else replace(answer, level=None)

    def _look_up_levels(self, space: Mapping[str, Any]) -> None:
        if has_levels(self._fidelity):
            super()._look_up_levels(space)
        else:
            self._look_up_replicates(space)

    def _check_budget(self) -> None:
        if self._declared.options.get("unit") != "evaluations":
            super()._check_budget()

    def _wanted_pull(self, policy: Policy, pending: Sequence[Pull]) -> Pull | None:
        pull, arms = super()._wanted_pull(policy, pending), self._arms
        if pull is not None and not arms.is_known(pull.arm):
            point = as_search(policy).point_of(pull.arm)
            config = self._open_candidates.draw(pull.arm, point, self._seed, arms)
            arms.adopt(pull.arm, config)
            self._describe(policy, pull.arm, config)
        return pull

    def _describe(self, policy: Policy, arm: int, config: Config) -> None:
        point = self._open_candidates.parameters.point_of(config)
        self._replay.describe(policy, arm, point)

    @property
    def _open_candidates(self) -> OpenCandidates:
        assert isinstance(self._candidates, OpenCandidates)  # no others are begun of a list
        return self._candidates

    def _config(self, pull: Pull, replicate: int) -> Config:
        config = self._arms.config(pull.arm)
        if has_levels(self._fidelity):
            assign(config, self._owned, self._settings(pull))
        if self._declared.checkpoints:
            assign(config, _TRAINING, self._training_of(pull, replicate))
        if self._seed_key is not None:
            assign(config, self._seed_key, self._seed_of(pull, replicate))
        self._assign_replicate(config, pull)
        return config

    def _training_of(self, pull: Pull, replicate: int) -> str:
        digest = zlib.crc32(fingerprint(self._arms.config(pull.arm)).encode())
        name = f"configuration-{pull.arm}-{digest:08x}"
        return f"{name}-replicate-{replicate}" if isinstance(pull, Replicate) else name

    def _seed_of(self, pull: Pull, replicate: int) -> int:
        if self._declared.checkpoints and not isinstance(pull, Replicate):
            return super()._seed_of(replace(pull, fidelity=0), 0)
        return super()._seed_of(pull, replicate)

    def _recover_arm(self, ended: Ended) -> None:
        arms, arm = self._arms, ended.pull.arm
        if arms.is_known(arm):
            super()._recover_arm(ended)
            return
        arms.adopt(arm, decode(ended.config))
        self._describe(self._made_policy(), arm, arms.config(arm))

    def _tell(self, policy: Policy, ended: Ended) -> None:
        pull, search = ended.pull, as_search(policy).search
        if pull.fidelity == search.target and ended.observation.has_value:
            owner = self._owner_of(pull.arm, search)
            if owner != pull.arm:
                # One more value of a configuration that was begun twice.
                self._replay.withdraw(policy, pull.arm, duplicate_of=owner)
                cost = ended.observation.cost
                if cost is None:
                    cost = search.cost_from(search.level_of(pull.arm), pull.fidelity)
                observation = Observation(ended.observation.value, cost)
                ended = replace(ended, pull=replace(pull, arm=owner), observation=observation)
        super()._tell(policy, ended)

    def _owner_of(self, arm: int, search: SearchPolicy) -> int:
        """Return the first arm with this configuration at the target; else this arm."""
        arms = self._arms
        this = fingerprint(arms.config(arm))
        known = search.finished_arms()
        return next((k for k in known if fingerprint(arms.config(k)) == this), arm)

    def _check_companion(self) -> None:
        super()._check_companion()
        if self._fidelity.costs == "measured":
            self._warn_without_companion("a trial that hangs is waited for")

    def _details(self) -> dict[str, Any]:
        found = super()._details()
        if isinstance(self._candidates, OpenCandidates):
            found["space"] = self._candidates.state_dict()
        return found

    def _load_details(self, state: Mapping[str, Any]) -> None:
        super()._load_details(state)
        if isinstance(self._candidates, OpenCandidates):
            self._candidates.load_state_dict(state["space"])
