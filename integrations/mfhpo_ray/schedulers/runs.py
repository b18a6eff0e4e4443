"""Which trials there are: each is one replicate of an arm, and how far it has come."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from mfhpo.knowledge.fidelity import native


@dataclass(eq=False)
class Run:
    """A trial: one replicate of an arm, and how far it has come."""

    trial: Trial
    arm: int
    # Index of the highest level it was observed at, -1 before the first; of the one it is sent to.
    reached: int = -1
    granted: int | None = None
    # Whether it is to be stopped.
    doomed: bool = False
    # How many of its values wait for those of runs that were sent to the same level before it.
    held: int = 0
    # What the time attribute, and the sum of its seconds, showed last.
    shown: float = 0.0
    seconds: float = 0.0
    # The same when it was last paid for, started or resumed; None until its first result.
    began_at: float | None = None
    began_with: float = 0.0
    # What was observed of it, as it is written in the journal, and the places of that.
    observed: list[list[Any]] = field(default_factory=list)
    places: list[Any] = field(default_factory=list)
    # What was paid for an attempt that failed, and is not told yet.
    owed: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether it could be started or resumed now."""
        at_rest = self.granted is None and not self.held and self.trial.status == Trial.PAUSED
        return at_rest and not self.doomed


class Runs:
    """The runs of an experiment; those of one arm differ in `replicate_keys` only."""

    def __init__(self, replicate_keys: Collection[str]) -> None:
        self._replicate_keys = frozenset(replicate_keys)
        self._by_trial: dict[str, Run] = {}
        self._arms: dict[str, int] = {}
        self._by_arm: list[list[Run]] = []
        self.configs: list[dict[str, Any]] = []

    def __contains__(self, trial: Trial) -> bool:
        return trial.trial_id in self._by_trial

    def __getitem__(self, trial: Trial) -> Run:
        return self._by_trial[trial.trial_id]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._by_trial.values())

    @property
    def n_arms(self) -> int:
        """Number of different arms seen so far."""
        return len(self._by_arm)

    @property
    def n_replicates(self) -> list[int]:
        """The number of trials of each arm, over or not."""
        numbers = Counter(run.arm for run in self)
        return [numbers[arm] for arm in range(self.n_arms)]

    @property
    def all_over(self) -> bool:
        """Whether no trial seen so far can go on."""
        return not any(self._by_arm)

    @property
    def names(self) -> list[str]:
        """The keys of all arms' configurations, nested ones joined by ``"/"``."""
        return list(dict.fromkeys(name for arm in self.configs for name in flatten_dict(arm)))

    def config(self, arm: int | None) -> dict[str, Any]:
        """Return the configuration of an arm; empty for one that is not there yet."""
        return {} if arm is None or arm >= self.n_arms else self.configs[arm]

    def label(self, arm: int) -> str:
        """Return the name of an arm in messages."""
        return f"arm {arm} {self.config(arm)}"

    def of(self, arm: int) -> list[Run]:
        """Return the runs of an arm that are not over."""
        return self._by_arm[arm] if arm < self.n_arms else []

    def add(self, trial: Trial) -> Run:
        """Register a trial."""
        run = Run(trial, self.arm(trial.config))
        self._by_trial[trial.trial_id] = run
        self._by_arm[run.arm].append(run)
        return run

    def sort(self) -> None:
        """Order arms and runs as their trials were made, also in a restored experiment."""
        made = sorted(self._by_trial.values(), key=_number)
        order = list(dict.fromkeys(run.arm for run in made))
        order += [arm for arm in range(self.n_arms) if arm not in order]
        place = {arm: index for index, arm in enumerate(order)}
        for run in made:
            run.arm = place[run.arm]
        self._by_trial = {run.trial.trial_id: run for run in made}
        self._arms = {key: place[arm] for key, arm in self._arms.items()}
        self._by_arm = [sorted(self._by_arm[arm], key=_number) for arm in order]
        self.configs = [self.configs[arm] for arm in order]

    def retire(self, run: Run) -> None:
        """Forget that a run could go on; its trial is over."""
        if run in self._by_arm[run.arm]:
            self._by_arm[run.arm].remove(run)

    def arm(self, config: Mapping[str, Any]) -> int:
        """Return the arm of a configuration; a new one if it was not seen before."""
        flat = flatten_dict(dict(config))
        kept = sorted(flat.keys() - self._replicate_keys)
        key = repr({name: native(flat[name]) for name in kept})
        if key not in self._arms:
            self._arms[key] = self.n_arms
            self._by_arm.append([])
            self.configs.append(_without(config, self._replicate_keys))
        return self._arms[key]


def _number(run: Run) -> float:
    """Return the number that Tune gives a trial, in its tag."""
    number = (run.trial.experiment_tag or "").split("_")[0]
    return float(number) if number.isdigit() else math.inf


def _without(config: Mapping[str, Any], keys: Collection[str], prefix: str = "") -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in config.items():
        path = f"{prefix}{key}"
        if path not in keys:
            nested = isinstance(value, Mapping)
            kept[key] = _without(value, keys, f"{path}/") if nested else value
    return kept
