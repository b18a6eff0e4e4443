"""A race: arms are pulled by a rule's proposals, and leave by its verdicts, until one is left.

An arm's radius depends on its own count at a fidelity. So decisions stay valid when pulls arrive
late, out of order or never, if that says nothing about their values. Otherwise the pulls of a pair
must be told in the order in which they were begun.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

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
from mfhpo.knowledge.noise import NoiseContradictedWarning, SubGaussian, within_range
from mfhpo.policy import Labels, Policy, check_pull, check_pulls
from mfhpo.problem import Observation, Problem, Pull, Recommendation
from mfhpo.racing.answer import leads, lost_leader, not_compared, unseen
from mfhpo.racing.claims import outcomes_in_words
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.options import EstimatedBias
from mfhpo.racing.parts.bias_audits import BiasAudits
from mfhpo.racing.parts.costs import Costs
from mfhpo.racing.parts.failures import fails_too_often
from mfhpo.racing.parts.measuring import Measuring
from mfhpo.racing.parts.pilot import Pilot
from mfhpo.racing.parts.words import Speaker
from mfhpo.racing.roster import Roster
from mfhpo.racing.rule import Expected, Known, Needs, Rule

# Of delta, the share that pays for bias bounds that are estimated by the pilot.
_BIAS_SHARE = 0.5

# A race in which so many repeats, and one for each arm, were all equal will never tell arms apart.
_REPEATS_TO_SEE_NOISE = 10


class ArmWithdrawnWarning(UserWarning):
    """An arm left the race because too many of its pulls failed."""


def only_steers(problem: Problem, estimated_bias: EstimatedBias = "steer") -> bool:
    """Tell whether cheap fidelities are no evidence, for lack of bias bounds."""
    check_instance("problem", problem, Problem, "a mfhpo.Problem")
    return problem.bias is None and estimated_bias == "steer"


class Race(Policy):
    """A race of arms that a rule decides; `IISE` and its like are races with a rule of their own.

    What is not declared is found out by a pilot, whose arms the seed chooses. Then the rule decides
    what to pull and who is out; a race for the best arm ends with one arm, or with a certificate
    for one.

    Parameters
    ----------
    problem
        What is known. Whatever is None there is found out by a pilot before the race.
    rule
        What decides (see `mfhpo.racing.rule.Rule`).
    needs
        What the rule needs from the race.
    delta, budget, pilot_arms, pilot_pulls, estimated_bias
        See `mfhpo.racing.options.BestArmOptions`.
    epsilon
        See `mfhpo.racing.options.BestArmOptions`. The default asks for the best arm itself.
    measure
        See `mfhpo.racing.options.BestArmOptions`. The default asks for no evaluations beyond those
        that decide.
    max_failures
        See `mfhpo.racing.options.BestArmOptions`. A timeout counts as a failure.
    radius
        Confidence radius, or one per fidelity. None: the tightest one whose assumptions hold for
        ``problem.noise``.
    audit
        Whether to compare what is observed with what was declared, and to widen what is
        contradicted: the values' spread with sigma (a race then ends only after some 8 repeats at
        each fidelity that it has values of), and the values at different fidelities with the bias
        bounds. Where the noise is taken for normal, a race ends only after 17 values of its winner
        (at delta = 0.05). So many show any outcome as frequent as one in six. Where bias bounds are
        declared, the winner (with order bounds, also its closest rival) is evaluated at cheap
        fidelities and at the target until a bias half as large again as its bound is mostly found;
        `MFTopTwo` and `MFGrad` begin with that on the way. This takes at most half of what the race
        costs. It is left out where it takes more than 60 evaluations at the target, as for bounds
        far below the noise. An arm that left at a cheap fidelity is not evaluated at a dearer one.
        "bias": sigma is believed, and nothing is waited for.
    seed
        Chooses the pilot's arms.
    """

    def __init__(
        self,
        problem: Problem,
        rule: Rule,
        needs: Needs,
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
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        check_choice("estimated_bias", estimated_bias, get_args(EstimatedBias))
        measure = check_count("measure", measure, 0)
        check_choice("audit", audit, (True, False, "bias"))
        if epsilon is not None:
            epsilon = check_nonnegative("epsilon", epsilon)
        elif isinstance(problem.noise, SubGaussian):
            epsilon = problem.noise.at(problem.target, problem.n_fidelities)
        target_only = needs.target_only or only_steers(problem, estimated_bias)
        if target_only:
            problem = replace(problem, bias=Bias.order(*[0.0] * problem.n_fidelities))
        self.problem = problem
        self.delta = check_probability("delta", delta)
        self.rule = rule
        self.needs = needs
        self.costs = Costs(problem, check_limit("budget", budget, ""))
        self._max_failures = check_count("max_failures", max_failures, 1)
        self.seed = check_seed(seed)
        target, n_arms = problem.target, problem.n_arms
        compared = (target,) if target_only else tuple(range(target + 1))
        self._pilot = Pilot(
            tuple(np.random.default_rng(seed).permutation(n_arms).tolist()),
            check_count("pilot_arms", pilot_arms, 2),
            check_count("pilot_pulls", pilot_pulls, 2, MOST_AT_ONCE),
            needs.pilot_at or compared,
        )
        self._n_pilot = 0
        pilots = needs.pilot
        if pilots is None:
            is_declared = problem.bias is not None and problem.costs is not None
            pilots = epsilon is None or not (target_only or is_declared)
        estimates = needs.estimates_bias
        if estimates is None:
            estimates = problem.bias is None
        # Bounds that are estimated may fail as well, and get their share of delta.
        self._bias_delta = _BIAS_SHARE * self.delta if estimates else 0.0
        evidence = Evidence(
            problem,
            self.delta - self._bias_delta,
            compared,
            radius,
            variances=needs.variances,
            audit=audit is True,
            expects_spread=needs.intake is None,
        )
        self.known = Known(
            problem=problem,
            delta=self.delta,
            seed=self.seed,
            target_only=target_only,
            compared=compared,
            evidence=evidence,
            roster=Roster(n_arms),
            bias=problem.bias,
            found_epsilon=epsilon,
            piloting=pilots,
            prices=self.costs.all,
            paid=lambda: self.costs.paid,
        )
        # A single arm is compared with nothing, whatever the noise.
        waits = audit is True and n_arms > 1 and needs.waits
        self.measuring = Measuring(self.known, self.costs, needs, measure, waits)
        self.known.lacking = self.measuring.usually_lacking
        self._audits = None
        if audit and needs.certifies and not target_only:
            self._audits = BiasAudits(self.known, self.costs)
        self._speaker = Speaker(self.known, needs, self.costs, self.measuring, self._bias_delta)
        # Pulls without a value, of each arm at each fidelity.
        self._failures: IntArray = np.zeros((n_arms, problem.n_fidelities), dtype=np.int64)
        if not pilots:
            self.known.costs = self.costs.to_plan_with()
            rule.plan(self.known)
            self._judge(None)

    # What hosts set.

    @property
    def labels(self) -> Labels:
        """How arms and fidelities are named in warnings and answers."""
        return self.known.labels

    @labels.setter
    def labels(self, labels: Labels) -> None:
        self.known.labels = labels

    @property
    def most_blocks(self) -> int | None:
        """How many replicates there are, where pulls carry blocks; None: as many as wanted."""
        return self.known.most_blocks

    @most_blocks.setter
    def most_blocks(self, most: int | None) -> None:
        self.known.most_blocks = most

    def stop_measuring(self) -> None:
        """Be content with the winner's target pulls and with repeats, however few they are."""
        self.measuring.stop(self.winner)

    # Asking.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`)."""
        check_count("n", n, 1, MOST_AT_ONCE)
        pending = check_pulls(pending, self.problem)
        expected = self._expected(pending, is_copied=bool(pending) or n > 1)
        pulls: list[Pull] = []
        while len(pulls) < n and (pull := self._next_pull(expected)) is not None:
            pulls.append(pull)
            if n > 1:
                expected.add(pull)
        return pulls

    def _expected(self, pending: Sequence[Pull] = (), is_copied: bool = False) -> Expected:
        counts = self.known.evidence.counts
        expected = Expected(counts.copy() if is_copied else counts, [])
        for pull in pending:
            expected.add(pull)
        return expected

    def _next_pull(self, expected: Expected) -> Pull | None:
        known, arms, winner = self.known, self.known.arms, self.winner
        if not arms.size:
            return None
        if known.piloting:
            return self._pilot.next_pull(
                expected.counts, known.evidence.counts, known.roster.active
            )
        if winner is not None and not self.needs.proposes_to_the_end:
            return self._pull_of_winner(winner)
        if winner is None and len(arms) > 1 and self.needs.audited is not None:
            leader = self.needs.audited()
            pull = None if leader is None else self._pull_to_audit(leader, expected.counts)
            if pull is not None:
                return pull
        return self.rule.propose(known, expected)

    def _pull_of_winner(self, winner: int) -> Pull:
        lacking = self.measuring.lacking(winner)
        if lacking:
            return self.measuring.next_pull(winner, lacking)
        due = self._pull_to_audit(winner, self.known.evidence.counts)
        return due or Pull(winner, self.problem.target)

    def _pull_to_audit(self, leader: int, counts: IntArray) -> Pull | None:
        measuring = self.measuring
        if self._audits is None or not (measuring.waits and measuring.waits_for_repeats):
            return None
        return self._audits.next_pull(leader, counts, self._left)

    def _awaits(self, winner: int) -> bool:
        """Return whether the race goes on although it has a winner."""
        if self.measuring.lacking(winner):
            return True
        return self._pull_to_audit(winner, self.known.evidence.counts) is not None

    # Telling.

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`).

        In blocks, what counts is the first value of an arm in each, at the target; none in a void
        block or beyond `most_blocks`. A ValueError says that the pull has no block.
        """
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        check_pull(pull, self.problem)
        arm, fidelity = int(pull.arm), int(pull.fidelity)
        self.costs.known(fidelity, observation)  # raises before anything is noted
        intake = self.needs.intake
        says = intake is None or intake.accept(self.known, pull, observation)
        self.costs.pay(fidelity, observation)
        if not says:
            return
        if observation.value is None or not observation.has_value:
            self._count_failure(arm, fidelity)
        elif intake is None or not intake.in_order:
            self._learn(arm, fidelity, float(observation.value))
        elif not self._take_due(arm):
            self._judge(fidelity)
        if intake is not None:
            for each in intake.failing(self.known):
                self._leave_if_failing(each, self.problem.target)

    def _take_due(self, arm: int) -> bool:
        """Learn the values of an arm whose turn it is; whether there are any."""
        took, intake = False, self.needs.intake
        if intake is not None and intake.in_order:
            for value in intake.due(self.known, arm):
                self._learn(arm, self.problem.target, value)
                took = True
        return took

    def _learn(self, arm: int, fidelity: int, value: float) -> None:
        known = self.known
        known.pulls += 1
        contradicted = known.evidence.add(arm, fidelity, value)
        self._take_note(arm)
        if contradicted:
            warnings.warn(
                f"{contradicted} at {self.labels.fidelity(fidelity)}; it is estimated from now on, "
                f"and the arms that had left are compared again",
                NoiseContradictedWarning,
                stacklevel=3,
            )
        if known.piloting:
            self._end_pilot()
            return
        if contradicted or (self.needs.certifies and self.measuring.is_confirmed_by(arm)):
            self.rule.plan(known)
            known.roster.restore_eliminated()
            self._judge(None)
        self._audit_and_judge(fidelity)

    def _take_note(self, arm: int) -> None:
        self.known.told += 1
        if self.needs.note is not None:
            self.needs.note(self.known, arm)

    def _audit_and_judge(self, fidelity: int) -> None:
        self._audit_bias(fidelity)
        self._judge(fidelity)

    def _audit_bias(self, fidelity: int) -> None:
        if self._audits is None or not self._audits.widen(fidelity):
            return
        self.rule.plan(self.known)
        assert self.known.bias is not None
        self.known.roster.restore_unsupported(np.array(self.known.bias.margins))
        self._judge(None)

    def _judge(self, fidelity: int | None) -> None:
        """Ask the rule for its verdicts, and apply them."""
        known, roster = self.known, self.known.roster
        for verdict in self.rule.verdict(known, fidelity):
            if verdict.reinstates:
                roster.restore_eliminated()
            if verdict.eliminated is not None:
                roster.eliminate(verdict.eliminated, verdict.by, verdict.fidelity, verdict.excess)
            known.certified = verdict.certified
            if verdict.epsilon is not None:
                known.found_epsilon = verdict.epsilon
            if verdict.frees:
                for arm in range(self.problem.n_arms):
                    self._take_due(arm)

    def _end_pilot(self) -> None:
        known, active = self.known, self.known.roster.active
        if not active.any() or self._pilot.missing(known.evidence.counts, active):
            return
        if self._bias_delta:
            level = self._bias_delta / max(1, self.problem.n_fidelities - 1)
            known.bias = self._pilot.bias(known.evidence, active, self.needs.kind, level)
        known.piloting = False
        self._n_pilot = len(self._pilot.arms(active))
        known.costs = self.costs.to_plan_with()
        if known.found_epsilon is None:
            known.found_epsilon = known.scale
        self.rule.plan(known)
        for fidelity in range(self.problem.n_fidelities):
            self._audit_bias(fidelity)
        self._judge(None)

    # Leaving.

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
        if self.known.piloting:
            self._end_pilot()
        else:
            self._judge(None)

    def _count_failure(self, arm: int, fidelity: int) -> None:
        self._take_due(arm)  # the gap before them may never be filled
        self._failures[arm, fidelity] += 1
        self._leave_if_failing(arm, fidelity)
        if self.needs.judges_failures and not self.known.piloting:
            self._judge(self.problem.target)

    def _leave_if_failing(self, arm: int, fidelity: int) -> None:
        roster, evidence, intake = self.known.roster, self.known.evidence, self.needs.intake
        counted = self._failures[arm].copy()
        if intake is not None and intake.in_blocks:
            counted[self.problem.target] = intake.failures(arm)
        at_all, values = int(evidence.counts[arm].sum()), int(evidence.counts[arm, fidelity])
        failures = int(counted[fidelity] if at_all else counted.sum())
        if roster.withdrawn[arm]:
            return
        if fails_too_often(values, failures, self._max_failures, at_all - values):
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
            roster.led[arm] = leads(evidence, self.active, arm)
            self.withdraw(arm)

    @property
    def _n_values(self) -> IntArray:
        """How many values each arm has given, shape (K,)."""
        intake = self.needs.intake
        if intake is not None and intake.in_order:
            return intake.n_values()
        return np.asarray(self.known.evidence.counts.sum(axis=1))

    # What is known so far.

    @property
    def certifies(self) -> bool:
        """Whether the race is after a certificate; else rewards count while it runs."""
        return self.needs.certifies

    @property
    def budget(self) -> float:
        """The largest total cost, infinite without one."""
        return self.costs.budget

    @property
    def bias(self) -> Bias | None:
        """The bias bounds in force; None before they are estimated."""
        return self.known.bias

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 before it is found out, and where there is none."""
        return self.known.epsilon

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self.costs.paid

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
        """Arms still in the race, shape (n,); not to be written to."""
        return self.known.arms

    @property
    def piloting(self) -> bool:
        """Whether what was not declared is still being found out."""
        return self.known.piloting or self.known.found_epsilon is None

    @property
    def fidelity(self) -> int:
        """The fidelity of the next pull; of the first one, or the target, when there is none."""
        pull = self._next_pull(self._expected())
        if pull is None:
            return self.problem.target if self.certifies else 0
        return pull.fidelity

    @property
    def winner(self) -> int | None:
        """The arm that the race has ended with, whose value may still be measured; or None."""
        return self.known.winner if self.needs.certifies else None

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Policy.finished`)."""
        known, winner = self.known, self.winner
        if not known.arms.size or (winner is not None and not self._awaits(winner)):
            return True
        if self.certifies and winner is None and self._hides_noise:
            return True
        if self.needs.end(known):
            return True
        if self.costs.all().max() <= self._left:
            return False
        pull = self._next_pull(self._expected())
        return pull is not None and self.costs.of(pull.fidelity) > self._left

    @property
    def _left(self) -> float:
        return self.costs.budget - self.costs.paid - self.held_cost

    @property
    def _hides_noise(self) -> bool:
        """Whether enough repeats at a level were all equal, and say nothing about noise."""
        noise, counts = self.known.evidence.noise, self.known.evidence.counts
        least = max(_REPEATS_TO_SEE_NOISE, self.problem.n_arms)
        levels = self.known.compared
        if not any(noise.is_estimated_at(m) and noise.is_hidden(m, least) for m in levels):
            return False
        # Coarse scores are often equal on a few replicates.
        of_each = int(counts[self.active, self.problem.target].min(initial=least))
        return self.needs.intake is None or of_each >= _REPEATS_TO_SEE_NOISE

    # Answers.

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return the best answer so far in short (see `Policy.leader`)."""
        known, winner = self.known, self.winner
        if not known.arms.size:
            return None, math.nan, (-math.inf, math.inf), 0
        arm = self.needs.leader(known) if winner is None else winner
        seen = np.flatnonzero(known.evidence.counts[arm])
        if not seen.size:
            return arm, math.nan, (-math.inf, math.inf), 0
        highest = int(seen[-1])
        _, mean, _ = self.summary(arm, highest)
        return arm, mean, self.interval(arm), highest

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on an arm's mean at the target, valid at all times with the others."""
        if self.needs.summary is None:
            return self.known.evidence.interval(arm, self.known.bias)
        _, mean, radius = self.summary(arm, self.problem.target)
        return mean - radius, mean + radius

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and confidence radius of an arm at a fidelity."""
        check_pull(Pull(arm, fidelity), self.problem)
        count, mean, radius = self.known.evidence.summary(arm, fidelity)
        if self.needs.summary is None:
            return count, mean, radius
        at_look = self.needs.summary(self.known, arm) if fidelity == self.problem.target else None
        return at_look or (count, mean, math.inf)

    def recommend(self) -> Recommendation:
        """Return the best answer so far (see `Policy.recommend`)."""
        known, roster, winner = self.known, self.known.roster, self.winner
        arm, mean, interval, fidelity = self.leader()
        if self.withheld:  # what takes long may be poor: until it ends, nothing is bounded
            interval = (-math.inf, math.inf)
        awaits = winner is not None and self._awaits(winner)
        # A winner that was compared with nothing is none.
        is_compared = known.certified is not None or not roster.is_lonely
        ended = winner is not None and not awaits and is_compared
        refused = self._refusal(arm) if ended else ""
        certified = ended and not refused
        finished, hidden = self.finished, self.certifies and self._hides_noise
        words = self._speaker.words(arm, awaits, finished, hidden, self._n_pilot)
        return Recommendation(
            arm=arm,
            mean=mean,
            interval=within_range(interval, self.problem.noise),
            fidelity=fidelity,
            delta=self.delta,
            epsilon=self.epsilon,
            finished=finished,
            certified=certified,
            reason=refused or words.reason,
            cost=self.cost,
            pulls=self.pulls,
            survivors=tuple(self.active.tolist()),
            compared=self.problem.n_arms - int((roster.withdrawn | roster.merged).sum()),
            assumptions=words.assumptions,
            remaining_cost=0.0 if certified else None if refused else words.remaining_cost,
            conditions=(*words.conditions, *self.provisos),
            unseen=unseen(known.evidence, roster, arm, self.delta),
            not_compared=not_compared(self._n_values, roster, self._failures, self.labels),
            failures=int(self._failures.sum()),
            notices=words.notices,
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
        known, intake = self.known, self.needs.intake
        if intake is not None and intake.in_blocks:
            return intake.lost_leader(known, self._failures, winner)
        return lost_leader(known.evidence, known.roster, self._failures, winner, known.compared)
