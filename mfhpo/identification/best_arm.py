"""What policies for the best arm share: the pilot, the evidence, the answer, the state.

An arm's radius depends on its own count at a fidelity, so that every decision stays valid when
pulls arrive late, out of order, twice or never.
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count, check_nonnegative, check_probability
from mfhpo.bias import Bias, BiasContradictedWarning, Kind, find_contradiction
from mfhpo.confidence import Radius
from mfhpo.evidence import Evidence
from mfhpo.identification.answer import bias_in_words, remaining_pulls, surest_arm
from mfhpo.identification.pilot import Pilot
from mfhpo.identification.roster import Roster
from mfhpo.noise import SubGaussian
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Problem, Pull, Recommendation

__all__ = ["ArmWithdrawnWarning", "BestArmPolicy"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Of delta, the share that pays for bias bounds that are estimated by the pilot.
_BIAS_SHARE = 0.5


class ArmWithdrawnWarning(UserWarning):
    """An arm left the race because its pulls kept failing."""


class BestArmPolicy(Policy):
    """A race for the best arm: what all of them do alike, whatever they pull next.

    What is not declared is found out by a pilot. Then the subclass decides what to pull and judges
    who is out; the race ends with one arm, or with a certificate for one.

    Parameters
    ----------
    problem
        What is known. Whatever is None there is found out by a pilot before the race.
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance: any arm whose target mean is within epsilon of the best is a right answer.
        0 asks for the best arm itself (a tie then never ends). None takes one standard deviation
        of the noise at the target fidelity.
    radius
        Confidence radius, or one per fidelity. None: the tightest one whose assumptions hold for
        ``problem.noise``.
    budget
        Largest total cost; the race ends, uncertified, when the next pull would exceed it. Pulls
        that are under way are not counted: n workers may overspend by n - 1 pulls.
    measure
        Number of pulls that the winner is to have at the target fidelity before the race ends,
        so that its value is known there also when cheaper fidelities decided.
    max_failures
        An arm leaves the race after so many pulls in a row without a value. A timeout is no
        failure, but this race cannot learn from it either, so it counts here too.
    pilot_arms, pilot_pulls
        Size of the pilot: arms, and pulls of each at every fidelity.
    audit
        Whether to compare what is observed at different fidelities with the bias bounds, and to
        widen the bounds where they are contradicted. It cannot see all: an arm that left at a
        cheap fidelity was never seen at a dearer one.
    seed
        Chooses the pilot's arms.

    Raises
    ------
    ValueError
        For arguments out of range.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        delta: float = 0.05,
        epsilon: float | None = 0.0,
        radius: Radius | Sequence[Radius] | None = None,
        budget: float | None = None,
        measure: int = 0,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        audit: bool = True,
        seed: int = 0,
    ) -> None:
        if budget is not None and not budget > 0.0:
            raise ValueError(f"budget must be positive or None, got {budget!r}.")
        self.problem = problem
        self.delta = check_probability("delta", delta)
        self.budget = math.inf if budget is None else float(budget)
        self._measure = check_count("measure", measure, 0)
        self._max_failures = check_count("max_failures", max_failures, 1)
        self._audit = audit

        n_arms, n_fidelities = problem.n_arms, problem.n_fidelities
        self._bias = problem.bias
        self._epsilon = None if epsilon is None else check_nonnegative("epsilon", epsilon)
        if epsilon is None and isinstance(problem.noise, SubGaussian):
            self._epsilon = problem.noise.at(problem.target, n_fidelities)
        order = np.random.default_rng(seed).permutation(n_arms)
        self._pilot = Pilot(
            tuple(order.tolist()),
            check_count("pilot_arms", pilot_arms, 2),
            check_count("pilot_pulls", pilot_pulls, 2),
            self._compared_fidelities(),
        )

        # Bounds that are estimated may fail as well; they get their share of delta.
        self._bias_delta = _BIAS_SHARE * self.delta if problem.bias is None else 0.0
        n_compared = len(self._compared_fidelities())
        self._evidence = Evidence(
            problem,
            self.delta - self._bias_delta,
            n_compared,
            radius,
            adaptive=self._adaptive,
            variances=self._variances,
        )
        self._roster = Roster(n_arms)
        self._certificate: int | None = None
        self._cost = 0.0
        self.pulls = 0
        self._cost_sums: FloatArray = np.zeros(n_fidelities)
        self._cost_counts: IntArray = np.zeros(n_fidelities, dtype=np.int64)
        self._planned_costs: FloatArray | None = None
        self._n_pilot = 0
        self._piloting = self._epsilon is None or self._needs_bias_or_costs()
        if not self._piloting:
            self._freeze_costs()
            self._plan()
            self._judge_all()

    # What subclasses decide.

    # Whether what is pulled next depends on the values beyond who is still in the race.
    _adaptive = True

    # Whether the rules need upper bounds on the noise's variance.
    _variances = False

    # What a certificate rests on that was given while several arms were left.
    _certificate_reason = "no other arm can be better by more than epsilon"

    def _compared_fidelities(self) -> tuple[int, ...]:
        """Fidelities at which arms may be compared: the union bound is over these."""
        return tuple(range(self.problem.n_fidelities))

    def _needs_bias_or_costs(self) -> bool:
        """Whether the race needs a pilot to find out bias bounds or costs."""
        return self.problem.bias is None or self.problem.costs is None

    def _kind(self) -> Kind:
        """Kind of bias bound to estimate when none is declared."""
        return "max"

    @abc.abstractmethod
    def _plan(self) -> None:
        """Derive what the race needs from the bias bounds and the costs; again when they change."""

    def _take_note(self, arm: int) -> None:
        """Take note of a pull with a value, before the rules are applied."""

    @abc.abstractmethod
    def _judge(self, fidelity: int) -> None:
        """Apply the rules that eliminate and certify, after what was seen at one fidelity."""

    def _surest_arm(self) -> int:
        """The best answer before the end, when arms are left."""
        return surest_arm(self._evidence, self.active)

    def _judge_all(self) -> None:
        """Apply the rules to all that is known."""
        for fidelity in range(self.problem.n_fidelities):
            self._judge(fidelity)

    @abc.abstractmethod
    def _reinstate(self) -> None:
        """Put back the arms whose elimination rested on bias bounds that were widened."""

    @abc.abstractmethod
    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        """The next pull after the pilot, given counts (K, M) that include what is under way."""

    @abc.abstractmethod
    def _explored_fidelity(self) -> int:
        """The fidelity being explored, after the pilot."""

    # The contract.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`)."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        counts = self._evidence.counts
        if pending:
            counts = counts.copy()
            for pull in pending:
                self._check(pull)
                counts[pull.arm, pull.fidelity] += 1
        if n > 1:
            counts = counts.copy()
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
        self._check(pull)
        arm, fidelity = int(pull.arm), int(pull.fidelity)
        self._pay(fidelity, observation.cost)
        if observation.value is None or not observation.has_value:
            self._roster.failures[arm] += 1
            failures = int(self._roster.failures[arm])
            if failures >= self._max_failures and not self._roster.withdrawn[arm]:
                warnings.warn(
                    f"{self.labels.arm(arm)} leaves the race: {failures} pulls in a row gave no "
                    f"value (they failed, were pruned or ran out of time), the last at "
                    f"{self.labels.fidelity(fidelity)}; mend the objective for this "
                    f"configuration, or raise max_failures={self._max_failures}",
                    ArmWithdrawnWarning,
                    stacklevel=2,
                )
                self.withdraw(arm)
            return
        self.pulls += 1
        self._roster.failures[arm] = 0
        self._evidence.add(arm, fidelity, float(observation.value))
        self._take_note(arm)
        if self._piloting:
            self._end_pilot()
            return
        if self._audit:
            self._audit_bias(fidelity)
        self._judge(fidelity)

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out of the race (see `Policy.withdraw`).

        The arms that it had eliminated come back, unless it is the same as another one.
        """
        self._check(Pull(arm, 0))
        if duplicate_of is None:
            self._roster.withdraw(arm)
        else:
            self._roster.merge(arm, duplicate_of)
        self._judge_anew()
        if self._piloting:
            self._end_pilot()

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Policy.finished`)."""
        if not self._roster.active.any():
            return True
        winner = self._winner
        if winner is not None and self._measured(winner):
            return True
        return math.isfinite(self.budget) and self._next_cost() > self.budget - self._cost

    def recommend(self) -> Recommendation:
        """The best answer so far (see `Policy.recommend`)."""
        arm, mean, interval, fidelity = self.leader()
        roster = self._roster
        certified = self._certified
        return Recommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=self.delta,
            epsilon=self.epsilon,
            finished=self.finished,
            certified=certified,
            reason=self._reason(arm),
            cost=self.cost,
            pulls=self.pulls,
            survivors=tuple(self.active.tolist()),
            compared=self.problem.n_arms - int((roster.withdrawn | roster.merged).sum()),
            assumptions=self._assumptions(),
            remaining_cost=0.0 if certified else self._remaining_cost(arm),
        )

    # What adapters show while the race runs.

    @property
    def bias(self) -> Bias | None:
        """The bias bounds in force, or None before they are estimated."""
        return self._bias

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 before it is found out."""
        return self._epsilon or 0.0

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self._cost

    @property
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,)."""
        return self._roster.arms

    @property
    def fidelity(self) -> int:
        """The fidelity being explored."""
        if self._piloting:
            return self._pilot.fidelities[0]
        return self._explored_fidelity()

    @property
    def piloting(self) -> bool:
        """Whether the pilot is still under way."""
        return self._piloting

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Arm, mean, interval at the target and fidelity of the mean of the best answer so far.

        The winner if there is one, else the arm that is surest to be good.
        """
        if not self._roster.active.any():
            return None, math.nan, (-math.inf, math.inf), 0
        winner = self._winner
        arm = self._surest_arm() if winner is None else winner
        seen = np.flatnonzero(self._evidence.counts[arm])
        if not seen.size:
            return arm, math.nan, (-math.inf, math.inf), 0
        highest = int(seen[-1])
        _, mean, _ = self.summary(arm, highest)
        return arm, mean, self.interval(arm), highest

    def interval(self, arm: int) -> tuple[float, float]:
        """Bounds on the arm's mean at the target fidelity, valid at all times with the others."""
        return self._evidence.interval(arm, self._bias)

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Count, mean and radius of what was observed of an arm at a fidelity."""
        return self._evidence.summary(arm, fidelity)

    # Several values at once, for simulations.

    def tell_sum(self, pull: Pull, count: int, total: float) -> None:
        """Learn several values of one pull at once, given their sum.

        The rules are then checked after all of them instead of after each, which leaves them
        valid: what they rest on holds at all times.

        Parameters
        ----------
        pull
            The pull.
        count
            Number of its values, at least 1; each is paid at the declared cost.
        total
            Their sum.

        Raises
        ------
        ValueError
            If something is left for a pilot to find out, or the rules depend on the spread of the
            values: then tell them one by one.
        """
        self._check(pull)
        check_count("count", count, 1)
        if self._piloting or self._evidence.depends_on_values or self.problem.costs is None:
            raise ValueError(
                "sums need declared bias, costs, epsilon and noise, and a radius that does not "
                "depend on the values; tell the values one by one."
            )
        arm = np.array([pull.arm])
        counts = self._evidence.counts[arm, pull.fidelity] + count
        sums = self._evidence.sums(arm, pull.fidelity) + total
        self._evidence.set_sums(arm, pull.fidelity, counts, sums)
        self.pulls += count
        self._roster.failures[pull.arm] = 0
        paid = count * self.problem.costs[pull.fidelity]
        self._cost += paid
        self._cost_sums[pull.fidelity] += paid
        self._cost_counts[pull.fidelity] += count
        self._take_note(pull.arm)
        if self._audit:
            self._audit_bias(pull.fidelity)
        self._judge(pull.fidelity)

    # The rules.

    def _check(self, pull: Pull) -> None:
        if not 0 <= pull.arm < self.problem.n_arms:
            raise ValueError(f"arm must be 0 to {self.problem.n_arms - 1}, got {pull.arm}.")
        if not 0 <= pull.fidelity <= self.problem.target:
            raise ValueError(f"fidelity must be 0 to {self.problem.target}, got {pull.fidelity}.")

    def _next_pull(self, counts: IntArray) -> Pull | None:
        arms = self.active
        if not arms.size:
            return None
        if self._piloting:
            return self._next_pilot_pull(counts, arms)
        winner = self._winner
        if winner is not None:
            return Pull(winner, self.problem.target)
        return self._race_pull(counts, arms)

    def _next_pilot_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        missing = self._pilot.missing(counts, self._roster.active)
        if missing:
            return missing[0]
        cheapest = self._pilot.fidelities[0]
        first = arms[np.argmin(counts[arms, cheapest])]
        if counts[first, cheapest] < self._pilot.n_pulls:
            return Pull(int(first), cheapest)
        # What is left is under way and may never come: pull it once more.
        return self._pilot.missing(self._evidence.counts, self._roster.active)[0]

    def _next_cost(self) -> float:
        pull = self._next_pull(self._evidence.counts)
        return 0.0 if pull is None else self._declared_cost(pull.fidelity)

    @property
    def _winner(self) -> int | None:
        if self._certificate is not None:
            return self._certificate
        arms = self.active
        return int(arms[0]) if len(arms) == 1 and not self._piloting else None

    @property
    def _certified(self) -> bool:
        """Whether there is a winner, measured, that was compared with something."""
        winner = self._winner
        if winner is None or not self._measured(winner):
            return False
        return self._certificate is not None or not self._alone

    @property
    def _alone(self) -> bool:
        """Whether one arm is left because all the others left without a comparison."""
        roster = self._roster
        return bool(roster.withdrawn.any() and not roster.eliminated.any())

    def _measured(self, arm: int) -> bool:
        return bool(self._evidence.counts[arm, self.problem.target] >= self._measure)

    def _judge_anew(self) -> None:
        """Apply the rules to all that is known, after arms came back."""
        self._certificate = None
        if not self._piloting:
            self._judge_all()

    # What is found out on the way.

    def _end_pilot(self) -> None:
        """Settle what was unknown, once the pilot has all its pulls."""
        active = self._roster.active
        if not active.any() or self._pilot.missing(self._evidence.counts, active):
            return
        if self._bias is None:
            level = self._bias_delta / max(1, self.problem.n_fidelities - 1)
            self._bias = self._pilot.bias(self._evidence, active, self._kind(), level)
        if self._epsilon is None:
            scale = self._evidence.noise_scale(self.problem.target)
            self._epsilon = scale if math.isfinite(scale) else 0.0
        self._piloting = False
        self._n_pilot = len(self._pilot.arms(active))
        self._freeze_costs()
        self._plan()
        if self._audit:
            for fidelity in range(self.problem.n_fidelities):
                self._audit_bias(fidelity)
        self._judge_all()

    def _freeze_costs(self) -> None:
        """Take the costs as they are known now: what is derived from them must not drift."""
        paid = np.array([self._declared_cost(m) for m in range(self.problem.n_fidelities)])
        # A coarse clock measures 0; a fidelity must not be pulled for ever for being free.
        paid[paid == 0.0] = 1e-3 * paid.max() if paid.any() else 1.0
        self._planned_costs = paid

    def _audit_bias(self, fidelity: int) -> None:
        """Widen the bias bounds where observations contradict them (`find_contradiction`)."""
        assert self._bias is not None
        counts = self._evidence.counts
        seen = np.flatnonzero((counts[:, fidelity] > 0) & ((counts > 0).sum(axis=1) > 1))
        if not seen.size:
            return
        n_fidelities = self.problem.n_fidelities
        means = np.stack([self._evidence.means(seen, m) for m in range(n_fidelities)], axis=1)
        radii = np.stack([self._evidence.half_widths(seen, m) for m in range(n_fidelities)], axis=1)
        contradicted = False
        while found := find_contradiction(self._bias, fidelity, means, radii, seen.tolist()):
            contradicted = True
            warnings.warn(found.describe(self.labels), BiasContradictedWarning, stacklevel=3)
            self._bias = self._bias.widened(found.fidelity, found.widened_to)
        if not contradicted:
            return
        self._plan()
        self._reinstate()
        self._judge_anew()

    def _pay(self, fidelity: int, cost: float | None) -> None:
        if cost is not None:
            cost = check_nonnegative("cost", float(cost))
        else:
            if self.problem.costs is None:
                raise ValueError("cost=None: the problem's costs are measured; tell what was paid.")
            cost = self.problem.costs[fidelity]
        self._cost += cost
        self._cost_sums[fidelity] += cost
        self._cost_counts[fidelity] += 1

    def _declared_cost(self, fidelity: int) -> float:
        """Cost of a pull: declared, or the mean of what was paid (0 before the first)."""
        if self.problem.costs is not None:
            return self.problem.costs[fidelity]
        return float(self._cost_sums[fidelity] / max(1, self._cost_counts[fidelity]))

    # Words and guesses.

    def _reason(self, arm: int | None) -> str:
        if arm is None:
            return "every arm failed and left the race"
        winner = self._winner
        if winner is None:
            reason = f"{len(self.active)} arms are not told apart yet"
            if self._piloting:
                reason = "the pilot is not complete"
        elif not self._measured(winner):
            reason = "the winner's value at the target is still being measured"
        elif self._certificate is not None:
            return self._certificate_reason
        elif self._alone:
            return "every other arm left without being compared, because its pulls gave no value"
        elif self._roster.eliminated.any():
            return "every other arm was eliminated"
        else:
            return "the only arm"
        return f"the budget of {self.budget:g} is spent and {reason}" if self.finished else reason

    def _assumptions(self) -> tuple[str, ...]:
        parts = [self._evidence.assumption]
        if len(self._compared_fidelities()) > 1:
            parts.append(bias_in_words(self._bias, self._n_pilot))
        if self._roster.withdrawn.any():
            gone = ", ".join(map(self.labels.arm, np.flatnonzero(self._roster.withdrawn).tolist()))
            parts.append(f"not compared, because their pulls gave no value: {gone}")
        return tuple(parts)

    def _remaining_cost(self, leader: int | None) -> float | None:
        if leader is None or self._piloting:
            return None
        target = self.problem.target
        winner = self._winner
        if winner is None:
            missing = remaining_pulls(self._evidence, self.active, leader, self.epsilon)
        else:
            missing = self._measure - int(self._evidence.counts[winner, target])
        if math.isnan(missing):
            return None
        return missing if math.isinf(missing) else missing * self._declared_cost(target)

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Everything learned so far (see `Policy.state_dict`)."""
        return {
            "evidence": self._evidence.state_dict(),
            "roster": self._roster.state_dict(),
            "cost_sums": self._cost_sums.tolist(),
            "cost_counts": self._cost_counts.tolist(),
            "bias": None
            if self._bias is None
            else {
                "kind": self._bias.kind,
                "bounds": list(self._bias.bounds),
                "source": self._bias.source,
            },
            "epsilon": self._epsilon,
            "planned_costs": None if self._planned_costs is None else self._planned_costs.tolist(),
            "piloting": self._piloting,
            "n_pilot": self._n_pilot,
            "certificate": self._certificate,
            "cost": self.cost,
            "pulls": self.pulls,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        self._evidence.load_state_dict(state["evidence"])
        self._roster.load_state_dict(state["roster"])
        self._cost_sums = np.asarray(state["cost_sums"], dtype=np.float64)
        self._cost_counts = np.asarray(state["cost_counts"], dtype=np.int64)
        bias = state["bias"]
        self._bias = bias and Bias(bias["kind"], tuple(bias["bounds"]), bias["source"])
        self._epsilon = state["epsilon"]
        costs = state["planned_costs"]
        self._planned_costs = None if costs is None else np.asarray(costs, dtype=np.float64)
        self._piloting = bool(state["piloting"])
        self._n_pilot = int(state["n_pilot"])
        certificate = state["certificate"]
        self._certificate = None if certificate is None else int(certificate)
        self._cost = float(state["cost"])
        self.pulls = int(state["pulls"])
        if not self._piloting:
            self._plan()
