"""The course of a race: what is learned, who leaves by which verdict, and who comes back."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaln

from mfhpo.knowledge.arrays import BoolArray, IntArray
from mfhpo.knowledge.bias import Bias, Kind, estimate_bias
from mfhpo.knowledge.noise import NoiseContradictedWarning
from mfhpo.problem import Observation, Pull
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.extra_pulls import is_confirmed_by, widen
from mfhpo.racing.rule import Known, Rule
from mfhpo.racing.sentences import outcomes_in_words

# Probability with which an arm ever leaves that fails in half of its evaluations: so many are
# tolerated, as it then costs twice as much as one that never fails.
_LEVEL = 0.01


class ArmWithdrawnWarning(UserWarning):
    """An arm left the race because too many of its pulls failed."""


@dataclass(frozen=True)
class Pilot:
    """Which arms to pull how often before the race, to find out what was not declared."""

    # In random order, so that the biases of the first ones stand for those of all arms: the first
    # `n_arms` that are still in the race are the pilot's.
    order: tuple[int, ...]
    n_arms: int
    n_pulls: int  # of each of them at every fidelity, at least 2
    fidelities: tuple[int, ...]

    def arms(self, active: BoolArray) -> IntArray:
        """Return the pilot's arms, shape (min(P, number of active arms),)."""
        chosen = [arm for arm in self.order if active[arm]][: self.n_arms]
        return np.array(chosen, dtype=np.int64)

    def missing(self, counts: IntArray, active: BoolArray) -> list[Pull]:
        """Return the missing pulls, cheapest fidelity first, given counts of shape (K, M)."""
        arms = self.arms(active)
        return [
            Pull(arm, fidelity)
            for fidelity in self.fidelities
            for repeat in range(self.n_pulls)
            for arm in arms[counts[arms, fidelity] <= repeat].tolist()
        ]

    def next_pull(self, counts: IntArray, seen: IntArray, active: BoolArray) -> Pull:
        """Return the next pull, by the counts with what is under way, and by those seen."""
        missing = self.missing(counts, active)
        if missing:
            return missing[0]
        cheapest, arms = self.fidelities[0], np.flatnonzero(active)
        first = arms[np.argmin(counts[arms, cheapest])]
        if counts[first, cheapest] < self.n_pulls:
            return Pull(int(first), cheapest)
        # What is left is under way and may never come: pull it once more.
        return self.missing(seen, active)[0]

    def bias(self, evidence: Evidence, active: BoolArray, kind: Kind, level: float) -> Bias:
        """Return bias bounds for all arms, from the pilot's means (see `estimate_bias`)."""
        n_arms, n_fidelities = evidence.counts.shape
        arms = self.arms(active)
        if n_fidelities == 1:
            return Bias(kind, (0.0,), source="estimated")
        if len(arms) < 2:
            # One arm has no other to be compared with, and order bounds say no more than that:
            # nothing is claimed of its own bias.
            return Bias("order", (0.0,) * n_fidelities, source="estimated")
        means = evidence.means(arms)
        return estimate_bias(means - means[:, -1:], kind, n_arms, level)


@dataclass
class Course:
    """Learns observations one by one, and asks the rule after each."""

    known: Known
    rule: Rule
    pilot: Pilot

    def begin(self) -> None:
        """Begin the race, with the costs that are known."""
        self.known.costs = self.known.spending.to_plan_with()
        self.rule.plan(self.known)
        self.judge(None)

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation."""
        arm, fidelity, intake = int(pull.arm), int(pull.fidelity), self.known.needs.intake
        cost = self.known.spending.known(fidelity, observation)  # or raise: nothing is noted yet
        says = intake is None or intake.accept(self.known, pull, observation)
        self.known.spending.pay(fidelity, cost)
        if not says:
            return
        if observation.value is None or not observation.has_value:
            self._count_missing(arm, fidelity, observation.failed)
        elif intake is None or not intake.in_order:
            self._learn(arm, fidelity, float(observation.value))
        elif not self._take_due(arm):
            self.judge(fidelity)
        if intake is not None:
            failing = self.known.roster.active & intake.failed.any(axis=1)
            for each in np.flatnonzero(failing).tolist():
                self._leave_if_failing(each, self.known.problem.target)

    def _take_due(self, arm: int) -> bool:
        """Learn the values of an arm whose turn it is; whether there are any."""
        took, intake = False, self.known.needs.intake
        if intake is not None and intake.in_order:
            for value in intake.due(self.known, arm):
                self._learn(arm, self.known.problem.target, value)
                took = True
        return took

    def _learn(self, arm: int, fidelity: int, value: float) -> None:
        known = self.known
        known.pulls += 1
        contradicted = known.evidence.add(arm, fidelity, value)
        known.told += 1
        known.needs.note(known, arm)
        if contradicted:
            warnings.warn(
                f"{contradicted} at {known.labels.fidelity(fidelity)}; it is estimated from now "
                f"on, and the arms that had left are compared again",
                NoiseContradictedWarning,
                stacklevel=4,
            )
        if known.piloting:
            self._end_pilot()
            return
        if contradicted or is_confirmed_by(known, arm):
            self.rule.plan(known)
            known.roster.restore_eliminated()
            self.judge(None)
        self.audit_bias(fidelity)
        self.judge(fidelity)

    def audit_bias(self, fidelity: int) -> None:
        """Compare values at a fidelity with the bias bounds, and judge anew by wider ones."""
        if self.known.audits_bias and widen(self.known, fidelity):
            assert self.known.bias is not None
            self.rule.plan(self.known)
            self.known.roster.restore_unsupported(np.array(self.known.bias.margins))
            self.judge(None)

    def judge(self, fidelity: int | None) -> None:
        """Ask the rule for its verdicts, and apply them (see `Rule.verdict`)."""
        known, roster = self.known, self.known.roster
        for verdict in self.rule.verdict(known, fidelity):
            if verdict.reinstates:
                roster.restore_eliminated()
            if verdict.is_endless:
                known.most_blocks = None
            if verdict.eliminated is not None:
                roster.eliminate(verdict.eliminated, verdict.by, verdict.fidelity, verdict.excess)
            known.certified = verdict.certified
            if verdict.epsilon is not None:
                known.found_epsilon = verdict.epsilon
            if verdict.frees:
                for arm in range(known.problem.n_arms):
                    self._take_due(arm)

    def go_on(self) -> None:
        """Judge all anew, as an arm has left."""
        if self.known.piloting:
            self._end_pilot()
        else:
            self.judge(None)

    def _end_pilot(self) -> None:
        known, active = self.known, self.known.roster.active
        if not active.any() or self.pilot.missing(known.evidence.counts, active):
            return
        if known.bias_level:
            level = known.bias_level / max(1, known.problem.n_fidelities - 1)
            known.bias = self.pilot.bias(known.evidence, active, known.needs.kind, level)
        known.piloting = False
        known.n_pilot = len(self.pilot.arms(active))
        known.costs = known.spending.to_plan_with()
        if known.found_epsilon is None:
            known.found_epsilon = known.scale
        self.rule.plan(known)
        for fidelity in range(known.problem.n_fidelities):
            self.audit_bias(fidelity)
        self.judge(None)

    def _count_missing(self, arm: int, fidelity: int, failed: bool) -> None:
        self._take_due(arm)  # the gap before them may never be filled
        counts = self.known.failures if failed else self.known.stops
        counts[arm, fidelity] += 1
        self._leave_if_failing(arm, fidelity)
        if self.known.needs.judges_failures and not self.known.piloting:
            self.judge(self.known.problem.target)

    def _leave_if_failing(self, arm: int, fidelity: int) -> None:
        why = why_it_leaves(self.known, arm, fidelity)
        if why:
            warnings.warn(why, ArmWithdrawnWarning, stacklevel=5)
            self.known.roster.led[arm] = self._leads(arm)
            self.known.roster.withdraw(arm)
            self.go_on()

    def _leads(self, arm: int) -> bool:
        """Tell whether no other arm has a larger mean at the arm's highest fidelity."""
        evidence, arms = self.known.evidence, self.known.arms
        seen = np.flatnonzero(evidence.counts[arm])
        if not seen.size:
            return False
        means = evidence.means(arms[evidence.counts[arms, seen[-1]] > 0], int(seen[-1]))
        [mean] = evidence.means(np.array([arm]), int(seen[-1]))
        return len(means) > 1 and bool(mean >= means.max())


def fails_too_often(values: int, failures: int, max_failures: int, elsewhere: int = 0) -> bool:
    """Tell whether an arm leaves because its evaluations at a fidelity give no value.

    One with values, also `elsewhere`, stays until its failure rate is confidently above one half.
    """
    if failures < max_failures:
        return False
    if values + elsewhere == 0:
        return True
    return failures > values and evidence_of_failing(values, failures) >= 1.0 / _LEVEL


def evidence_of_failing(values: int, failures: int) -> float:
    """Return how strongly the outcomes say that more than half of the evaluations fail.

    It is the likelihood of a failure rate drawn evenly between one half and 1, over that of one
    half: a nonnegative supermartingale for every rate up to one half, so that it ever reaches 1 / a
    with probability at most a (Ville's inequality).
    """
    a, b = failures + 1.0, values + 1.0
    # The integral of r^failures (1 - r)^values from one half to 1, over that from 0 on.
    mass = float(betainc(b, a, 0.5))
    if mass == 0.0:
        return 0.0
    log_ratio = float(betaln(a, b)) + math.log(mass) + (failures + values + 1) * math.log(2.0)
    return math.exp(min(log_ratio, 700.0))


def n_values(known: Known) -> IntArray:
    """Return how many values each arm has given, shape (K,)."""
    intake = known.needs.intake
    if intake is not None and intake.in_order:
        return intake.n_values
    return np.asarray(known.evidence.counts.sum(axis=1))


def outcomes(known: Known, arm: int) -> str:
    """Say how many of an arm's evaluations gave no value, and why."""
    failures, stops = int(known.failures[arm].sum()), int(known.stops[arm].sum())
    return outcomes_in_words(int(n_values(known)[arm]), failures, stops)


def why_it_leaves(known: Known, arm: int, fidelity: int) -> str:
    """Say why an arm leaves the race, given where it failed last; empty if it stays."""
    counted, intake = known.missing[arm], known.needs.intake
    if intake is not None and intake.in_blocks:
        counted[known.problem.target] = intake.failures_of(arm)
    counts = known.evidence.counts[arm]
    at_all, values = int(counts.sum()), int(counts[fidelity])
    failures = int(counted[fidelity] if at_all else counted.sum())
    most = min(known.max_failures, known.most_blocks or known.max_failures)
    leaves = fails_too_often(values, failures, most, at_all - values)
    if not leaves or known.roster.withdrawn[arm]:
        return ""
    missing, given = int(known.missing[arm].sum()), int(n_values(known)[arm])
    return (
        f"{known.labels.arm(arm)} leaves the race: {missing} of {missing + given} pulls gave no "
        f"value (they failed, were pruned, ran out of time or gave no number of a size up to "
        f"1e50), the last at {known.labels.fidelity(fidelity)}; mend the objective for this "
        f"configuration, or raise max_failures={known.max_failures}"
    )


def why_nothing_is_certified(known: Known, winner: int) -> str:
    """Say which arm left for its failures that was or would be the best; empty if none."""
    intake = known.needs.intake
    if intake is not None and intake.in_blocks:
        lost = intake.lost_leader(known.roster, known.missing, winner)
    else:
        lost = _lost_leader(known, winner)
    if lost is None:
        return ""
    return (
        f"{known.labels.arm(lost)} led when it left the race, or would lead by its values: it "
        f"{outcomes(known, lost)} evaluations, so that it could not be compared; mend the "
        f"objective for it, or leave it out"
    )


def _lost_leader(known: Known, winner: int) -> int | None:
    """Return an arm that left for its failures, and was or would be the best by its values."""
    counts, roster = known.evidence.counts, known.roster
    for arm in np.flatnonzero(roster.withdrawn & known.missing.any(axis=1)).tolist():
        shared = [m for m in known.compared if counts[arm, m] and counts[winner, m]]
        is_ahead = counts[arm, -1] > 0
        if shared:
            own, best = known.evidence.means(np.array([arm, winner]), shared[-1])
            is_ahead = own > best
        if is_ahead or roster.led[arm]:
            return int(arm)
    return None
