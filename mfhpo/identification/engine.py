"""The engine behind the elimination policies: who is pulled next, who leaves, when it ends.

Paper 003 (Poiani, Metelli, Restelli, "Multi-Fidelity Best-Arm Identification", NeurIPS 2022):
Algorithm 1 and the epsilon-optimal stop of Section 4.3. An arm's radius depends on its own count
at a fidelity, so that every decision stays valid when pulls arrive late, out of order, twice or
never.
"""

from __future__ import annotations

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
from mfhpo.identification.rounds import Rounds, first_eliminations
from mfhpo.identification.thresholds import (
    convenience_thresholds,
    costs_of_precision,
    select_fidelities,
)
from mfhpo.noise import SubGaussian
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Problem, Pull, Recommendation

__all__ = ["ArmWithdrawnWarning", "Elimination"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


# Of delta, the share that pays for bias bounds that are estimated by the pilot.
_BIAS_SHARE = 0.5


class ArmWithdrawnWarning(UserWarning):
    """An arm left the race because its pulls kept failing."""


class Elimination(Policy):
    """The engine that the elimination policies share.

    Fidelities are explored from the cheapest to the dearest. At each, all remaining arms are
    pulled in turn; arm i leaves when some arm's lower bound exceeds i's upper bound by the margin
    of the fidelity (2 xi_m or gamma_m). A fidelity is done with once four times the radius is at
    most its threshold alpha_m. The race ends with one arm, or when the leader is within epsilon
    of every other.

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
        failure, but an elimination cannot learn from it either, so it counts here too.
    pilot_arms, pilot_pulls
        Size of the pilot: arms, and pulls of each at every fidelity.
    audit
        Whether to compare what is observed at different fidelities with the bias bounds, and to
        widen the bounds where they are contradicted. It cannot see all: an arm that left at a
        cheap fidelity was never seen at a dearer one.
    preselect
        Whether to keep only fidelities that satisfy Assumption 1.
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
        preselect: bool = True,
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
        self._preselect = preselect

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
        self._evidence = Evidence(problem, self.delta - self._bias_delta, n_compared, radius)
        self._roster = Roster(n_arms)
        self._certificate: tuple[int, int] | None = None
        self._cost = 0.0
        self.pulls = 0
        self._cost_sums: FloatArray = np.zeros(n_fidelities)
        self._cost_counts: IntArray = np.zeros(n_fidelities, dtype=np.int64)
        self._planned_costs: FloatArray | None = None
        self._n_pilot = 0
        self._piloting = self._epsilon is None or self._needs_bias_or_costs()
        if not self._piloting:
            self._plan()
            self._refresh_all()

    # What subclasses decide.

    def _compared_fidelities(self) -> tuple[int, ...]:
        """Fidelities at which arms may be eliminated: the union bound is over these."""
        return tuple(range(self.problem.n_fidelities))

    def _needs_bias_or_costs(self) -> bool:
        """Whether the race needs a pilot to find out bias bounds or costs."""
        return self.problem.bias is None or self.problem.costs is None

    def _kind(self) -> Kind:
        """Kind of bias bound to estimate when none is declared."""
        return "order"

    def _elimination_margins(self, bias: Bias) -> FloatArray:
        """By how much a lower bound must exceed an upper bound at each fidelity, shape (M,)."""
        return np.array(bias.margins)

    def _choose_fidelities(self, margins: FloatArray, costs: FloatArray) -> BoolArray:
        return select_fidelities(margins, costs, self._preselect)

    def _thresholds(self, margins: FloatArray, costs: FloatArray) -> FloatArray:
        """Thresholds of the chosen fidelities, the last of them 0."""
        return convenience_thresholds(margins, costs, self.epsilon)

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
        if self._piloting:
            self._end_pilot()
            return
        if self._audit:
            self._audit_bias(fidelity)
        self._refresh(fidelity)

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
        return self._phase(self._evidence.counts, self.active)

    @property
    def piloting(self) -> bool:
        """Whether the pilot is still under way."""
        return self._piloting

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Arm, mean, interval at the target and fidelity of the mean of the best answer so far.

        The winner if there is one, else the arm that is surest to be good (`surest_arm`).
        """
        if not self._roster.active.any():
            return None, math.nan, (-math.inf, math.inf), 0
        winner = self._winner
        arm = surest_arm(self._evidence, self.active) if winner is None else winner
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

    # Blocks of rounds, for simulations.

    def plan_rounds(self) -> Rounds:
        """What to pull next when all remaining arms are pulled the same number of times.

        Raises
        ------
        ValueError
            If something is left for a pilot to find out, the radius depends on the values, there
            is a budget, or arms were pulled unequally: then use `ask` and `tell`.
        """
        arms = self.active
        if self._piloting or self._evidence.depends_on_values:
            raise ValueError(
                "rounds need declared bias, costs, epsilon and noise, and a radius that does not "
                "depend on the values; use ask and tell."
            )
        if math.isfinite(self.budget):
            raise ValueError(f"rounds need budget=None, got {self.budget:g}; use ask and tell.")
        winner = self._winner
        if winner is not None:
            target = self.problem.target
            done = int(self._evidence.counts[winner, target])
            return Rounds(target, np.array([winner]), done, max(self._measure, done + 1))
        fidelity = self._phase(self._evidence.counts, arms)
        counts = self._evidence.counts[arms, fidelity]
        if counts.min() != counts.max():
            raise ValueError("rounds need equal counts of all remaining arms; use ask and tell.")
        return Rounds(fidelity, arms, int(counts[0]), self._phase_length(fidelity))

    def running_sums(self, fidelity: int, arms: IntArray) -> FloatArray:
        """Sums of the values of the arms at a fidelity so far, shape (n,)."""
        return self._evidence.sums(arms, fidelity)

    def tell_rounds(self, totals: IntArray, sums: FloatArray) -> None:
        """Tell several rounds at once; the same as telling them one by one, but fast.

        Parameters
        ----------
        totals
            Pulls of each remaining arm after each round, shape (T,), increasing; steps of more
            than one check the rule less often, which keeps it valid.
        sums
            Sum of the first ``totals[t]`` values of each arm of `plan_rounds`, shape (n, T).
            Columns after the end of the race are ignored.
        """
        plan = self.plan_rounds()
        fidelity, arms = plan.fidelity, plan.arms
        half = self._evidence.radius_after(totals, fidelity)
        margin = float(self._margins[fidelity])
        means = sums / totals
        if len(arms) > 1:
            exits, by, excess, end = first_eliminations(means, half, margin, self.epsilon)
        else:
            exits = by = np.array([-1])
            excess, end = np.zeros(1), len(totals) - 1
        last = np.where(exits >= 0, exits, end)
        pulled = totals[last] - plan.done
        final = sums[np.arange(len(arms)), last]
        self._evidence.set_sums(arms, fidelity, totals[last], final)
        self.pulls += int(pulled.sum())
        self._cost += float(pulled.sum()) * self._declared_cost(fidelity)
        gone = exits >= 0
        self._roster.eliminate(arms[gone], fidelity, arms[by[gone]], excess[gone])
        if self._audit:
            self._audit_bias(fidelity)
        self._refresh(fidelity)

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
        fidelity = self._phase(counts, arms)
        reached = self._phase(self._evidence.counts, arms)
        if fidelity != reached and counts[arms, fidelity].all():
            # All that is left of the phase is under way. One pull of each arm ahead of it is
            # work worth doing; more would only hide that one of those pulls may never come.
            fidelity, counts = reached, self._evidence.counts
        behind = arms[~self._settled(counts, arms, fidelity)]
        return Pull(int(behind[np.argmin(counts[behind, fidelity])]), fidelity)

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

    def _phase_length(self, fidelity: int) -> int | None:
        """Pulls after which every arm is known well enough there; None at the last fidelity."""
        if fidelity == self._fidelities[-1]:
            return None
        if fidelity not in self._phase_lengths:
            length = float(self._evidence.pulls_until(fidelity, self._alpha[fidelity] / 4.0))
            self._phase_lengths[fidelity] = int(length) if math.isfinite(length) else None
        return self._phase_lengths[fidelity]

    def _phase(self, counts: IntArray, arms: IntArray) -> int:
        """The first fidelity that some remaining arm is not done with."""
        for fidelity in self._fidelities[:-1]:
            if not self._settled(counts, arms, fidelity).all():
                return fidelity
        return self._fidelities[-1]

    def _settled(self, counts: IntArray, arms: IntArray, fidelity: int) -> BoolArray:
        """Which arms are known well enough at a fidelity: 4 B <= alpha_m (Algorithm 1)."""
        if fidelity == self._fidelities[-1]:
            return np.zeros(len(arms), dtype=bool)
        half = self._evidence.half_widths(arms, fidelity, counts[arms, fidelity])
        return np.asarray(4.0 * half <= self._alpha[fidelity])

    def _refresh(self, fidelity: int) -> None:
        """Apply the elimination rule and the stop at one fidelity."""
        arms = self.active
        if len(arms) < 2 or self._winner is not None:
            return
        means = self._evidence.means(arms, fidelity)
        half = self._evidence.half_widths(arms, fidelity)
        upper = means + half
        best = int(np.argmax(means - half))
        excess = means[best] - half[best] - upper
        others = np.arange(len(arms)) != best
        margin = self._margins[fidelity]
        gone = others & (excess >= margin)
        if gone.any():
            self._roster.eliminate(arms[gone], fidelity, int(arms[best]), excess[gone])
        close = others & ~gone
        if self.epsilon > 0.0 and close.any() and (excess[close] + self.epsilon >= margin).all():
            self._certificate = (int(arms[best]), fidelity)

    def _refresh_all(self) -> None:
        for fidelity in range(self.problem.n_fidelities):
            self._refresh(fidelity)

    @property
    def _winner(self) -> int | None:
        if self._certificate is not None:
            return self._certificate[0]
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
            self._refresh_all()

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
        self._plan()
        if self._audit:
            for fidelity in range(self.problem.n_fidelities):
                self._audit_bias(fidelity)
        self._refresh_all()

    def _plan(self) -> None:
        """Derive margins, fidelities and thresholds from the bias bounds and the costs."""
        assert self._bias is not None
        if self._planned_costs is None:
            # What was measured is frozen here: thresholds must not drift during the race.
            paid = np.array([self._declared_cost(m) for m in range(self.problem.n_fidelities)])
            # A coarse clock measures 0; a phase must not go on for ever for being free.
            paid[paid == 0.0] = 1e-3 * paid.max() if paid.any() else 1.0
            self._planned_costs = costs_of_precision(paid, self._declared_scales())
        costs = self._planned_costs
        self._margins = self._elimination_margins(self._bias)
        kept = np.flatnonzero(self._choose_fidelities(self._margins, costs))
        kept = kept[np.argsort(costs[kept])]
        self._fidelities: list[int] = kept.tolist()
        self._alpha = np.full(len(costs), np.inf)
        self._phase_lengths: dict[int, int | None] = {}
        self._alpha[kept] = self._thresholds(self._margins[kept], costs[kept])

    def _declared_scales(self) -> FloatArray:
        """Noise scales as declared, shape (M,); ones where none are.

        An estimate from a pilot's few repeats would do more harm than good here.
        """
        noise, n_fidelities = self.problem.noise, self.problem.n_fidelities
        if not isinstance(noise, SubGaussian):
            return np.ones(n_fidelities)
        return np.array([noise.at(m, n_fidelities) for m in range(n_fidelities)])

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
        self._roster.restore_unsupported(self._margins)
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
            return "its lower bound is within epsilon of every remaining arm's upper bound"
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
            "certificate": None if self._certificate is None else list(self._certificate),
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
        self._certificate = certificate and (int(certificate[0]), int(certificate[1]))
        self._cost = float(state["cost"])
        self.pulls = int(state["pulls"])
        if not self._piloting:
            self._plan()
