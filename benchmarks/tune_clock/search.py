"""Search algorithms that make simulated trials, where Tune's own need a trainable and a storage."""

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter, Searcher
from ray.tune.search.search_generator import SearchGenerator

from mfhpo_ray.schedulers.runs import searchers_of

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
        self._left = enumerate(left, start=1)
        self._make_trial = make_trial
        self.max_pending = _MAX_PENDING

    def next_trial(self) -> Trial | None:
        """The next trial, None if there is none now."""
        if self.is_finished():
            return None
        if self.max_concurrent > 0 and len(self._live_trials) >= self.max_concurrent:
            return None
        number, configuration = next(self._left, (0, None))
        if configuration is None:
            self._finished = True
            return None
        self._live_trials.add(_name(number))
        return self._make_trial(_name(number), configuration, number)


class SuggestedConfigurations(SearchGenerator):
    """Makes a trial of what a searcher suggests."""

    def __init__(
        self,
        searcher: Searcher,
        make_trial: MakeTrial,
        num_samples: int,
    ) -> None:
        super().__init__(searcher)
        self._total_samples = sys.maxsize if num_samples == -1 else num_samples
        self._make_trial = make_trial
        self._asked = 0
        limits = (each for each in searchers_of(self) if isinstance(each, ConcurrencyLimiter))
        # So many are suggested ahead.
        self.max_pending = next((int(limit.max_concurrent) for limit in limits), 1)

    def next_trial(self) -> Trial | None:
        """The next trial, None if nothing is suggested now."""
        if self.is_finished():
            return None
        self._asked += 1
        suggested: Any = self.searcher.suggest(_name(self._asked))
        if suggested == Searcher.FINISHED:
            self._finished = True
            return None
        if suggested is None:
            return None
        self._counter += 1
        return self._make_trial(_name(self._asked), copy.deepcopy(suggested), self._counter)


def search_algorithm(
    trials: Iterable[Mapping[str, Any]] | Searcher,
    make_trial: MakeTrial,
    num_samples: int,
    max_concurrent: int,
) -> ListedConfigurations | SuggestedConfigurations:
    """Wrap configurations or a searcher, as ``tune.run`` does."""
    if not isinstance(trials, Searcher):
        return ListedConfigurations(trials, make_trial, max_concurrent)
    if max_concurrent and not isinstance(trials, ConcurrencyLimiter):
        trials = ConcurrencyLimiter(trials, max_concurrent)
    return SuggestedConfigurations(trials, make_trial, num_samples)


def _name(number: int) -> str:
    return f"simulated_{number:05d}"
