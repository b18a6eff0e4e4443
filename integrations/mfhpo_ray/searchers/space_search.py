"""The searcher that searches a space, then certifies the best that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mfhpo.experiment import SearchSettings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import Declaration
from mfhpo.racing.options import own_and_host, runs
from mfhpo.search import BudgetedSearch, DeclaredSearch, SearchOptions
from mfhpo_ray.experiment.metric import as_results
from mfhpo_ray.experiment.options import SearcherOptions
from mfhpo_ray.experiment.space import copied, without
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TRAINING = "training"  # the key of the configuration that names a training with checkpoints


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
    has its own. The page on Ray has a trainable that does so.

    On stops by others, restoring and the order in which trials count, see `IISESearch`.
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
