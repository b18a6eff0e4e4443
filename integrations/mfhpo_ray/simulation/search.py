"""Search algorithms that make simulated trials, where Tune's own need a trainable and a storage."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter, Searcher
from ray.tune.search.search_generator import SearchGenerator
from ray.tune.utils import merge_dicts

__all__ = ["ListedConfigurations", "MakeTrial", "SuggestedConfigurations", "search_algorithm"]

MakeTrial = Callable[[str, dict[str, Any], int], Trial]
"""Makes a trial of its name, its configuration and its number."""

# Tune's own: how many trials of a fixed list may wait.
_MAX_PENDING = 200


class ListedConfigurations(BasicVariantGenerator):
    """Makes a trial of each configuration of a list, in their order."""

    def __init__(
        self,
        configurations: Iterable[Mapping[str, Any]],
        make_trial: MakeTrial,
        max_concurrent: int,
    ) -> None:
        super().__init__(max_concurrent=max_concurrent)
        left = [dict(configuration) for configuration in configurations]
        self._total_samples = len(left)
        self._left = iter(left)
        self._made = 0
        self._make_trial = make_trial

    @property
    def max_pending(self) -> int:
        """How many trials may wait for a slot."""
        return _MAX_PENDING

    def next_trial(self) -> Trial | None:
        """The next trial, None if there is none now."""
        if self.is_finished():
            return None
        if self.max_concurrent > 0 and len(self._live_trials) >= self.max_concurrent:
            return None
        configuration = next(self._left, None)
        if configuration is None:
            self._finished = True
            return None
        self._made += 1
        trial_id = f"simulated_{self._made:05d}"
        self._live_trials.add(trial_id)
        return self._make_trial(trial_id, configuration, self._made)


class SuggestedConfigurations(SearchGenerator):
    """Makes a trial of what a searcher suggests, with the constants of a search space."""

    def __init__(
        self,
        searcher: Searcher,
        make_trial: MakeTrial,
        num_samples: int,
        param_space: Mapping[str, Any],
    ) -> None:
        super().__init__(searcher)
        self._total_samples = sys.maxsize if num_samples == -1 else num_samples
        self._make_trial = make_trial
        self._param_space = dict(param_space)
        self._asked = 0

    @property
    def max_pending(self) -> int:
        """How many trials may wait for a slot: so many are suggested ahead."""
        searcher: Any = self.searcher
        while searcher is not None:
            if isinstance(searcher, ConcurrencyLimiter):
                return int(searcher.max_concurrent)
            searcher = getattr(searcher, "searcher", None)
        return 1

    def next_trial(self) -> Trial | None:
        """The next trial, None if nothing is suggested now."""
        if self.is_finished():
            return None
        self._asked += 1
        trial_id = f"simulated_{self._asked:05d}"
        suggested: Any = self.searcher.suggest(trial_id)
        if suggested == Searcher.FINISHED:
            self._finished = True
            return None
        if suggested is None:
            return None
        self._counter += 1
        configuration = merge_dicts(self._param_space, copy.deepcopy(suggested))
        return self._make_trial(trial_id, configuration, self._counter)


def search_algorithm(
    trials: Iterable[Mapping[str, Any]] | Searcher,
    make_trial: MakeTrial,
    *,
    num_samples: int,
    param_space: Mapping[str, Any],
    max_concurrent: int,
) -> ListedConfigurations | SuggestedConfigurations:
    """Wrap configurations or a searcher, as ``tune.run`` does."""
    if not isinstance(trials, Searcher):
        return ListedConfigurations(trials, make_trial, max_concurrent)
    if max_concurrent and not isinstance(trials, ConcurrencyLimiter):
        trials = ConcurrencyLimiter(trials, max_concurrent)
    return SuggestedConfigurations(trials, make_trial, num_samples, param_space)
