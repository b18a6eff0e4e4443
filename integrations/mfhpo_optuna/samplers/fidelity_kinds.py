"""Races and searches over a fidelity, as kinds of experiments on a study."""

import abc
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED, PolicyChoice, make_best_policy
from mfhpo.experiment import LateSettings, RaceSettings, SearchSettings
from mfhpo.experiment.events import Purpose
from mfhpo.experiment.kinds.race import DeclaredRace
from mfhpo.experiment.kinds.runner import Settings
from mfhpo.racing.evidence import cautious_value
from mfhpo.racing.race import Race
from mfhpo.racing.text import name_in_words
from mfhpo.regret import MFElimination
from mfhpo.search import BudgetedSearch, DeclaredSearch, HalvingSearch, ModelSearch
from mfhpo.search.declared import has_levels
from mfhpo_optuna.study.arms import ArmsLike, Params, fault_of_baseline, given_arms
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.loop.report import Progress
from mfhpo_optuna.study.study_experiment import StudyExperiment


class FidelityKind(Kind):
    """An experiment that chooses configurations and levels; cheap levels may choose finalists."""

    replaces_pruner = True
    purpose: Purpose = "given"  # of evaluations before the levels are known

    def settings(self, common: Mapping[str, Any]) -> Settings:
        """Return the settings of the experiment, whose levels an objective may tell later."""
        if self.fidelity is None:
            return self.of_levels((None,), common)
        if self.fidelity.levels:
            return self.of_levels(tuple(self.fidelity.levels), common)
        return LateSettings(
            fidelity=self.fidelity.name,
            make=partial(self.of_levels, common=common),
            candidates=self.given(common["seed"]) or None,
            in_blocks=self.replicate is not None,
            purpose=self.purpose,
            first_limit=self.first_limit(common["seed"], common["sign"]),
            **common,
        )

    @abc.abstractmethod
    def of_levels(self, levels: Sequence[Any], common: Mapping[str, Any]) -> Settings:
        """Return the settings for known levels, with those that all kinds have."""

    def first_limit(self, seed: int, sign: float) -> float | None:
        """Return the limit of evaluations before the levels are known, in seconds."""
        return None

    def check(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Raise ValueError for a wrong baseline, or if no trial has asked for the fidelity."""
        if (objection := fault_of_baseline(trial)) and state != TrialState.RUNNING:
            raise ValueError(
                f"baseline of trial {trial.number}: {objection}; give one that the objective can "
                "evaluate, in a new study."
            )
        trials = known.trials
        is_silent = trials.fidelity_distribution is None and trials.missing_fidelity
        if is_silent and trials.n_without_fidelity >= self.most_without(known):
            raise ValueError(trials.missing_fidelity)

    def most_without(self, known: StudyExperiment) -> int:
        """Return how many trials may give a value without asking for the fidelity."""
        return 1

    def sure_value(self, known: StudyExperiment, bound: float) -> float | None:
        """Return the leader's least worth; a value at the target is needed, or other evidence."""
        has_values = bool(known.n_told and known.at_target.counts[0, 0])
        if isinstance(known.policy, BudgetedSearch) and not has_values:
            return None
        if math.isinf(bound):
            return cautious_value(known.at_target) if has_values else None
        return bound

    def progress(self, known: StudyExperiment) -> Progress:
        """Return what is left or was tried, what it has cost, and the leader."""
        policy, unit = known.policy, "seconds" if self.in_seconds else "cost"
        if policy is None:
            return Progress("search", "no trial has asked for the fidelity yet", "", 0.0, None)
        if isinstance(policy, BudgetedSearch):
            budget, finished = policy.budget, len(policy.search.finished_arms())
            finalists = f"certify, {len(policy.shortlist)} finalists"
            return Progress(
                phase=finalists if policy.shortlist else "search",
                configurations=f"{len(budget.reached)} tried, {finished} at the target",
                leader=_leader_in_words(known, policy),
                spent=budget.spent,
                total=budget.amount if math.isfinite(budget.amount) else None,
                unit="trials" if budget.in_evaluations else unit,
                has_end=math.isfinite(budget.amount),
            )
        most = policy.budget if isinstance(policy, Race) else math.inf
        remaining = policy.recommend().remaining_cost
        is_guess = remaining is not None and policy.cost + remaining < most
        total = policy.cost + remaining if is_guess else most if math.isfinite(most) else None
        n_arms = len(known.experiment.runner.configurations)
        return Progress(
            phase="pilot" if policy.piloting else _level(known, policy.fidelity),
            configurations=(
                f"{len(policy.active)}/{n_arms} arms {'left' if policy.certifies else 'in play'}"
            ),
            leader=_leader_in_words(known, policy),
            spent=policy.cost,
            total=total,
            unit=unit,
            is_guess=is_guess,
            has_end=policy.certifies or total is not None,
        )


class RaceKind(FidelityKind):
    """Compares configurations; wrong options raise at once."""

    def __init__(self, declared: DeclaredRace, arms: ArmsLike) -> None:
        self.declared = declared
        self.fidelity = declared.fidelity
        self.replicate = declared.replicate
        self._arms = arms
        self._warned_of_losses = False
        self.in_seconds = declared.fidelity.costs == "measured"
        self._listed = given_arms(arms, self.owned, 0)  # raises for bad ones before any study
        objection = declared.rehearse(declared.fidelity.levels or ())
        if objection is not None:
            warnings.warn(objection, stacklevel=4)

    def given(self, seed: int) -> int | list[Params]:
        """Return the configurations, or how many are drawn."""
        is_drawn = isinstance(self._arms, Mapping)
        return given_arms(self._arms, self.owned, seed) if is_drawn else self._listed

    def of_levels(self, levels: Sequence[Any], common: Mapping[str, Any]) -> Settings:
        """Return the settings of the race, or of the search for its finalists."""
        candidates = self.given(common["seed"])
        settings = self.declared.settings(candidates, levels, **common)
        is_of_losses = isinstance(settings, RaceSettings) and settings.sign < 0.0
        may_warn = is_of_losses and not self._warned_of_losses
        if may_warn and isinstance(settings.runner().policy, MFElimination):
            self._warned_of_losses = True
            warnings.warn(LOSSES_ARE_MAXIMISED.format("the objective"), stacklevel=3)
        return settings

    def announcement(self, known: StudyExperiment) -> str:
        """Return what the log is to say once about how a study is run; empty for nothing."""
        n_arms = len(known.experiment.runner.configurations)
        words = self.declared.in_words(n_arms, known.trials.levels)
        if self.declared.make is not make_best_policy:
            return words
        choice = self.choice(known)
        chosen = f"{choice.policy.__name__} is chosen: {choice.reason.rstrip('.')}"
        return chosen if words in ("", choice.reason) else f"{chosen}; {words}"

    def choice(self, known: StudyExperiment) -> PolicyChoice:
        """Return which policy suits the race, and why."""
        n_arms, levels = len(known.experiment.runner.configurations), known.trials.levels
        return self.declared.choice(n_arms, levels, known.sign, searches=known.searches)

    def most_without(self, known: StudyExperiment) -> int:
        """Return how many trials may give a value without asking for the fidelity: one per arm."""
        return max(1, len(known.experiment.runner.configurations))


class SearchKind(FidelityKind):
    """Searches with cheap and dear evaluations, and compares the best on new ones.

    `is_proposed` says whether another sampler draws the configurations.
    """

    arms_option = "candidates"
    purpose = "search"

    def __init__(self, declared: DeclaredSearch, is_proposed: bool) -> None:
        self._kind = HalvingSearch if is_proposed else ModelSearch
        self.fidelity = declared.fidelity if has_levels(declared.fidelity) else None
        self.replicate = declared.replicate
        today = declared.baseline
        if isinstance(today, Mapping) and declared.candidates is None:  # a trial says it
            self.baseline = {name: today[name] for name in today.keys() - {*self.owned}}
            declared = replace(declared, baseline=None)
        self._declared = declared
        self.in_seconds = declared.fidelity.costs == "measured"

    def given(self, seed: int) -> int | list[Params]:
        """Return the candidates, or how many are drawn; 0 if there is no end of them."""
        candidates = self._declared.candidates or 0
        return candidates if isinstance(candidates, int) else list(map(dict, candidates))

    def of_levels(self, levels: Sequence[Any], common: Mapping[str, Any]) -> Settings:
        """Return the settings of the search."""
        candidates = self.given(common["seed"])
        return SearchSettings(
            declared=self._declared,
            levels=levels,
            candidates=() if isinstance(candidates, int) else candidates,
            kind=self._kind,
            **common,
        )

    def first_limit(self, seed: int, sign: float) -> float | None:
        """Return the limit of evaluations before the levels are known, in seconds."""
        first = self._declared.race((), seed=seed, sign=sign, kind=self._kind).ask()
        return first[0].limit if first else None


def _leader_in_words(known: StudyExperiment, policy: Any) -> str:
    arm, mean, interval, level = policy.leader()
    if arm is None:
        return "" if known.searches else "none, every arm failed"
    if math.isnan(mean):
        return ""  # nothing has given a value yet
    low, high = sorted(known.sign * bound for bound in interval)
    name = name_in_words(known.values_of(arm).params, arm)
    if math.isfinite(high - low):
        # Of all levels together: the mean of a single one need not lie within.
        return f"{name} in [{low:.4g}, {high:.4g}]"
    is_target = level == known.experiment.runner.n_levels - 1
    where = "" if is_target else f" at {_level(known, level)}"
    return f"{name}, {known.sign * mean:.4g}{where}"


def _level(known: StudyExperiment, index: int) -> str:
    level, fidelity = known.trials.levels[index], known.kind.fidelity
    assert fidelity is not None
    return f"{fidelity.name}={f'{level:.4g}' if isinstance(level, float) else level}"
