"""What all policies that race arms share: pilot, evidence, failures, costs, answers, state.

An arm's radius depends on its own count at a fidelity. So decisions stay valid when pulls arrive
late, out of order or never, if that says nothing about their values. Otherwise the pulls of a pair
must be told in the order in which they were begun.
"""

import abc
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from mfhpo._validation import (
    MOST_AT_ONCE,
    MOST_SEED,
    check_count,
    check_index,
    check_instance,
    check_limit,
    check_probability,
)
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, Kind
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.noise import NoiseContradictedWarning, within_range
from mfhpo.knowledge.state import restore, saved
from mfhpo.policy import Policy
from mfhpo.problem import (
    Observation,
    Problem,
    Pull,
    Recommendation,
)
from mfhpo.racing.answer import (
    bias_condition,
    bias_in_words,
    leads,
    lost_leader,
    not_compared,
    notices,
    surest_arm,
    unseen,
)
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.failures import fails_too_often, outcomes_in_words
from mfhpo.racing.pilot import Pilot
from mfhpo.racing.roster import Roster

# Of delta, the share that pays for bias bounds that are estimated by the pilot.
_BIAS_SHARE = 0.5


# Of saved states; a race cannot go on by rules that count other values.
_STATE_VERSION = 4


class ArmWithdrawnWarning(UserWarning):
    """An arm left the race because too many of its pulls failed."""


class RacingPolicy(Policy):
    """A policy that pulls arms, and learns from their values which are good.

    `BestArmPolicy` looks for a certificate, `RewardPolicy` for reward; start from one of these.
    What is not declared is found out by a pilot, whose arms the seed chooses. Then the subclass
    decides what to pull. For the arguments see `mfhpo.racing.options.RaceOptions` and
    `mfhpo.racing.evidence.Evidence`.
    """

    # Numbers and arrays that a state consists of; subclasses have more of them.
    _saved: tuple[str, ...] = (
        "_failures",
        "_cost_sums",
        "_cost_counts",
        "_cost",
        "pulls",
        "_planned_costs",
        "_piloting",
        "_n_pilot",
    )

    def __init__(
        self,
        problem: Problem,
        *,
        delta: float = 0.05,
        budget: float | None = None,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        radius: Radius | Sequence[Radius] | None = None,
        seed: int = 0,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        budget = check_limit("budget", budget, "")
        self.problem = problem
        self.delta = check_probability("delta", delta)
        self.budget = math.inf if budget is None else budget
        self._max_failures = check_count("max_failures", max_failures, 1)
        self.seed = check_count("seed", seed, 0, MOST_SEED)
        n_arms, n_fidelities = problem.n_arms, problem.n_fidelities
        order = np.random.default_rng(seed).permutation(n_arms)
        self._pilot = Pilot(
            tuple(order.tolist()),
            check_count("pilot_arms", pilot_arms, 2),
            check_count("pilot_pulls", pilot_pulls, 2, MOST_AT_ONCE),
            self._pilot_fidelities(),
        )
        self._piloting = self._needs_pilot()
        self._n_pilot = 0

        # The bounds in force, None before they are estimated: then they may fail as well, and get
        # their share of delta.
        self.bias = problem.bias
        self._bias_delta = _BIAS_SHARE * self.delta if self._estimates_bias() else 0.0
        self._evidence = Evidence(
            problem,
            self.delta - self._bias_delta,
            self._compared_fidelities(),
            radius,
            variances=self._variances,
            audit=self._audits_noise,
            expects_spread=self._expects_spread,
        )
        self._roster = Roster(n_arms)
        # Pulls without a value, of each arm at each fidelity.
        self._failures: IntArray = np.zeros((n_arms, problem.n_fidelities), dtype=np.int64)
        self._cost = 0.0
        self.pulls = 0
        self._cost_sums: FloatArray = np.zeros(n_fidelities)
        self._cost_counts: IntArray = np.zeros(n_fidelities, dtype=np.int64)
        self._planned_costs: FloatArray | None = None
        if not self._piloting:
            self._fix_costs()

    # What subclasses decide.

    # Whether a declared scale of the noise is compared with what is observed.
    _audits_noise = True

    # Whether to warn of equal values at once; else whoever runs the race does.
    _expects_spread = True

    # Kind of bias bound to estimate when none is declared.
    _kind: Kind = "max"

    def _compared_fidelities(self) -> tuple[int, ...]:
        """Return fidelities that are evidence about the target: the union bound is over these."""
        return tuple(range(self.problem.n_fidelities))

    @property
    def _variances(self) -> bool:
        """Whether the rules need upper bounds on the noise's variance."""
        return False

    def _pilot_fidelities(self) -> tuple[int, ...]:
        return self._compared_fidelities()

    @abc.abstractmethod
    def _needs_pilot(self) -> bool:
        """Tell whether a pilot has to find something out."""

    def _estimates_bias(self) -> bool:
        return self.problem.bias is None

    @abc.abstractmethod
    def _plan(self) -> None:
        """Derive what is needed from the bias bounds and the costs; again when they change."""

    @abc.abstractmethod
    def _end_pilot(self) -> None:
        """Go on without the pilot, if that is complete (see `_settle`)."""

    def _take_note(self, arm: int) -> None:
        """Take note of a pull with a value, before the rules are applied."""

    def _confirms(self, arm: int) -> bool:
        """Tell whether to compare all arms again, now that this one has another value."""
        return False

    def _take_note_of_failure(self) -> None:
        """Take note of a pull without a value, which was paid for."""

    def _audit_bias(self, fidelity: int) -> None:
        """Compare what was seen at a fidelity with the bias bounds."""

    def _judge(self, fidelity: int) -> None:
        """Apply the rules that eliminate and certify, after what was seen at one fidelity."""

    def _judge_anew(self) -> None:
        """Apply the rules to all that is known, after an arm was withdrawn."""

    @abc.abstractmethod
    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull | None:
        """Return the next pull after the pilot, given counts (K, M) with pulls under way."""

    @property
    def winner(self) -> int | None:
        """The arm that the race has ended with, if it has."""
        return None

    @property
    def _certified(self) -> bool:
        return False

    def _surest_arm(self) -> int:
        return surest_arm(self._evidence, self.active)

    @abc.abstractmethod
    def _reason(self, arm: int | None) -> str:
        """Say why the race stands as it does, given the best answer so far."""

    def _noise_in_words(self) -> str:
        return self._evidence.assumption

    def _conditions(self) -> tuple[str, ...]:
        parts = ["evaluations are independent", self._noise_in_words()]
        if len(self._compared_fidelities()) > 1:
            parts.append(bias_condition(self.bias, self._n_pilot, self._bias_delta))
        return tuple(parts)

    def _assumptions(self) -> tuple[str, ...]:
        parts = [self._evidence.estimate]
        if len(self._compared_fidelities()) > 1:
            parts.append(bias_in_words(self.bias, self._n_pilot))
        elif self.problem.n_fidelities > 1:
            parts.append("bias: nothing is taken for true of it; the target's values decide")
        return tuple(part for part in parts if part)

    def _notices(self) -> tuple[str, ...]:
        arms = np.flatnonzero(~self._roster.merged)
        return notices(self._evidence, arms, self._compared_fidelities(), self.labels)

    def _remaining_cost(self, leader: int | None) -> float | None:
        return None

    # The contract.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`)."""
        check_count("n", n, 1, MOST_AT_ONCE)
        counts = self._evidence.counts
        pending = self._checked(pending)
        if pending or n > 1:
            counts = counts.copy()
        for pull in pending:
            counts[pull.arm, pull.fidelity] += 1
        pulls: list[Pull] = []
        for _ in range(n):
            proposed = self._next_pull(counts)
            if proposed is None:
                break
            pulls.append(proposed)
            if n > 1:
                counts[proposed.arm, proposed.fidelity] += 1
        return pulls

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`)."""
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self._check(pull)
        arm, fidelity = int(pull.arm), int(pull.fidelity)
        self._pay(fidelity, observation)
        if observation.value is None or not observation.has_value:
            self._count_failure(arm, fidelity)
            return
        self._take_value(arm, fidelity, float(observation.value))

    def _take_value(self, arm: int, fidelity: int, value: float) -> None:
        self.pulls += 1
        contradicted = self._evidence.add(arm, fidelity, value)
        self._take_note(arm)
        if contradicted:
            warnings.warn(
                f"{contradicted} at {self.labels.fidelity(fidelity)}; it is estimated from now on, "
                f"and the arms that had left are compared again",
                NoiseContradictedWarning,
                stacklevel=3,
            )
        if self._piloting:
            self._end_pilot()
            return
        if contradicted or self._confirms(arm):
            self._plan()
            self._roster.restore_eliminated()
            self._judge_anew()
        self._audit_bias(fidelity)
        self._judge(fidelity)

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out of the race (see `Policy.withdraw`).

        The arms that it had eliminated come back, unless it is the same as another one.
        """
        check_index("arm", arm, self.problem.n_arms)
        if duplicate_of is None:
            self._roster.withdraw(arm)
        elif check_index("duplicate_of", duplicate_of, self.problem.n_arms) == arm:
            raise ValueError(f"duplicate_of must be another arm than arm {arm}.")
        else:
            self._roster.merge(arm, duplicate_of)
        if self._piloting:
            self._end_pilot()
        else:
            self._judge_anew()

    def recommend(self) -> Recommendation:
        """Return the best answer so far (see `Policy.recommend`)."""
        arm, mean, interval, fidelity = self.leader()
        if self.withheld:  # what takes long may be poor: until it ends, nothing is bounded
            interval = (-math.inf, math.inf)
        interval = within_range(interval, self.problem.noise)
        roster = self._roster
        refused = self._refusal(arm) if self._certified else ""
        certified = self._certified and not refused
        return Recommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=self.delta,
            epsilon=self.epsilon,
            finished=self.finished,
            certified=certified,
            reason=refused or self._reason(arm),
            cost=self.cost,
            pulls=self.pulls,
            survivors=tuple(self.active.tolist()),
            compared=self.problem.n_arms - int((roster.withdrawn | roster.merged).sum()),
            assumptions=self._assumptions(),
            remaining_cost=0.0 if certified else None if refused else self._remaining_cost(arm),
            conditions=(*self._conditions(), *self.provisos),
            unseen=unseen(self._evidence, self._roster, arm, self.delta),
            not_compared=not_compared(self._n_values, roster, self._failures, self.labels),
            failures=int(self._failures.sum()),
            notices=self._notices(),
        )

    def _refusal(self, winner: int | None) -> str:
        lost = None if winner is None else self._lost_leader(winner)
        if lost is None:
            return self.withheld
        outcomes = outcomes_in_words(int(self._n_values[lost]), int(self._failures[lost].sum()))
        return (
            f"{self.labels.arm(lost)} led when it left the race, or would lead by its values: "
            f"it {outcomes} evaluations, so that it could not be compared; mend the objective "
            f"for it, or leave it out"
        )

    def _lost_leader(self, winner: int) -> int | None:
        """Return an arm that left for its failures, and was or would be the best by its values."""
        compared = self._compared_fidelities()
        return lost_leader(self._evidence, self._roster, self._failures, winner, compared)

    @property
    def _n_values(self) -> IntArray:
        """How many values each arm has given, shape (K,)."""
        return np.asarray(self._evidence.counts.sum(axis=1))

    # What adapters show while the race runs.

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 where there is none."""
        return 0.0

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self._cost

    @property
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,); not to be written to."""
        return self._roster.arms

    @property
    def piloting(self) -> bool:
        """Whether the pilot is still under way."""
        return self._piloting

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return the best answer so far in short (see `Policy.leader`)."""
        if not self._roster.active.any():
            return None, math.nan, (-math.inf, math.inf), 0
        winner = self.winner
        arm = self._surest_arm() if winner is None else winner
        seen = np.flatnonzero(self._evidence.counts[arm])
        if not seen.size:
            return arm, math.nan, (-math.inf, math.inf), 0
        highest = int(seen[-1])
        _, mean, _ = self.summary(arm, highest)
        return arm, mean, self.interval(arm), highest

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on an arm's mean at the target, valid at all times with the others."""
        return self._evidence.interval(arm, self.bias)

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and confidence radius of an arm at a fidelity."""
        self._check(Pull(arm, fidelity))
        return self._evidence.summary(arm, fidelity)

    # Pulls.

    def _check(self, pull: Pull, name: str = "pull") -> None:
        super()._check(pull, name)
        check_index("arm", pull.arm, self.problem.n_arms)
        check_index("fidelity", pull.fidelity, self.problem.n_fidelities)

    def _next_pull(self, counts: IntArray) -> Pull | None:
        arms = self.active
        if not arms.size:
            return None
        if self._piloting:
            return self._pilot.next_pull(counts, self._evidence.counts, self._roster.active)
        winner = self.winner
        if winner is not None:
            return self._pull_of_winner(winner)
        return self._race_pull(counts, arms)

    def _pull_of_winner(self, winner: int) -> Pull | None:
        return Pull(winner, self.problem.target)

    def _settle(self) -> bool:
        active = self._roster.active
        if not active.any() or self._pilot.missing(self._evidence.counts, active):
            return False
        if self._bias_delta:
            level = self._bias_delta / max(1, self.problem.n_fidelities - 1)
            self.bias = self._pilot.bias(self._evidence, active, self._kind, level)
        self._piloting = False
        self._n_pilot = len(self._pilot.arms(active))
        self._fix_costs()
        return True

    def _count_failure(self, arm: int, fidelity: int) -> None:
        self._failures[arm, fidelity] += 1
        self._leave_if_failing(arm, fidelity)
        if not self._piloting:
            self._take_note_of_failure()

    def _counted_failures(self, arm: int) -> IntArray:
        """Return the failures that may make an arm leave, at each fidelity, shape (M,)."""
        return np.asarray(self._failures[arm])

    def _leave_if_failing(self, arm: int, fidelity: int) -> None:
        counted = self._counted_failures(arm)
        at_all, at_this = int(self._evidence.counts[arm].sum()), int(counted[fidelity])
        values = int(self._evidence.counts[arm, fidelity])
        failures = at_this if at_all else int(counted.sum())
        too_often = fails_too_often(values, failures, self._max_failures, at_all - values)
        if too_often and not self._roster.withdrawn[arm]:
            failed, given = int(self._failures[arm].sum()), int(self._n_values[arm])
            warnings.warn(
                f"{self.labels.arm(arm)} leaves the race: {failed} of {failed + given} pulls "
                f"gave no value (they failed, were pruned, ran out of time or gave no number "
                f"of a size up to 1e50), the last at {self.labels.fidelity(fidelity)}; mend "
                f"the objective for this configuration, or raise "
                f"max_failures={self._max_failures}",
                ArmWithdrawnWarning,
                stacklevel=4,
            )
            self._roster.led[arm] = leads(self._evidence, self.active, arm)
            self.withdraw(arm)

    # Costs.

    def _pay(self, fidelity: int, observation: Observation) -> None:
        cost = self._paid_for(fidelity, observation)
        if cost is None:
            self._cost += self._cost_of(fidelity)
            return
        self._cost += cost
        self._cost_sums[fidelity] += cost
        self._cost_counts[fidelity] += 1

    def _paid_for(self, fidelity: int, observation: Observation) -> float | None:
        """Return the cost of a pull, None if nobody knows, as for a dead worker; or ValueError."""
        if observation.cost is not None:
            return float(observation.cost)
        if self.problem.costs is not None:
            return self.problem.costs[fidelity]
        if observation.has_value:
            raise ValueError("cost=None: the problem's costs are measured; tell what was paid.")
        return None

    def _cost_of(self, fidelity: int) -> float:
        """Return the cost of a pull: declared, or the mean of what was paid (0 at first)."""
        if self.problem.costs is not None:
            return self.problem.costs[fidelity]
        return float(self._cost_sums[fidelity] / max(1, self._cost_counts[fidelity]))

    def _fix_costs(self) -> None:
        """Fix the costs to plan with, shape (M,): what is measured must not move the plan later."""
        paid = np.array([self._cost_of(m) for m in range(self.problem.n_fidelities)])
        # A coarse clock measures 0; a fidelity must not be pulled for ever for being free.
        paid[paid == 0.0] = 1e-3 * paid.max() if paid.any() else 1.0
        self._planned_costs = paid

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        return {
            "evidence": self._evidence.state_dict(),
            "version": _STATE_VERSION,
            "roster": self._roster.state_dict(),
            "bias": self.bias and {**asdict(self.bias), "bounds": list(self.bias.bounds)},
            **saved(self, self._saved),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        if state.get("version") != _STATE_VERSION:
            raise ValueError(
                "the state was saved by another version of mfhpo, whose races count other values; "
                "begin the race anew, or go on with that version."
            )
        self._check_declared(state)
        self._evidence.load_state_dict(state["evidence"])
        self._roster.load_state_dict(state["roster"])
        bias = state["bias"]
        self.bias = None if bias is None else Bias(**bias)
        restore(self, self._saved, state)
        self._load_details(state)
        if not self._piloting:
            self._plan()

    def _check_declared(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError if other costs or bias bounds were declared when a state was saved."""
        costs, planned = self.problem.costs, state["planned_costs"]
        if costs is not None and planned is not None and list(costs) != planned:
            raise ValueError(
                f"costs={list(costs)}, but the state was saved with costs={planned}; make the "
                f"policy with the arguments that it was saved with."
            )
        saved_bias = None if state["bias"] is None else Bias(**state["bias"])
        is_declared = saved_bias is not None and saved_bias.source == "declared"
        if is_declared and saved_bias != self.problem.bias:
            raise ValueError(
                f"bias={self.problem.bias}, but the state was saved with bias={saved_bias}; make "
                f"the policy with the arguments that it was saved with."
            )

    def _load_details(self, state: Mapping[str, Any]) -> None:
        """Load what the plan depends on beyond what all policies save."""
