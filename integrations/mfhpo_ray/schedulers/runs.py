"""Which trials there are: each is one replicate of an arm, and how far it has come."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended, Event, Lost
from mfhpo.problem import LARGEST
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.space import without

ADDED = "_again"
"""The end of a trial's name that a scheduler has added, to evaluate its configuration again."""


@dataclass(eq=False)
class Run:
    """A trial: one replicate of an arm, and how far it has come by what was told about it."""

    trial: Trial
    arm: int
    # Index of the highest level that it was observed at, -1 before the first; the counter of the
    # event that told so.
    reached: int = -1
    reached_at: int = 0
    # The id of its last claim; that claim, while it is open; whether it is on its way there.
    claim: str = ""
    begun: Begun | None = None
    is_sent: bool = False
    # Whether it has come to nothing: its last claim has no value, or its trial has failed.
    has_failed: bool = False
    # Whether it is to be stopped, and whether its trial can go on no more.
    doomed: bool = False
    is_over: bool = False
    # The iteration of the last result that the scheduler was shown.
    iteration: Any = None
    # What the time attribute, and the sum of its seconds, showed last.
    shown: float = 0.0
    seconds: float = 0.0
    # The same when it was last paid for, started or resumed; None until its first result.
    began_at: float | None = None
    began_with: float = 0.0

    @property
    def waits(self) -> bool:
        """True if it could be started or resumed now."""
        return not (self.is_sent or self.doomed) and self.trial.status == Trial.PAUSED

    @property
    def level(self) -> int:
        """Index of the level that it was sent to."""
        assert self.begun is not None
        assert self.begun.levels is not None
        return self.begun.levels[0]

    def note(self, event: Event) -> None:
        """Take note of an event about the run."""
        if isinstance(event, Begun):
            self.claim, self.begun, self.is_sent = event.id, event, True
        elif isinstance(event, Ended):
            self.has_failed = event.value is None or not abs(event.value) <= LARGEST
            if event.level is not None and not self.has_failed:
                self.reached, self.reached_at = event.level, event.order
            if event.last:
                self.begun, self.is_sent = None, False
        elif isinstance(event, Lost):
            self.is_sent = False
            if not event.will_retry:
                self.begun = None


class Runs:
    """The runs of an experiment; those of one arm differ in `replicate_keys` only."""

    def __init__(self, replicate_keys: Collection[str]) -> None:
        self._replicate_keys = tuple(replicate_keys)
        self._by_trial: dict[str, Run] = {}
        self._by_arm: defaultdict[int, list[Run]] = defaultdict(list)
        self.configurations = Configurations(describe=described)

    def __contains__(self, trial: Trial) -> bool:
        return trial.trial_id in self._by_trial

    def __getitem__(self, trial: Trial) -> Run:
        return self._by_trial[trial.trial_id]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._by_trial.values())

    @property
    def n_arms(self) -> int:
        """Number of different arms seen so far."""
        return len(self.configurations)

    @property
    def n_replicates(self) -> list[int]:
        """The number of trials of each arm, over or not, without those that were added."""
        numbers = Counter(run.arm for run in self if not run.trial.trial_id.endswith(ADDED))
        return [numbers[arm] for arm in range(self.n_arms)]

    @property
    def all_over(self) -> bool:
        """True if no trial seen so far can go on."""
        return all(run.is_over for run in self)

    @property
    def names(self) -> list[str]:
        """The keys of all arms' configurations, nested ones joined by ``"/"``."""
        configs = (flatten_dict(self.configurations[arm]) for arm in range(self.n_arms))
        return list(dict.fromkeys(name for config in configs for name in config))

    def of(self, arm: int) -> list[Run]:
        """Return the runs of an arm that are not over."""
        return [run for run in self._by_arm[arm] if not run.is_over]

    def find(self, trial_id: str) -> Run | None:
        """Return the run of a trial, or None."""
        return self._by_trial.get(trial_id)

    def add(self, trial: Trial) -> Run:
        """Register a trial."""
        return self._put(Run(trial, self.arm(trial.config)))

    def sort(self) -> None:
        """Order arms and runs as their trials were made, also in a restored experiment."""
        made = sorted(self, key=_number)
        self._by_trial.clear()
        self._by_arm.clear()
        self.configurations = Configurations(describe=described)
        for run in made:
            run.arm = self.arm(run.trial.config)
            self._put(run)

    def arm(self, config: Mapping[str, Any]) -> int:
        """Return the arm of a configuration; a new one if it was not seen before."""
        return self.configurations.add(without(config, self._replicate_keys))

    def _put(self, run: Run) -> Run:
        self._by_trial[run.trial.trial_id] = run
        self._by_arm[run.arm].append(run)
        return run


def _number(run: Run) -> float:
    """Return the number that Tune gives a trial, in its tag."""
    number = (run.trial.experiment_tag or "").partition("_")[0]
    return float(number) if number.isdigit() else math.inf
