"""A search over fidelities and its certificate: a study's trials as observations of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from mfhpo import Policy, Pull
from mfhpo.fidelity import Fidelity
from mfhpo.search import Numeric, OneOf, Replicate, SearchRace, SearchSpace
from mfhpo_optuna._open_arms import OpenArms
from mfhpo_optuna._places import kind_of, point_of
from mfhpo_optuna._race import Race
from mfhpo_optuna._study_race import ARM_KEY

__all__ = ["ONE_LEVEL", "SearchStudy"]

ONE_LEVEL = Fidelity("no fidelity", levels=(1,), costs=(1.0,))
"""Stands for the fidelity of an objective that has none."""

_HOPELESS = 30


class SearchStudy(Race):
    """Translates between the trials of one study and a `SearchRace`.

    Parameters
    ----------
    study, arms, fidelity, lease
        See `Race`.
    make_race
        Makes the race, given the levels of the fidelity and the sign of the values.
    """

    arms: OpenArms

    def __init__(
        self,
        study: optuna.Study,
        arms: OpenArms,
        fidelity: Fidelity,
        make_race: Callable[[tuple[Any, ...], float], SearchRace],
        lease: float | None = None,
    ) -> None:
        self._owns_fidelity = fidelity is not ONE_LEVEL
        self._kinds: dict[str, Numeric | OneOf] = {}

        def make_policy(n_arms: int, levels: tuple[Any, ...], sign: float) -> Policy:
            return make_race(levels, sign)

        super().__init__(study, arms, fidelity, make_policy, lease)

    @property
    def race(self) -> SearchRace | None:
        """The race, or None while the levels of the fidelity are unknown."""
        return self.policy if isinstance(self.policy, SearchRace) else None

    def attributes(self, pull: Pull) -> dict[str, Any]:
        """The user attribute that tells other workers of a pull."""
        tag: dict[str, Any] = {"arm": pull.arm, "fidelity": pull.fidelity}
        if isinstance(pull, Replicate):
            tag["shortlist"] = list(pull.shortlist)
        return {ARM_KEY: tag}

    def begin(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull."""
        self.arms.make_room(pull.arm)
        if self.race is not None and not self.arms.params(pull.arm):
            point = self.race.point_of(pull.arm)
            if point is not None:
                self.arms.propose(pull.arm, point)
                self.race.search.describe(pull.arm, point)
        super().begin(trial, pull)

    def drawn(self) -> list[tuple[int, float]]:
        """Arms that were brought to the target, and their means in the study's sign."""
        if self.race is None:
            return []
        search = self.race.search
        return [
            (arm, self.sign * search.mean(arm, search.target)) for arm in search.finished_arms()
        ]

    @property
    def hopeless(self) -> bool:
        """Whether so many trials failed before they asked for the fidelity that none may ever."""
        return self.policy is None and len(self._early_failures) >= _HOPELESS

    def progress_text(self) -> str:
        """What was tried, what it cost, and the leader."""
        race = self.race
        if race is None:
            return "search | no trial has asked for the fidelity yet"
        arm, mean, (low, high), fidelity = race.leader()
        phase = f"certify, {len(race.shortlist)} left" if race.shortlist else "search"
        finished = len(race.search.finished_arms())
        text = f"{phase} | {race.begun} tried, {finished} at the target | cost {race.cost:.6g}"
        if arm is None:
            return text
        leader = f"{text} | leader: arm {arm}, {self.sign * mean:.4g}"
        if math.isfinite(high - low):
            return f"{leader} ± {(high - low) / 2.0:.2g}"
        at = f" at {self.fidelity.name}={self.levels[fidelity]!r}" if self._owns_fidelity else ""
        return f"{leader}{at}"

    # How it differs from a race among given arms.

    def _noted(self, trial: FrozenTrial) -> Pull:
        pull = super()._noted(trial)
        self.arms.make_room(pull.arm)
        shortlist = trial.user_attrs[ARM_KEY].get("shortlist")
        if shortlist is None:
            return pull
        return Replicate(pull.arm, pull.fidelity, None, tuple(shortlist))

    def _next(self, trial_number: int) -> tuple[int | None, int]:
        pull = self._next_pull(trial_number)
        return (None, 0) if pull is None else (pull.arm, pull.fidelity)

    def _next_pull(self, trial_number: int) -> Pull | None:
        if self.policy is None:
            return Pull(self._begun, 0)
        pulls = self.policy.ask(1, self._pending(trial_number))
        return pulls[0] if pulls else None

    def propose(self, trial: FrozenTrial) -> Pull | None:
        """The pull for a trial that begins; None if the race is over or it cannot be in it."""
        if "fixed_params" in trial.system_attrs:
            return super().propose(trial)
        return self._next_pull(trial.number)

    def _enqueued_arm(self, trial: FrozenTrial, fixed: Any) -> int | None:
        known = self.arms.matching(fixed)
        return self._begun_arms() if known is None else known

    def _begun_arms(self) -> int:
        """The number of the next new arm."""
        if self.race is None:
            return self._begun
        pending = [running.pull.arm + 1 for running in self._running.values()]
        return max([self.race.begun, *pending])

    def _owner_of(self, arm: int, trial: FrozenTrial) -> int:
        owner = self.arms.owner(arm, trial.params)
        if owner != arm and self.policy is not None:
            self.policy.withdraw(arm, duplicate_of=owner)
        return owner

    def _is_of_arm(self, trial: FrozenTrial, arm: int, whole: bool) -> bool:
        belongs = super()._is_of_arm(trial, arm, whole)
        if belongs and self.race is not None:
            self._describe(arm, trial.distributions)
        return belongs

    def _describe(self, arm: int, asked: dict[str, BaseDistribution]) -> None:
        """Tell the search what an arm is, and of parameters that it did not know."""
        assert self.race is not None
        params = self.arms.params(arm)
        distributions = {name: asked[name] for name in asked if name != self.fidelity.name}
        new = {
            name: kind
            for name, distribution in distributions.items()
            if (kind := kind_of(distribution)) is not None and self._kinds.get(name) != kind
        }
        if new:
            self._kinds.update(new)
            self.race.search.space = SearchSpace(self._kinds)
        self.race.search.describe(arm, point_of(params, distributions))
