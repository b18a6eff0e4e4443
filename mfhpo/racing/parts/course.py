"""The course of a race: what is learned, who leaves by which verdict, and who comes back."""

import warnings
from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.noise import NoiseContradictedWarning
from mfhpo.problem import Observation, Pull
from mfhpo.racing.answer import leads
from mfhpo.racing.parts.bias_audits import widen
from mfhpo.racing.parts.failures import why_it_leaves
from mfhpo.racing.parts.measuring import is_confirmed_by
from mfhpo.racing.parts.pilot import Pilot
from mfhpo.racing.rule import Known, Rule


class ArmWithdrawnWarning(UserWarning):
    """An arm left the race because too many of its pulls failed."""


@dataclass
class Course:
    """Learns observations one by one, and asks the rule after each.

    `audits_bias` says whether bias bounds are compared with values.
    """

    known: Known
    rule: Rule
    pilot: Pilot
    audits_bias: bool

    def begin(self) -> None:
        """Begin the race, with the costs that are known."""
        self.known.costs = self.known.spending.to_plan_with()
        self.rule.plan(self.known)
        self.judge(None)

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation."""
        arm, fidelity, intake = int(pull.arm), int(pull.fidelity), self.known.needs.intake
        self.known.spending.known(fidelity, observation)  # raises before anything is noted
        says = intake is None or intake.accept(self.known, pull, observation)
        self.known.spending.pay(fidelity, observation)
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
        self.take_note(arm)
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
        if contradicted or (self.known.needs.certifies and is_confirmed_by(known, arm)):
            self.rule.plan(known)
            known.roster.restore_eliminated()
            self.judge(None)
        self.audit_bias(fidelity)
        self.judge(fidelity)

    def take_note(self, arm: int) -> None:
        """Let the rule take note of what was told about an arm."""
        self.known.told += 1
        if self.known.needs.note is not None:
            self.known.needs.note(self.known, arm)

    def audit_bias(self, fidelity: int) -> None:
        """Compare values at a fidelity with the bias bounds, and judge anew by wider ones."""
        if not self.audits_bias or not widen(self.known, fidelity):
            return
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
            if verdict.eliminated is not None:
                roster.eliminate(verdict.eliminated, verdict.by, verdict.fidelity, verdict.excess)
            known.certified = verdict.certified
            if verdict.epsilon is not None:
                known.found_epsilon = verdict.epsilon
            if verdict.frees:
                for arm in range(known.problem.n_arms):
                    self._take_due(arm)

    def _end_pilot(self) -> None:
        known, active = self.known, self.known.roster.active
        if not active.any() or self.pilot.missing(known.evidence.counts, active):
            return
        if known.bias_level:
            level = known.bias_level / max(1, known.problem.n_fidelities - 1)
            known.bias = self.pilot.bias(known.evidence, active, self.known.needs.kind, level)
        known.piloting = False
        known.n_pilot = len(self.pilot.arms(active))
        known.costs = known.spending.to_plan_with()
        if known.found_epsilon is None:
            known.found_epsilon = known.scale
        self.rule.plan(known)
        for fidelity in range(known.problem.n_fidelities):
            self.audit_bias(fidelity)
        self.judge(None)

    def go_on(self) -> None:
        """Judge all anew, as an arm has left."""
        if self.known.piloting:
            self._end_pilot()
        else:
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
            known = self.known
            known.roster.led[arm] = leads(known.evidence, known.arms, arm)
            known.roster.withdraw(arm)
            self.go_on()
