"""Which trials there are: each is one replicate of an arm, and how far it has come."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ray.tune.experiment import Trial

from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended, Event, Joined, Lost
from mfhpo.problem import Observation
from mfhpo_ray.experiment.encoding import described, encode
from mfhpo_ray.experiment.event_log import EVENTS, SHARED, events_in
from mfhpo_ray.experiment.journal import of_this_version
from mfhpo_ray.experiment.space import without

ADDED = "_again"
"""The end of a trial's name that a scheduler has added, to evaluate its configuration again."""

AGAIN = "its trial is run again"


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
            self.has_failed = not Observation(event.value).has_value
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
        given = (run.arm for run in self if not run.trial.trial_id.endswith(ADDED))
        return list(Counter(given).values())

    def of(self, arm: int) -> list[Run]:
        """Return the runs of an arm that are not over."""
        return [run for run in self._by_arm[arm] if not run.is_over]

    def find(self, trial_id: str) -> Run | None:
        """Return the run of a trial, or None."""
        return self._by_trial.get(trial_id)

    def add(self, trial: Trial) -> Run:
        """Register a trial."""
        run = Run(trial, self.arm(trial.config))
        self._by_trial[trial.trial_id] = run
        self._by_arm[run.arm].append(run)
        return run

    def sort(self) -> None:
        """Order arms and runs as their trials were made, also in a restored experiment."""
        self._by_trial = {run.trial.trial_id: run for run in sorted(self, key=_number)}
        self._by_arm.clear()
        self.configurations = Configurations(describe=described)
        for run in self:
            run.arm = self.arm(run.trial.config)
            self._by_arm[run.arm].append(run)

    def arm(self, config: Mapping[str, Any]) -> int:
        """Return the arm of a configuration; a new one if it was not seen before."""
        return self.configurations.add(without(config, self._replicate_keys))


def _number(run: Run) -> float:
    """Return the number that Tune gives a trial, in its tag."""
    number = (run.trial.experiment_tag or "").partition("_")[0]
    return float(number) if number.isdigit() else math.inf


# What the journal tells after a restart.


def told_in(record: Mapping[str, Any] | None) -> list[Event]:
    """Return the events in a record of the journal; none without a record."""
    with of_this_version("the journal in the experiment's storage"):
        return [] if record is None else events_in(record)


def n_arms_in(records: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return the number of arms that a race was begun with; None if it was not begun."""
    joined = [event for event in told_in(records.get(SHARED)) if isinstance(event, Joined)]
    return int(json.loads(joined[0].digest)["n_arms"]) if joined else None


def is_over(events: Sequence[Event], target: int) -> bool:
    """Return whether a trial has nothing more to say, if it is run: it was seen to its end."""
    last = events[-1] if events else None
    if not (isinstance(last, Ended) and last.last):
        return False
    if last.value is None:
        return last.stopped_at is not None
    return last.level == target or not Observation(last.value).has_value


def adapt(records: Mapping[str, dict[str, Any]], runs: Runs) -> int:
    """Let trials, and what was told, be of the same arms; return how many have no trial any more.

    Arms are in the order in which Ray has made their trials. It restores tuples as lists. The
    failure, or the loss, of a trial that Ray runs again is none.
    """
    runs.sort()
    n_known = runs.n_arms
    for name, record in records.items():
        run, events = runs.find(name), told_in(record)
        if run is not None and events:
            events = _as_restored(events, run, runs.configurations[run.arm])
            record[EVENTS] = [encode(event.to_dict()) for event in events]
        for event in events:
            if isinstance(event, Begun):
                runs.arm(event.configuration)
    return runs.n_arms - n_known


def _as_restored(events: list[Event], run: Run, configuration: Mapping[str, Any]) -> list[Event]:
    renewed = [
        replace(event, configuration=configuration) if isinstance(event, Begun) else event
        for event in events
    ]
    last = events[-1]
    has_failed = isinstance(last, Ended) and last.value is None and last.stopped_at is None
    is_lost = isinstance(last, Lost) and not last.is_withdrawn
    if (has_failed or is_lost) and not run.trial.is_finished():
        cost = getattr(last, "cost", None)
        renewed[-1] = Lost(id=last.id, order=last.order, why=AGAIN, cost=cost, will_retry=True)
    return renewed
