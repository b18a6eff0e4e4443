"""The trials of a search: what each of them is given, and how the evaluation that it makes ends."""

from __future__ import annotations

import abc
import copy
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from ray.air.constants import TRAINING_ITERATION
from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_name
from mfhpo.experiment import Assignment, Begun, Configurations, Ended, Event, Lost
from mfhpo.experiment.kinds.runner import Settings
from mfhpo.knowledge.fidelity import MOST_SHUFFLED, Fidelity, replicate_of
from mfhpo.search.declared import has_levels
from mfhpo_ray.experiment.configurations import (
    Config,
    assign,
    fingerprint,
    levels_of,
    replicates_of,
)
from mfhpo_ray.experiment.journal import LEFT, EventLog
from mfhpo_ray.experiment.processes import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.experiment.results import as_number
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.candidates import Parameters

# Seeds differ between so many configurations of a search, whose number may grow.
_MOST_ARMS = 1 << 16
_MASK = (1 << 31) - 1  # seeds have 31 bits

Source: TypeAlias = list[Config] | Parameters
"""The configurations, or where a search draws its own from."""


class Trials(abc.ABC):
    """Each trial evaluates a configuration at a level, or fully where there is no fidelity.

    The `host` are the options of all searches; `training` names a training with checkpoints.
    """

    hangs = ""  # what happens without the search's scheduler, in words; empty: nothing
    stops_surplus = True  # trials that still run when the experiment is over

    def __init__(
        self,
        fidelity: Fidelity,
        host: Mapping[str, Any],
        replicate: str | None = None,
        training: str | None = None,
    ) -> None:
        self.host, seed_key = host, host["seed_key"]
        if seed_key is not None:
            check_name("seed_key", seed_key, "a key of the configuration or None")
        if seed_key == fidelity.name:
            raise ValueError(f"seed_key={seed_key!r} is what the search sets to something else.")
        own = (fidelity.name, seed_key, replicate, training)
        self.keys = tuple(key for key in own if key is not None)  # what is set, the level first
        self.levels, self.replicate = tuple(fidelity.levels or ()), replicate
        self.replicates: Sequence[Any] = ()
        self._seed_key, self._fidelity, self._training = seed_key, fidelity, training
        self.has_levels = has_levels(fidelity)

    # The experiment, as it is declared.

    @abc.abstractmethod
    def settings(self, source: Source, **common: Any) -> Settings:
        """Return the settings, which have those that are `common` to all kinds."""

    def objection(self) -> str | None:
        """Return what is wrong with the budget, if the levels tell."""
        return None

    def announcement(self, settings: Any, metric: str) -> list[str]:
        """Return what the log is to say about what nobody has declared."""
        return []

    def digest(self) -> dict[str, Any]:
        """Return what must be the same after a restart, as plain JSON values."""
        return {}

    def look_up(self, space: Mapping[str, Any]) -> None:
        """Find the levels and the replicates in the search space."""
        if self.has_levels:
            levels = levels_of(self._fidelity, space)
            self._fidelity.costs_of(levels)  # raises for levels that are no numbers, without costs
            self.levels = levels
        if self.replicate is not None and not self.replicates:
            self.replicates = replicates_of(self.replicate, space)

    def scheduler(self, limit: float | None, memory_limit: float | None) -> PullScheduler:
        """Return the companion of the search, with these limits."""
        return PullScheduler(limit=limit, memory_limit=memory_limit)

    def configured(self, wanted: Assignment, known: Configurations, seed: int) -> Config:
        """Return the configuration of a trial, with all keys that are set."""
        config: Config = copy.deepcopy(dict(wanted.configuration))
        arm = known.find(wanted.configuration)
        arm = len(known) if arm is None else arm
        self._set_level(config, wanted)
        if self._training is not None:
            digest = zlib.crc32(fingerprint(wanted.configuration).encode())
            name = f"configuration-{arm}-{digest:08x}"
            is_new = wanted.purpose != "search"
            assign(config, self._training, f"{name}-replicate-{wanted.repeat}" if is_new else name)
        if self._seed_key is not None:
            assign(config, self._seed_key, self._seed_of(wanted, arm, len(known), seed))
        if self.replicate is not None and wanted.block is not None:
            chosen = replicate_of(wanted.block, seed, len(self.replicates))
            assign(config, self.replicate, self.replicates[chosen])
        return config

    def _set_level(self, config: Config, wanted: Assignment) -> None:
        if self.has_levels:
            assign(config, self.keys[0], self.levels[wanted.level])

    def _seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        n, level, repeat = len(self.levels), wanted.level, wanted.repeat
        if wanted.block is not None and len(self.replicates) <= MOST_SHUFFLED:
            arm, level, repeat = 0, n - 1, wanted.block  # the same value on the same replicate
        if wanted.purpose == "given":
            return replicate_seed(seed, arm, level, repeat, n_arms=n_arms, n_fidelities=n)
        if wanted.purpose != "search":
            level = n
        elif self._training is not None:
            level = repeat = 0
        return replicate_seed(seed, arm, level, repeat, n_arms=_MOST_ARMS, n_fidelities=n + 1)

    def outcome(
        self, begun: Begun, value: float | None, cost: float | None, result: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what a trial gave, as arguments of `Ended`; one that was stopped has no value."""
        stopped_at = as_number(result.get(CENSORED_KEY))
        if MEMORY_KEY in result:  # to a search it would be stopped at any limit; else it has failed
            value, stopped_at = None, math.inf if begun.purpose == "search" else None
        value = value if stopped_at is None else None
        return {"value": value, "cost": cost, "stopped_at": stopped_at}

    def cost(self, seconds: float) -> float | None:
        """Return what so many seconds have cost; None where costs are declared."""
        return seconds if self._fidelity.costs == "measured" else None


def replicate_seed(
    seed: int, arm: int, fidelity: int, r: int, *, n_arms: int, n_fidelities: int
) -> int:
    """Return the seed of an arm's r-th pull at a fidelity; no two pulls of a race share one."""
    number = (r * n_arms + arm) * n_fidelities + fidelity
    # Each step maps the numbers of 31 bits onto themselves one to one, so that none occurs twice.
    for key in np.random.SeedSequence(seed).generate_state(3).tolist():
        number = ((number ^ (key & _MASK)) * ((key << 1 | 1) & _MASK)) & _MASK
        number ^= number >> 16
    return number


@dataclass
class _Running:
    """A trial that runs, as far as it is known."""

    since: float  # when it was suggested, or found again, by the search's clock
    seconds: float | None = None  # what its results so far said that it took
    iteration: Any = None  # of the last result that was shown

    def note(self, result: Mapping[str, Any]) -> None:
        """Note what a result says about how far it is."""
        self.seconds = as_number(result.get("time_total_s"))
        self.iteration = result.get(TRAINING_ITERATION)

    def took(self, result: Mapping[str, Any], now: float) -> float:
        """Return the seconds by the last result, by earlier ones, or by the clock."""
        seconds = as_number(result.get("time_total_s", self.seconds))
        stopped_at = as_number(result.get(CENSORED_KEY))
        if stopped_at is not None:
            return stopped_at if seconds is None else max(seconds, stopped_at)
        return max(0.0, now - self.since) if seconds is None else seconds


class Evaluations:
    """The evaluations of a search's experiment, told to its log; unknown trials are ignored."""

    def __init__(self, trials: Trials, clock: Callable[[], float]) -> None:
        self.log: EventLog | None = None  # until the experiment begins
        self.is_over = False  # nothing is left to evaluate
        self.is_watched = False  # the search's scheduler tells what its trials do
        self.stops_surplus = trials.stops_surplus
        self._trials = trials
        self._clock = clock
        self._running: dict[str, _Running] = {}
        self._again: dict[str, str] = {}  # by trial, the claim whose failure it replaces
        self._awaited: set[str] = set()  # claims of a restart whose trials have not shown yet

    def begin(self, trial_id: str, wanted: Assignment, config: Config) -> None:
        """Begin what is wanted, with a configuration that a trial is given."""
        self._running[trial_id] = _Running(self._clock())
        begun = wanted.begun(trial_id, self._log.experiment.order)
        self._log.tell(begun, suggested=fingerprint(flatten_dict(config)))

    def running(self, trial_id: str) -> _Running | None:
        """Return the running trial of an evaluation; None if it makes none, or has ended."""
        log = self.log
        if log is None or not (trial_id in self._again or trial_id in log.experiment.ledger.open):
            return None
        return self._running.setdefault(trial_id, _Running(self._clock()))

    @property
    def n_running(self) -> int:
        """Number of open evaluations whose trials this run has begun, or has shown again."""
        return len(self._log.experiment.ledger.open.keys() & self._running.keys())

    def begun(self, trial_id: str) -> Begun:
        """Return the claim of an evaluation that a trial makes."""
        return self._log.experiment.claim(self._again.get(trial_id, trial_id))

    def end(
        self,
        trial_id: str,
        value: float | None,
        result: Mapping[str, Any],
        notes: Mapping[str, Any],
    ) -> None:
        """End an evaluation with a value, or None for a failure."""
        running = self._running[trial_id]
        cost = self._trials.cost(running.took(result, self._clock()))
        outcome = self._trials.outcome(self.begun(trial_id), value, cost, result)
        self._close(Ended, trial_id, notes, **outcome)

    def cut(self, trial_id: str, who: str, result: Mapping[str, Any]) -> None:
        """End an evaluation that somebody has stopped: it is paid, and left out."""
        running = self._running[trial_id]
        cost: float | None = 0.0  # it never ran
        if result or running.seconds is not None:
            cost = self._trials.cost(running.took(result, self._clock()))
        self._close(Lost, trial_id, {}, why=f"{who} stopped trials", cost=cost, is_cut=True)

    def _close(
        self, kind: type[Event], trial_id: str, notes: Mapping[str, Any], **how: Any
    ) -> None:
        self._awaited.discard(trial_id)
        self._running.pop(trial_id, None)
        claim = self._again.pop(trial_id, trial_id)
        self._log.tell(kind(id=claim, order=self._log.experiment.order, **how), **notes)

    # What the search's scheduler calls: see `PullScheduler`.

    @property
    def finished(self) -> bool:
        """True if the experiment is over."""
        return self.is_over or (self.log is not None and self.log.experiment.finished)

    def watch(self, trial_id: str) -> None:
        """Note that a trial has shown, which the scheduler looks after."""
        self.is_watched = True
        self._awaited.discard(trial_id)
        self.running(trial_id)

    def note_seconds(self, trial_id: str, seconds: float) -> None:
        """Note how long a trial has run since it was started; it may never have reported."""
        if (running := self.running(trial_id)) is not None:
            running.seconds = seconds

    def limit_of(self, trial_id: str) -> float | None:
        """Return the seconds after which the search wants a trial stopped; None for no limit."""
        if self.running(trial_id) is None:
            return None
        begun = self.begun(trial_id)
        return None if begun.purpose == "given" else begun.limit  # that of a given one is in it

    def owe(self, trial_id: str, seconds: float) -> None:
        """Note what an attempt took that failed, and that Ray tries again."""
        if (running := self.running(trial_id)) is None:
            return
        owed = seconds + float(self._log.notes(trial_id).get("owed", 0.0))
        running.seconds = running.iteration = None
        cost, order = self._trials.cost(owed) or 0.0, self._log.experiment.order
        lost = Lost(id=trial_id, order=order, why="it failed", cost=cost, will_retry=True)
        self._log.tell(lost, owed=owed)

    def completed(self, trial_id: str) -> Mapping[str, Any] | None:
        """Return the last result of a trial that ended before a restart, or None."""
        return None if self.log is None else self.log.notes(trial_id).get("result")

    def repeats(self, trial: Trial) -> bool:
        """Tell whether a trial, maybe of another name, evaluates what failed before a restart."""
        log, name = self.log, trial.trial_id
        if log is None or name in log.experiment.ledger.open:
            return False
        is_known = bool(log.notes(name))
        if is_known and not trial.num_failures:
            return False
        suggested = fingerprint(trial.evaluated_params or {})
        for event in log.experiment.events:
            failed = isinstance(event, Ended) and not event.has_value and event.stopped_at is None
            if not failed or event.id in self._again.values():
                continue
            is_same = not is_known and log.notes(event.id).get("suggested") == suggested
            if event.id == name or is_same:
                self._again[name] = event.id
                return True
        return False

    def lose(self, trial_id: str) -> None:
        """Lose an evaluation whose process or node has died: it is no failure."""
        if (running := self.running(trial_id)) is not None:
            cost = self._trials.cost(running.seconds or 0.0)
            self._close(Lost, trial_id, {}, why="its process or its node died", cost=cost)

    def discard(self, trial_id: str) -> None:
        """Leave out an evaluation whose trial is stopped, or was before a restart."""
        if (running := self.running(trial_id)) is not None:
            cost = self._trials.cost(running.seconds or 0.0) or 0.0
            how = {"why": "its trial was stopped", "is_withdrawn": self.finished}
            self._close(Lost, trial_id, {}, cost=cost, **how)

    # After a restart.

    def leave_run(self) -> None:
        """Lose what is under way: another run begins, which makes none of its trials."""
        if not self.finished:
            self._log.journal = None  # that of the earlier run stays as it is
            self._log.lose(self._log.experiment.open, LEFT)
        for kept in (self._running, self._again, self._awaited):
            kept.clear()

    def await_open(self) -> None:
        """Note which evaluations are under way by the events alone: no trial has shown yet."""
        self._awaited = set(self._log.experiment.open) - self._running.keys()

    def lose_awaited(self) -> None:
        """Lose what Tune does not run again, if that is known."""
        awaited, self._awaited = self._awaited, set()
        if awaited and self._log.journal is not None:
            why = "Tune does not run its trial again"
            self._log.lose(awaited.intersection(self._log.experiment.open), why)

    @property
    def _log(self) -> EventLog:
        assert self.log is not None
        return self.log
