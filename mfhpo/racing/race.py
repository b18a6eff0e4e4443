"""A race: arms are pulled by a rule's proposals, and leave by its verdicts, until one is left."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from mfhpo._validation import (
    MOST_AT_ONCE,
    check_choice,
    check_count,
    check_index,
    check_instance,
    check_limit,
    check_nonnegative,
    check_probability,
    check_seed,
)
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import Radius
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import (
    Labels,
    Observation,
    Policy,
    Problem,
    Pull,
    Recommendation,
    check_pull,
    check_pulls,
)
from mfhpo.racing.course import ArmWithdrawnWarning, Course, Pilot
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.extra_pulls import is_short_at_target, lacking, pull_to_audit
from mfhpo.racing.options import EstimatedBias, only_steers
from mfhpo.racing.rule import Costs, Expected, Known, Roster, Rule
from mfhpo.racing.words import answer

# Of delta, the share that pays for bias bounds that are estimated by the pilot.
_BIAS_SHARE = 0.5

__all__ = ["ArmWithdrawnWarning", "Race", "only_steers"]


class Race(Policy):
    """A race of arms that a rule decides; `IISE` and its like are races with a rule of their own.

    A race for the best arm ends with one arm, or with a certificate for one.

    Parameters
    ----------
    problem
        What is known. Whatever is None there is found out by a pilot before the race.
    rule
        What decides (see `mfhpo.racing.rule.Rule`).
    delta, budget, pilot_arms, pilot_pulls, estimated_bias
        See `mfhpo.racing.options.BestArmOptions`.
    epsilon, measure, max_failures
        See `mfhpo.racing.options.BestArmOptions`.
    radius
        Confidence radius, or one per fidelity. None: the tightest one whose assumptions hold for
        ``problem.noise``.
    audit
        Whether to compare what is observed with what was declared, and to widen what is
        contradicted. A race ends only after some 8 repeats at each fidelity that it has values of,
        which show whether sigma holds. The winner (with order bounds, also its closest rival) is
        evaluated until a bias half as large again as its bound is mostly found, if that takes at
        most half of what the race costs. Where the noise is taken for normal, a race ends only
        after 17 values of its winner (at delta = 0.05). "bias": sigma is believed, and nothing is
        waited for.
    seed
        Chooses the pilot's arms.
    """

    def __init__(
        self,
        problem: Problem,
        rule: Rule,
        *,
        epsilon: float | None = 0.0,
        measure: int = 0,
        audit: bool | Literal["bias"] = True,
        estimated_bias: EstimatedBias = "steer",
        delta: float = 0.05,
        budget: float | None = None,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        radius: Radius | Sequence[Radius] | None = None,
        seed: int = 0,
    ) -> None:
        needs = rule.needs
        target_only = only_steers(problem, estimated_bias) or needs.target_only
        check_choice("audit", audit, (True, False, "bias"))
        if epsilon is not None:
            epsilon = check_nonnegative("epsilon", epsilon)
        elif isinstance(problem.noise, SubGaussian):
            epsilon = problem.noise.at(problem.target, problem.n_fidelities)
        if target_only:
            problem = replace(problem, bias=Bias.order(*[0.0] * problem.n_fidelities))
        levels = slice(problem.target if target_only else 0, problem.n_fidelities)
        compared = tuple(range(problem.n_fidelities))[levels]
        pilots = needs.pilot
        estimates = problem.bias is None if needs.estimates_bias is None else needs.estimates_bias
        if pilots is None:
            is_unknown = problem.bias is None or problem.costs is None
            pilots = epsilon is None or (is_unknown and not target_only)
        # Bounds that are estimated may fail as well, and get their share of delta.
        delta = check_probability("delta", delta)
        bias_level = _BIAS_SHARE * delta if estimates else 0.0
        self.problem, self.delta, self.seed = problem, delta, check_seed(seed)
        self.rule, self.certifies = rule, needs.certifies
        self.known = Known(
            problem=problem,
            needs=needs,
            spending=Costs(problem, check_limit("budget", budget, "")),
            delta=self.delta,
            seed=self.seed,
            target_only=target_only,
            compared=compared,
            levels=levels,
            evidence=Evidence(
                problem,
                self.delta - bias_level,
                compared,
                radius,
                variances=needs.variances,
                audit=audit is True,
                expects_spread=needs.intake is None,
            ),
            roster=Roster(problem.n_arms),
            bias=problem.bias,
            bias_level=bias_level,
            found_epsilon=epsilon,
            piloting=pilots,
            audits_bias=bool(audit) and needs.certifies and not target_only,
            measure=check_count("measure", measure, 0),
            # A single arm is compared with nothing, whatever the noise.
            waits=audit is True and problem.n_arms > 1 and needs.waits,
            max_failures=check_count("max_failures", max_failures, 1),
            failures=np.zeros((problem.n_arms, problem.n_fidelities), dtype=np.int64),
            stops=np.zeros((problem.n_arms, problem.n_fidelities), dtype=np.int64),
        )
        pilot = Pilot(
            tuple(np.random.default_rng(seed).permutation(problem.n_arms).tolist()),
            check_count("pilot_arms", pilot_arms, 2),
            check_count("pilot_pulls", pilot_pulls, 2, MOST_AT_ONCE),
            needs.pilot_at or compared,
        )
        self.course = Course(self.known, rule, pilot)
        if not pilots:
            self.course.begin()

    # What hosts set.

    @property
    def labels(self) -> Labels:
        """Names of arms and fidelities in warnings and answers."""
        return self.known.labels

    @labels.setter
    def labels(self, labels: Labels) -> None:
        self.known.labels = labels

    @property
    def most_blocks(self) -> int | None:
        """Number of replicates, where pulls carry blocks; None: as many as wanted."""
        return self.known.most_blocks

    @most_blocks.setter
    def most_blocks(self, most: int | None) -> None:
        self.known.most_blocks = most

    @property
    def replicates(self) -> int | None:
        """Number of the replicates that the claim is about; None where they have no end."""
        return self.known.needs.replicates(self.known)

    def is_repeat(self, pull: Pull) -> bool:
        """Tell whether a pull is wanted although its arm has a value in its block."""
        return (pull.arm, pull.block) in self.known.needs.repeats(self.known)

    def stop_measuring(self) -> None:
        """Be content with the winner's target pulls and with repeats, however few they are."""
        known, winner = self.known, self.known.winner
        known.waits_for_repeats = False
        if winner is not None:
            pulled = int(known.evidence.counts[winner, self.problem.target])
            known.measure = min(known.measure, pulled)
            known.duel = ()

    # Asking.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`)."""
        check_count("n", n, 1, MOST_AT_ONCE)
        pending = check_pulls(pending, self.problem)
        counts = self.known.evidence.counts
        expected = Expected(counts.copy() if pending or n > 1 else counts)
        for under_way in pending:
            expected.add(under_way)
        pulls: list[Pull] = []
        while len(pulls) < n and (pull := self._next_pull(expected)) is not None:
            pulls.append(pull)
            if n > 1:
                expected.add(pull)
        return pulls

    def _next_pull(self, expected: Expected) -> Pull | None:
        known, arms, seen = self.known, self.known.arms, self.known.evidence.counts
        if not arms.size:
            return None
        if known.piloting:
            return self.course.pilot.next_pull(expected.counts, seen, known.roster.active)
        winner = known.winner
        if winner is not None and not known.needs.proposes_to_the_end:
            if missing := lacking(known, winner):
                is_short = is_short_at_target(known, winner)
                cheapest = min(missing, key=known.spending.of)
                return Pull(winner, self.problem.target if is_short else cheapest)
            pull = pull_to_audit(known, winner, seen, self._left)
            if pull is not None:
                return pull
            counts = expected.counts[:, self.problem.target]
            return Pull(min(known.duel or (winner,), key=counts.__getitem__), self.problem.target)
        if winner is None and len(arms) > 1 and (leader := known.needs.audited()) is not None:
            pull = pull_to_audit(known, leader, expected.counts, self._left)
            if pull is not None:
                return pull
        return self.rule.propose(known, expected)

    @property
    def is_measuring(self) -> bool:
        """True if the race goes on although it has a winner."""
        known, winner = self.known, self.known.winner
        if winner is None:
            return False
        if lacking(known, winner):
            return True
        return pull_to_audit(known, winner, known.evidence.counts, self._left) is not None

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`); in blocks, an arm's first in each."""
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        check_pull(pull, self.problem)
        self.course.tell(pull, observation)

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out of the race (see `Policy.withdraw`).

        The arms that it had eliminated come back, unless it is the same as another one.
        """
        check_index("arm", arm, self.problem.n_arms)
        if duplicate_of is None:
            self.known.roster.withdraw(arm)
        elif check_index("duplicate_of", duplicate_of, self.problem.n_arms) == arm:
            raise ValueError(f"duplicate_of must be another arm than arm {arm}.")
        else:
            self.known.roster.merge(arm, duplicate_of)
        self.course.go_on()

    def rule_out(self, arm: int) -> None:
        """Take an arm out for good whose mean is -inf, the worst there is.

        The arms that it had eliminated come back.
        """
        check_index("arm", arm, self.problem.n_arms)
        self.known.roster.rule_out(arm)
        self.course.go_on()

    # What is known so far.

    @property
    def bias(self) -> Bias | None:
        """The bias bounds in force; None before they are estimated."""
        return self.known.bias

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 before it is found out, and where there is none."""
        return self.known.epsilon

    @property
    def budget(self) -> float:
        """The largest total cost, infinite without one."""
        return self.known.spending.budget

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self.known.spending.paid

    @property
    def pulls(self) -> int:
        """Number of values so far."""
        return self.known.pulls

    @property
    def counts(self) -> IntArray:
        """Number of values of every arm at every fidelity, shape (K, M)."""
        return self.known.evidence.counts.copy()

    @property
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,)."""
        return self.known.arms

    @property
    def piloting(self) -> bool:
        """True if what was not declared is still being found out."""
        return self.known.piloting or self.known.found_epsilon is None

    @property
    def fidelity(self) -> int:
        """The fidelity of the next pull; of the first one, or the target, when there is none."""
        pull = self._next_pull(Expected(self.known.evidence.counts))
        if pull is None:
            return self.problem.target if self.certifies else 0
        return pull.fidelity

    @property
    def winner(self) -> int | None:
        """The arm that the race has ended with, whose value may still be measured; or None."""
        return self.known.winner

    @property
    def finished(self) -> bool:
        """True if the race is over (see `Policy.finished`)."""
        known, has_won = self.known, self.known.winner is not None
        if not known.arms.size or (has_won and not self.is_measuring and not known.duel):
            return True
        if (not has_won and known.hides_noise) or known.needs.end(known):
            return True
        if known.spending.all().max() <= self._left:
            return False
        pull = self._next_pull(Expected(known.evidence.counts))
        return pull is not None and known.spending.of(pull.fidelity) > self._left

    @property
    def _left(self) -> float:
        return self.known.spending.budget - self.known.spending.paid - self.held_cost

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return the best answer so far in short (see `Policy.leader`)."""
        known, arm = self.known, self.known.winner
        if arm is None and known.arms.size:
            arm = known.needs.leader(known)
        seen = np.flatnonzero(known.evidence.counts[arm]).tolist() if arm is not None else []
        if arm is None or not seen:
            return arm, math.nan, (-math.inf, math.inf), 0
        _, mean, _ = self.summary(arm, seen[-1])
        return arm, mean, self.interval(arm), seen[-1]

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on an arm's mean at the target, valid at all times with the others."""
        known = self.known
        if known.needs.summary is None:
            return known.evidence.interval(arm, known.bias)
        _, mean, radius = self.summary(arm, self.problem.target)
        return mean - radius, mean + radius

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and confidence radius of an arm at a fidelity."""
        check_pull(Pull(arm, fidelity), self.problem)
        known, at_target = self.known, fidelity == self.problem.target
        count, mean, radius = known.evidence.summary(arm, fidelity)
        if known.needs.summary is None:
            return count, mean, radius
        return (at_target and known.needs.summary(known, arm)) or (count, mean, math.inf)

    def recommend(self) -> Recommendation:
        """Return the best answer so far (see `Policy.recommend`)."""
        return answer(self.known, self.leader(), self.finished, self.is_measuring, self.provisos)
