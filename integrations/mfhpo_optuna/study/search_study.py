"""A study's trials as observations of a search over fidelities and of its certificate."""

import math
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Policy, Pull
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.search import BudgetedSearch, Point, Replicate, SearchPolicy, SearchSpace, has_levels
from mfhpo.search.budgeted import SEARCH_BLOCK
from mfhpo_optuna.study.attributes import (
    ARM_KEY,
    CENSORED_KEY,
    LIMIT_KEY,
    MEMORY_KEY,
    parameters_before,
    read_attribute,
)
from mfhpo_optuna.study.fidelity_race import FidelityRace, MakePolicy
from mfhpo_optuna.study.levels import Replicates
from mfhpo_optuna.study.loop.state import Progress
from mfhpo_optuna.study.open_arms import OpenArms
from mfhpo_optuna.study.places import kind_of, point_of
from mfhpo_optuna.study.study_race import End
from mfhpo_optuna.study.trials.processes import is_surely_alive

# Times the first limit, which is a tenth of the budget, before the levels are known.
_MOST_AT_FIRST = 10.0


class SearchStudy(FidelityRace):
    """Translates between the trials of one study and a `BudgetedSearch`; see `FidelityRace`."""

    arms: OpenArms
    avoids_repeats = True
    has_open_arms = True
    arms_option = "candidates"

    def __init__(
        self,
        study: optuna.Study,
        arms: OpenArms,
        fidelity: Fidelity,
        make_race: MakePolicy,
        lease: float | None = None,
        replicates: Replicates | None = None,
        arguments: str | None = None,
    ) -> None:
        self.owns_fidelity = has_levels(fidelity)
        self._n_begun = 0  # arms, by trials that count for nothing
        self._distributions: dict[str, BaseDistribution] = {}
        self._shortlist: tuple[int, tuple[int, ...]] | None = None  # whose it is, and its arms
        super().__init__(study, arms, fidelity, make_race, lease, replicates, arguments)
        self._most_early_failures = 30
        self._most_without_fidelity = 1
        self._most_overridden = 9  # of the first arms, which are all begun at the lowest level

    @property
    def race(self) -> BudgetedSearch | None:
        """The race, or None while the levels of the fidelity are unknown."""
        return self.policy if isinstance(self.policy, BudgetedSearch) else None

    def attributes(self, pull: Pull) -> dict[str, Any]:
        """Return the user attributes that tell workers and enforcers of limits about a pull."""
        limit = {} if pull.limit is None else {LIMIT_KEY: pull.limit}
        attributes = limit | super().attributes(pull)
        if isinstance(pull, Replicate):
            attributes[ARM_KEY]["shortlist"] = list(pull.shortlist)
        return attributes

    def begin(self, trial: FrozenTrial, pull: Pull) -> None:
        """Note that a trial evaluates a pull."""
        self.arms.make_room(pull.arm)
        if isinstance(pull, Replicate):
            self._agree(trial.number, pull.shortlist)
        elif self.race is not None:
            point = self.race.point_of(pull.arm)
            if point is not None:
                fixed = parameters_before(trial) or {}
                point = {name: place for name, place in point.items() if name not in fixed}
                self.arms.propose(pull.arm, point)
                if not self.arms.params(pull.arm):
                    self.race.search.describe(pull.arm, point)
        super().begin(trial, pull)

    def give_way(self, trial: FrozenTrial) -> Pull | None:
        """Have a trial give way, also where two workers would number different arms alike."""
        pull = self.pull(trial.number)
        if isinstance(pull, Replicate):
            return None if pull.block is None else super().give_way(trial)
        if pull is None or self.inherited(trial) is not None:
            return None
        others = self.under_way.waited_for(trial.number)
        rivals = [number for number, other in others if other.arm == pull.arm]
        is_enqueued = parameters_before(trial) is not None
        must_stay = self.arms.n_given or self.arms.is_decided(pull.arm)
        if not rivals or (is_enqueued and must_stay):
            return None
        # The others choose again, too, if they have seen this trial: each takes another place.
        place = 1 + sum(number < trial.number for number in rivals)
        other = self._next(trial.number, place)
        if is_enqueued:
            other = replace(pull, arm=self._first_new_arm(trial.number) + place - 1)
        if other is not None:
            self.arms.forget(pull.arm)
            self.begin(trial, other)
        return other

    @property
    def goes_on(self) -> bool:
        """Whether trials are under way whose process surely runs."""
        return any(
            number in self.under_way.begun_here or is_surely_alive(worker)
            for number, worker, _ in self.chosen_by(-1)
        )

    def progress(self) -> Progress:
        """Return what was tried, what it cost, and the leader."""
        race = self.race
        if race is None:
            return Progress("search", "no trial has asked for the fidelity yet", "", 0.0, None)
        spent, amount = race.spending
        finished = len(race.search.finished_arms())
        return Progress(
            phase=f"certify, {len(race.shortlist)} finalists" if race.shortlist else "search",
            configurations=f"{race.tried} tried, {finished} at the target",
            leader=self._leader_in_words(race),
            spent=spent,
            total=amount if math.isfinite(amount) else None,
            unit="trials" if race.counts_evaluations else self._unit,
            has_end=math.isfinite(amount),
        )

    def _leader_in_words(self, policy: Policy) -> str:
        arm, mean, (low, high), fidelity = policy.leader()
        if arm is None:
            return ""
        leader = f"arm {arm}, {self.sign * mean:.4g}"
        if math.isfinite(high - low):
            return f"{leader} ± {(high - low) / 2.0:.2g}"
        return f"{leader}{self._below_target(fidelity)}"

    # How it differs from a race among given arms.

    @property
    def _others_decide(self) -> bool:
        race = self.race
        if race is None or not self.goes_on:
            return False
        return race.is_ahead(self._pending(-1))

    @property
    def may_promise(self) -> bool:
        """Whether anything came to the target: an interval has only what is on the shortlist."""
        return bool(self.at_target.counts[0, 0])

    def _stopped_at(self, trial: FrozenTrial) -> float | None:
        # A larger limit of time may be worth it, one of memory there will not be.
        if read_attribute(trial, MEMORY_KEY) is not None:
            return math.inf
        stopped_at: float | None = read_attribute(trial, CENSORED_KEY)
        return stopped_at

    def _has_turns(self, pull: Pull) -> bool:
        return isinstance(pull, Replicate)  # the search itself certifies nothing

    def _equal_arms(self, pull: Pull, arms: Collection[int]) -> Iterable[int]:
        return ()  # those of the shortlist differ

    def _is_single(self, trial: FrozenTrial) -> bool:
        return super()._is_single(trial) or not self.owns_fidelity

    def propose(self, trial: FrozenTrial) -> Pull | None:
        """Return the pull for a trial that begins; None if the race is over or it cannot count."""
        pull = self._next(trial.number)
        if pull is not None and parameters_before(trial) is not None:
            return self._enqueued(trial)
        if pull is None:
            self.over.add(trial.number)
        return pull

    def _enqueued(self, trial: FrozenTrial) -> Pull | None:
        pull, pending = super().propose(trial), self._pending(trial.number)
        if pull is None:
            return None
        if self._replicates is not None:  # what comes next may be in a block of the certificate
            pull = replace(pull, block=SEARCH_BLOCK)
        if self.race is None:
            return replace(pull, limit=self._first_limit())
        if not self.race.fits(pull, pending):
            warnings.warn(
                f"trial {trial.number} was enqueued, but what is left of the budget does not do "
                f"for it: it runs, but does not count. Enqueue it earlier, or give a larger "
                f"budget.",
                stacklevel=5,
            )
            return None
        return self.race.limited(pull, pending)

    def _take_in(self, trial: FrozenTrial, pull: Pull, end: End) -> bool:
        if not isinstance(pull, Replicate) and pull.block not in (None, SEARCH_BLOCK):
            # It began before it was known that this is a search. The certificate is to see new
            # replicates, so that this value counts for nothing.
            self._remember(pull, trial)
            return True
        return super()._take_in(trial, pull, end)

    def _remember(self, pull: Pull, trial: FrozenTrial) -> None:
        super()._remember(pull, trial)
        self._n_begun = max(self._n_begun, pull.arm + 1)
        if self.race is not None:
            self.race.begun = max(self.race.begun, self._n_begun)
        self._learn_of(pull.arm, self.arms.params(pull.arm), trial.distributions)

    def _set_levels(self, levels: tuple[Any, ...]) -> None:
        super()._set_levels(levels)
        if self._shortlist is not None and self.race is not None:
            self.race.agree(self._shortlist[1])

    def _noted(self, trial: FrozenTrial) -> Pull:
        pull = replace(super()._noted(trial), limit=read_attribute(trial, LIMIT_KEY))
        self.arms.make_room(pull.arm)
        note = self._note_of(trial)
        if note is not None and note.shortlist is not None:
            agreed = note.shortlist
            self._agree(trial.number, agreed)
            return Replicate(pull.arm, pull.fidelity, pull.limit, pull.block, shortlist=agreed)
        if trial.state == TrialState.RUNNING and not self.under_way.is_overdue(
            trial.number, pull, trial.datetime_start
        ):
            planned = self.arms.proposal(pull.arm)
            self._learn_of(pull.arm, trial.params, trial.distributions, planned)
        return pull

    def _agree(self, trial_number: int, shortlist: tuple[int, ...]) -> None:
        """Agree on a shortlist: of several, that of the first trial holds for all readers."""
        if self._shortlist is not None and self._shortlist[0] <= trial_number:
            return
        changes = self._shortlist is None or self._shortlist[1] != shortlist
        self._shortlist = trial_number, shortlist
        if changes and self.race is not None:
            self.race.agree(shortlist)

    def _next(self, trial_number: int, place: int = 1) -> Pull | None:
        """Return the pull for a trial, or for the one in this place of several at once."""
        if self.policy is None:
            block = None if self._replicates is None else SEARCH_BLOCK
            arm = self._first_new_arm(trial_number) + place - 1
            if self.arms.declared:
                arm %= self.arms.n_given
            return Pull(arm, 0, self._first_limit(), block)
        return self._ask(trial_number, place)

    def _first_limit(self) -> float | None:
        """Return the limit of a trial before the levels are known, which rises with each stop."""
        stops = sum(stopped is not None for *_, stopped in self._early_failures.values())
        asked = self._make_policy(1, (), self.sign).ask()
        limit = asked[0].limit if asked else None
        return None if limit is None else limit * min(2.0**stops, _MOST_AT_FIRST)

    def _open_block(self, arm: int, trial_number: int) -> int:
        return SEARCH_BLOCK

    def _enqueued_arm(self, trial: FrozenTrial, fixed: Mapping[str, Any]) -> int | None:
        if self.arms.n_given:
            return super()._enqueued_arm(trial, fixed)
        known = self.arms.known_as(fixed)
        return self._first_new_arm(trial.number) if known is None else known

    def _first_new_arm(self, trial_number: int) -> int:
        told = max(self._n_begun, 0 if self.race is None else self.race.begun)
        under_way = [pull.arm + 1 for _, pull in self.under_way.waited_for(trial_number)]
        failed = [pull.arm + 1 for pull, *_ in self._early_failures.values()]
        return max([told, *under_way, *failed])

    def _owner_of(self, arm: int, trial: FrozenTrial) -> int:
        if self.arms.n_given:
            return super()._owner_of(arm, trial)
        owner = self.arms.owner(arm, trial.params)
        if owner != arm and self.policy is not None:
            self.policy.withdraw(arm, duplicate_of=owner)
        return owner

    def _is_of_arm(self, trial: FrozenTrial, arm: int, whole: bool) -> bool:
        if not whole:
            # It is the same arm when it is evaluated again, also by whoever reads of it later.
            self.arms.begun(arm, trial.number, trial.params)
        belongs = super()._is_of_arm(trial, arm, whole)
        if belongs:
            self._learn_of(arm, self.arms.params(arm), trial.distributions)
        return belongs

    def _learn_of(
        self,
        arm: int,
        params: Mapping[str, Any],
        asked: Mapping[str, BaseDistribution],
        planned: Point | None = None,
    ) -> None:
        """Tell the search what an arm is, and about parameters that it did not know.

        What was not asked for yet is as `planned`.
        """
        if self.race is None or self.arms.declared:
            return  # the search knows what it was given
        search = self.race.search
        distributions = {name: asked[name] for name in asked if name != self.fidelity.name}
        kinds = search.space.parameters
        new = {
            name: kind
            for name, distribution in distributions.items()
            if (kind := kind_of(distribution)) is not None and kinds.get(name) != kind
        }
        self._distributions |= distributions
        if new:
            search.space = SearchSpace(kinds | new)
            self._draw_given(search)
        asked_again = params.keys() & distributions.keys()
        # A trial that goes on with an arm may not have asked for all its parameters yet.
        if not self.arms.is_decided(arm) or self.arms.params(arm).keys() <= asked_again:
            search.describe(arm, {**(planned or {}), **point_of(params, distributions)})

    def _draw_given(self, search: SearchPolicy) -> None:
        for arm in range(self.arms.n_given):
            if not self.arms.is_decided(arm):
                drawn = {
                    name: self.arms.planned(arm, name, distribution)
                    for name, distribution in self._distributions.items()
                }
                search.describe(arm, point_of(drawn, self._distributions))
