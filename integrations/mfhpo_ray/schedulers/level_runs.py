"""Trials that pause at levels: what a scheduler learns from their results, and what it decides."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ray.tune.schedulers import TrialScheduler

from mfhpo.experiment.settings import SearchSettings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import LARGEST
from mfhpo_ray.experiment.checkpoints import loses_nothing_by_a_pause
from mfhpo_ray.experiment.recommendation import TuneRecommendation, in_terms_of_tune
from mfhpo_ray.schedulers.level_race import LevelRace
from mfhpo_ray.schedulers.levels import Meter
from mfhpo_ray.schedulers.promotion import repeated, replicate_key, search_settings
from mfhpo_ray.schedulers.runs import Run

if TYPE_CHECKING:
    from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler


class LevelRuns:
    """Runs of a scheduler that pause at levels, and go on as an experiment says.

    Parameters
    ----------
    host
        The scheduler.
    fidelity
        The levels, and what they cost.
    prices
        See `mfhpo_ray.searchers.options.FidelitySearchOptions`.

    Attributes
    ----------
    race
        Which run goes where; there is none before `begin`.
    replicate_key
        Where each arm has one trial: what tells trials of one configuration apart, if there is
        such a key.
    """

    race: LevelRace

    def __init__(
        self, host: ArmScheduler, fidelity: Fidelity, prices: Mapping[str, float] | None = None
    ) -> None:
        self.levels: tuple[Any, ...] = tuple(fidelity.levels or ())
        self.replicate_key: str | None = None
        self._host = host
        self._fidelity = fidelity
        self._meter = Meter(fidelity, prices)
        self._resumes: bool | None = None  # not known before the first result

    def search_settings(
        self, candidates: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> SearchSettings:
        """Return the settings of a search among configurations of one trial each."""
        host = self._host
        self.replicate_key = replicate_key(host._runs, host._replicate_keys)
        return search_settings(
            candidates,
            self._fidelity,
            options,
            repeats=self.replicate_key is not None,
            sign=host._sign,
        )

    def recommendation(self) -> TuneRecommendation:
        """Return the best answer so far."""
        answer = self._host._experiment.answer()
        if self.searches and self.replicate_key is None:
            why = (
                f"no trial has a seed under {self._host._replicate_keys[0]!r}, so that finalists "
                f"cannot be evaluated again: nothing is certified"
            )
            answer = replace(answer, reason=why)
        found = in_terms_of_tune(answer, dict)
        assert isinstance(found, TuneRecommendation)
        return found

    @property
    def searches(self) -> bool:
        """True if trials are promoted, instead of repeated."""
        return isinstance(self._host._experiment.settings, SearchSettings)

    def begin(self) -> None:
        """Begin, now that the experiment has its settings."""
        host = self._host
        add = self._add if self.searches and self.replicate_key is not None else None
        self.race = LevelRace(host._claims, host._runs, host._n_raced, len(self.levels), add)
        self.sweep()

    def _add(self, arm: int) -> Run:
        """Have a new trial evaluate an arm again, with another seed."""
        host = self._host
        assert self.replicate_key is not None
        trial = repeated(host._runs, arm, self.replicate_key)
        host._controller.add_trial(trial)
        return host._runs[trial]

    def is_out(self, arm: int) -> bool:
        """Return whether an arm is not in the race, or not any more."""
        return not self._host._is_open or arm not in self.race.active

    def on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        """Learn from a result, and decide what becomes of its trial."""
        host = self._host
        if run.begun is None:
            return str(TrialScheduler.CONTINUE)
        self._meter.note(run, result)
        if run.shown < self.levels[run.level] or host._metric not in result:
            return str(TrialScheduler.CONTINUE)
        value = host._value(result)
        self.race.tell(run, value, bisect_right(self.levels, run.shown) - 1)
        self._note_resumption(run, result)
        self.sweep()
        if not abs(value) <= LARGEST or run.reached == len(self.levels) - 1 or host._over:
            return str(TrialScheduler.STOP)
        # An arm that is out may come back, if bounds that were declared are contradicted.
        if not self.is_out(run.arm) and self.race.goes_on(run):
            return str(TrialScheduler.CONTINUE)
        return str(TrialScheduler.PAUSE)

    def _note_resumption(self, run: Run, result: Mapping[str, Any]) -> None:
        """Plan a search by whether its trials go on from where they pause."""
        if self._resumes is None and run.reached < len(self.levels) - 1:
            self._resumes = loses_nothing_by_a_pause(run.trial, result)
            self._host._claims.find(resumes=self._resumes)

    def on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        """Learn from the last result of a trial that ended by itself."""
        host = self._host
        if host._metric not in result:
            host._fail(run, again=False, is_lost=False)
            return
        self._meter.note(run, result)
        level = self.levels[run.level]
        if run.shown < level:
            host._warn_once(
                "length",
                f"trial {run.trial.trial_id} ended at {self._fidelity.name}={run.shown:g}, before "
                f"the level {level!r}: its last value counts as the one there, and so will others. "
                f"Give max_t={run.shown:g}, or levels that trials reach.",
            )
        # There will be no other value of it, at any level.
        self.race.tell(run, host._value(result), len(self.levels) - 1)
        self.sweep()

    def cost_of(self, run: Run) -> float:
        """Return what a run has cost since it was last paid for."""
        return self._meter.pay(run)

    def sweep(self) -> None:
        """Stop the running trials of arms that have left the race."""
        host = self._host
        host._may_find_one = True
        for run in self.race.sweep():
            host._doom(run)
        if host._over:
            host._note_answer()
