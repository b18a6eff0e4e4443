"""A race over fidelities: trials become observations of arms at levels."""

import math
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Labels, Observation, Policy, Pull
from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.race import Race
from mfhpo_optuna.study.arms import Arms
from mfhpo_optuna.study.attributes import ARM_KEY, parameters_before
from mfhpo_optuna.study.levels import Replicates, contains, did_you_mean, levels_in
from mfhpo_optuna.study.loop.state import Progress
from mfhpo_optuna.study.study_race import End, StudyRace
from mfhpo_optuna.study.trials.under_way import Running

MakePolicy = Callable[[int, tuple[Any, ...], float], Policy]


class FidelityRace(StudyRace):
    """Translates between the trials of one study and a policy over fidelities.

    `make_policy` is given the number of arms, the levels, and -1 where the study minimises, else 1.
    `arguments` is the digest of the sampler's, by which it knows trials that others have chosen.
    """

    owns_fidelity = True  # whether the objective is to ask for the fidelity

    def __init__(
        self,
        study: optuna.Study,
        arms: Arms,
        fidelity: Fidelity,
        make_policy: MakePolicy,
        lease: float | None = None,
        replicates: Replicates | None = None,
        arguments: str | None = None,
    ) -> None:
        super().__init__(study, arms, lease, replicates)
        self.fidelity = fidelity
        self._arguments = arguments
        self.levels: tuple[Any, ...] = ()
        self.fidelity_distribution: BaseDistribution | None = None
        self._make_policy = make_policy
        # By the number of the trial, its pull, what it has cost, and where it was stopped.
        self._early_failures: dict[int, tuple[Pull, float | None, float | None]] = {}
        self._without_fidelity = 0
        self._missing_fidelity = ""
        self._overridden = 0
        self._levels_told: set[int] = set()
        self._asked_for_fidelity = False
        # Trials that may fail before the fidelity is known, succeed without it, and in which
        # something else may set it, before it is an error.
        self._most_early_failures = 3 * len(arms)
        self._most_without_fidelity = len(arms)
        self._most_overridden = max(10, len(arms))
        if fidelity.levels is not None:
            self._set_levels(tuple(fidelity.levels))

    # Reading the study.

    def _is_single(self, trial: FrozenTrial) -> bool:
        return self.policy is not None and self.fidelity.name in trial.params

    def _take_in(self, trial: FrozenTrial, pull: Pull, end: End) -> bool:
        is_pruned = end.state == TrialState.PRUNED
        stopped_at = self._stopped_at(trial) if is_pruned else None
        if is_pruned and stopped_at is None and trial.number not in self.over:
            self._warn_of_pruning(trial, "at the level it was to be evaluated at")
        value, seconds = end.value, end.seconds
        succeeded = value is not None
        asked = trial.distributions.get(self.fidelity.name)
        if asked is not None:
            self._asked_for_fidelity = True
            self.fidelity_distribution = asked
            self.resolve_levels(asked)
        elif succeeded and self.owns_fidelity:
            self._note_missing_fidelity(trial)
            succeeded = False
            if not self._asked_for_fidelity:
                return False
        pull, belongs = self._pull_of(trial, pull, succeeded)
        if self._is_of_earlier_levels(trial):
            self._remember(pull, trial)
            return True  # not even as a failure
        self._note_duration(pull, seconds)
        if succeeded and belongs and self._is_at_target(pull):
            # Cheaper levels may ask for fewer parameters, so that arms only look the same there.
            pull = replace(pull, arm=self._owner_of(pull.arm, trial))
        belongs = belongs and (not succeeded or self._is_of_block(pull, trial))
        if self._replicates is not None and pull.block is None:
            self._remember(pull, trial)
            return True  # not even as a failure
        observed = self.sign * value if belongs and succeeded and value is not None else None
        if self.policy is None:
            cost = seconds if self.in_seconds else 0.0
            self._early_failures[trial.number] = pull, cost, stopped_at
        else:
            cost = seconds if self.in_seconds else None
            self._tell(trial, pull, Observation(observed, cost, stopped_at))
        return True

    def _stopped_at(self, trial: FrozenTrial) -> float | None:
        """Return the limit at which a pruned trial was stopped, where that is no failure."""
        return None

    def resolve_levels(self, distribution: BaseDistribution) -> None:
        """Find out the levels, and with them the policy, from how the objective asks."""
        if self.policy is None:
            self._set_levels(levels_in(self.fidelity, distribution))

    def level_of(self, trial_number: int, distribution: BaseDistribution) -> Any:
        """Return the level for a running trial whose objective asks with this distribution."""
        running = self.under_way.running[trial_number]
        self.resolve_levels(distribution)
        if running.blind:
            # The arm was chosen blindly; where to evaluate it is the policy's choice already.
            chosen = self._next(trial_number)
            fidelity = 0 if chosen is None else chosen.fidelity
            running = replace(running, pull=replace(running.pull, fidelity=fidelity), blind=False)
            self.under_way.running[trial_number] = running
        level = self.levels[running.pull.fidelity]
        if not contains(distribution, level):
            raise ValueError(
                f"the race needs {self.fidelity.name}={level!r}, which the objective's "
                f"{distribution} does not allow; suggest {self.fidelity.name!r} with the same "
                f"range in every trial, one that contains all levels {list(self.levels)}."
            )
        return level

    # Choosing what a trial evaluates.

    def propose(self, trial: FrozenTrial) -> Pull | None:
        """Return the pull for a trial that begins; None if no arm is left or it cannot count."""
        fixed = dict(parameters_before(trial) or {})
        level = fixed.pop(self.fidelity.name, None)
        if self._replicates is not None:
            fixed.pop(self._replicates.name, None)
        chosen = self._next(trial.number)
        arm, fidelity = (None, 0) if chosen is None else (chosen.arm, chosen.fidelity)
        if fixed:
            arm = self._enqueued_arm(trial, fixed)
        if arm is None:
            return None
        if level is not None and self.levels:
            if level not in self.levels:
                warnings.warn(
                    f"trial {trial.number} was enqueued with {self.fidelity.name}={level!r}, which "
                    f"is none of the levels {list(self.levels)}: it runs, but does not count. "
                    f"Enqueue one of the levels, or leave {self.fidelity.name!r} to the sampler.",
                    stacklevel=4,
                )
                return None
            fidelity = self.levels.index(level)
        if self._replicates is None or (chosen is not None and chosen.arm == arm):
            return Pull(arm, fidelity, block=None if chosen is None else chosen.block)
        return Pull(arm, fidelity, block=self._open_block(arm, trial.number))

    def _open_block(self, arm: int, trial_number: int) -> int:
        pending = self._pending(trial_number)
        if isinstance(self.policy, BlockElimination):
            return self.policy.open_block(arm, pending)
        return sum(pull.arm == arm for pull in pending)

    def attributes(self, pull: Pull) -> dict[str, Any]:
        """Return the user attribute that tells other workers about a pull."""
        tag = {"arm": pull.arm, "fidelity": pull.fidelity}
        if pull.block is not None:
            tag["block"] = pull.block
        if self.policy is None:
            tag["blind"] = True
        return {ARM_KEY: tag}

    def _noted(self, trial: FrozenTrial) -> Pull:
        note = self._note_of(trial)
        assert note is not None
        if note.fidelity is None:
            raise ValueError(
                f"trial {trial.number} was run by a sampler that chooses time limits, not levels "
                f"of {self.fidelity.name!r}; resume the study with that one, or begin another."
            )
        return self._within_levels(Pull(note.arm, note.fidelity, block=note.block))

    def _within_levels(self, pull: Pull) -> Pull:
        """Return a pull that was noted when there may have been more levels."""
        highest = len(self.levels) - 1 if self.levels else pull.fidelity
        return replace(pull, fidelity=min(pull.fidelity, highest))

    def _as_seen(self, running: Running, trial: FrozenTrial) -> Running:
        # The level may be another one than planned until the trial has asked for it: one that was
        # begun before any level was known has none in its attributes.
        asked = trial.distributions.get(self.fidelity.name)
        if asked is None:
            return replace(running, level_is_open=True)
        self.resolve_levels(asked)
        level = trial.params[self.fidelity.name]
        if level not in self.levels:
            return replace(running, level_is_open=False)
        pull = replace(running.pull, fidelity=self.levels.index(level))
        return replace(running, pull=pull, level_is_open=False)

    def _is_at_target(self, pull: Pull) -> bool:
        return pull.fidelity == len(self.levels) - 1

    def _equal_arms(self, pull: Pull, arms: Collection[int]) -> Iterable[int]:
        # Equal arms are merged by what they are at the target.
        return self.arms.maybe_equal(pull.arm, arms) if self._is_at_target(pull) else ()

    def _next(self, trial_number: int) -> Pull | None:
        if self.policy is None:
            block = None if self._replicates is None else self.under_way.n_begun // len(self.arms)
            return Pull(self.under_way.n_begun % len(self.arms), 0, block=block)
        return self._ask(trial_number)

    def _cost_of(self, pull: Pull) -> float:
        return self.fidelity.guessed_costs(self.levels)[pull.fidelity] if self.levels else 1.0

    def _set_levels(self, levels: tuple[Any, ...]) -> None:
        self.policy = self._make_policy(len(self.arms), levels, self.sign)
        self._note_replicates({})
        self.levels = levels
        self.policy.labels = Labels(
            arm=lambda arm: f"arm {arm} {self.arms.params(arm)}",
            fidelity=lambda fidelity: f"{self.fidelity.name}={levels[fidelity]!r}",
            value=lambda value: self.sign * value,
        )
        # What was begun blindly most likely asks for the level at which the race begins.
        first = self.policy.ask()
        for trial_number, running in self.under_way.running.items():
            pull = self._within_levels(running.pull)
            if running.blind and first:
                pull = replace(running.pull, fidelity=first[0].fidelity)
            self.under_way.running[trial_number] = replace(running, pull=pull)
        for trial_number, (pull, cost, stopped_at) in self._early_failures.items():
            at_lowest = Pull(pull.arm, 0, block=pull.block)
            self._tell_now(trial_number, at_lowest, Observation(None, cost, stopped_at))
        self._early_failures.clear()

    def _pull_of(self, trial: FrozenTrial, planned: Pull, whole: bool) -> tuple[Pull, bool]:
        """Return what a finished trial evaluated, and whether that is its arm at a level."""
        if not self._is_of_arm(trial, planned.arm, whole):
            return planned, False
        level = trial.params.get(self.fidelity.name)
        if level is None or not self.levels:
            return planned, True
        if level not in self.levels:
            self._warn_once(
                f"level of trial {trial.number}",
                f"trial {trial.number} was evaluated at {self.fidelity.name}={level!r}, which is "
                f"none of the levels {list(self.levels)}: it does not count. Suggest the fidelity "
                f"with a range that contains all levels.",
            )
            return planned, False
        fidelity = self.levels.index(level)
        self._levels_told.add(fidelity)
        # Trials that were run elsewhere, or earlier, may have had other levels.
        is_own = trial.number in self.under_way.begun_here
        note = self._note_of(trial)
        is_planned = fidelity == planned.fidelity or (note is not None and note.blind)
        if is_own and not is_planned:
            self._overridden += 1
        elif len(self._levels_told) > 1:  # else it may be what is always set
            self._overridden = 0
        return replace(planned, fidelity=fidelity), True

    def _is_of_earlier_levels(self, trial: FrozenTrial) -> bool:
        """Return whether a trial was run at a level that no longer exists.

        With the same arguments it never was one: there the objective is wrong, whoever ran it.
        """
        level = trial.params.get(self.fidelity.name)
        if level is None or not self.levels or level in self.levels:
            return False
        note = self._note_of(trial)
        return bool(note and note.arguments not in (None, self._arguments))

    # What the sampler asks.

    def progress(self) -> Progress:
        """Return arms left, fidelity, cost spent, and the leader with its interval."""
        policy = self.policy
        if policy is None:
            raise ValueError("the race has not begun: no trial has asked for the fidelity yet.")
        total, is_guess = _total(policy)
        return Progress(
            phase="pilot" if policy.piloting else self._at_level(policy.fidelity),
            configurations=(
                f"{len(policy.active)}/{len(self.arms)} arms "
                f"{'left' if self.certifies else 'in play'}"
            ),
            leader=self._leader_in_words(policy),
            spent=policy.cost,
            total=total,
            unit=self._unit,
            is_guess=is_guess,
            has_end=self.certifies or total is not None,
        )

    @property
    def in_seconds(self) -> bool:
        """Whether costs are seconds that were measured."""
        return self.fidelity.costs == "measured"

    @property
    def _unit(self) -> str:
        return "seconds" if self.in_seconds else "cost"

    def _leader_in_words(self, policy: Policy) -> str:
        arm, mean, interval, fidelity = policy.leader()
        if arm is None:
            return "none, every arm failed"
        if math.isnan(mean):
            return ""  # nothing has given a value yet
        low, high = sorted(self.sign * bound for bound in interval)
        if high - low < float("inf"):
            # Of all levels together: the mean of a single one need not lie within.
            return f"arm {arm} in [{low:.4g}, {high:.4g}]"
        count, _, half = policy.summary(arm, fidelity)
        values = f"{count} value{'s' * (count != 1)}"
        width = f"± {half:.2g}" if half < float("inf") else f"({values})"
        return f"arm {arm}, {self.sign * mean:.4g} {width}{self._below_target(fidelity)}"

    def _below_target(self, fidelity: int) -> str:
        is_target = fidelity == len(self.levels) - 1
        return "" if is_target else f" at {self._at_level(fidelity)}"

    def _at_level(self, fidelity: int) -> str:
        level = self.levels[fidelity]
        shown = f"{level:.4g}" if isinstance(level, float) else level
        return f"{self.fidelity.name}={shown}"

    @property
    def certifies(self) -> bool:
        """Whether the policy is after a certificate; those that maximise the reward are not."""
        return self.policy is None or self.policy.certifies

    @property
    def hopeless(self) -> bool:
        """Whether so many trials failed before they asked for the fidelity that none may ever."""
        return self.policy is None and len(self._early_failures) >= self._most_early_failures

    def check_fidelity_is_free(self) -> None:
        """Raise if the sampler's choice of the fidelity is never followed."""
        if not self._asked_for_fidelity and self._without_fidelity >= self._most_without_fidelity:
            raise ValueError(self._missing_fidelity)
        if self._overridden >= self._most_overridden:
            raise ValueError(
                f"fidelity={self.fidelity.name!r} was not what the sampler chose in "
                f"{self._overridden} trials: something else sets it. Suggest it with a range that "
                f"contains all levels {list(self.levels)}, and do not fix it."
            )

    def _note_missing_fidelity(self, trial: FrozenTrial) -> None:
        self._without_fidelity += 1
        name = self.fidelity.name
        self._missing_fidelity = (
            f"fidelity={name!r}, but the objective did not ask for it in trial {trial.number}; it "
            f"asked for {sorted(trial.params)}. Call trial.suggest_int({name!r}, ...) or the like "
            f"in the objective, and name that "
            f"parameter.{did_you_mean(name, trial.params, 'fidelity=')}"
        )
        if self._without_fidelity == 1 or self._asked_for_fidelity:
            self._warn_once(f"fidelity of trial {trial.number}", self._missing_fidelity)


def _total(policy: Policy) -> tuple[float | None, bool]:
    """Return what a race will have cost, and whether that is a guess; None if unknown."""
    budget = policy.budget if isinstance(policy, Race) else math.inf
    remaining = policy.recommend().remaining_cost
    if remaining is not None and policy.cost + remaining < budget:
        return policy.cost + remaining, True
    return (budget, False) if math.isfinite(budget) else (None, False)
