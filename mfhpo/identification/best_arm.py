"""What policies for the best arm share: the certificate, and the audit of the bias bounds."""

import abc
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from mfhpo._validation import check_choice, check_count, check_instance, check_nonnegative
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, BiasAudit, BiasContradictedWarning
from mfhpo.knowledge.confidence import MixtureRadius
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import remaining_pulls
from mfhpo.racing.claims import evaluations_to_see, joined
from mfhpo.racing.noise_evidence import LEAST_REPEATS
from mfhpo.racing.options import EstimatedBias
from mfhpo.racing.race import RacingPolicy

# A certificate that takes the noise for normal waits until its arm's outcomes of this share would
# have been seen: a few values cannot tell a frequent divergence from luck.
_SHARE_TO_SEE = 1.0 / 6.0

# A race in which so many repeats, and one for each arm, were all equal will never tell arms apart.
_REPEATS_TO_SEE_NOISE = 10
_SAME = "draw a new seed or split in every evaluation, or declare sigma=0 if there is no noise"

_UNIT_RADIUS = MixtureRadius(1.0)

# What shows whether the declared bias bounds hold must be paid for. So much of the race's cost may
# have gone into an arm's evaluations at one level, and the price may be that of so many at the
# target; what takes more is not looked for.
_SHARE_OF_AUDIT = 0.5
_MOST_TO_AUDIT = 60.0


def only_steers(problem: Problem, estimated_bias: EstimatedBias = "steer") -> bool:
    """Tell whether cheap fidelities are no evidence, for lack of bias bounds."""
    check_instance("problem", problem, Problem, "a mfhpo.Problem")
    return problem.bias is None and estimated_bias == "steer"


class BestArmPolicy(RacingPolicy):
    """A race for the best arm: what all of them do alike, whatever they pull next.

    What is not declared is found out by a pilot. Then the subclass decides what to pull and judges
    who is out; the race ends with one arm, or with a certificate for one.

    Parameters
    ----------
    problem
        What is known. Whatever is None there is found out by a pilot before the race.
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

    _saved = (
        *RacingPolicy._saved,
        "_epsilon",
        "_certificate",
        "_waits_for_audit",
        "_waits_for_repeats",
        "_measure",
    )

    def __init__(
        self,
        problem: Problem,
        *,
        epsilon: float | None = 0.0,
        measure: int = 0,
        audit: bool | Literal["bias"] = True,
        estimated_bias: EstimatedBias = "steer",
        **options: Any,
    ) -> None:
        check_choice("estimated_bias", estimated_bias, get_args(EstimatedBias))
        self._measure = check_count("measure", measure, 0)
        self._steers = only_steers(problem, estimated_bias)
        if self._target_only:
            problem = replace(problem, bias=Bias.order(*[0.0] * problem.n_fidelities))
        check_choice("audit", audit, (True, False, "bias"))
        self._declared_audit = audit
        self._audit = bool(audit) and not self._target_only
        self._epsilon = None if epsilon is None else check_nonnegative("epsilon", epsilon)
        if epsilon is None and isinstance(problem.noise, SubGaussian):
            self._epsilon = problem.noise.at(problem.target, problem.n_fidelities)
        self._certificate: int | None = None
        # A single arm is compared with nothing, whatever the noise.
        self._waits_for_audit = audit is True and problem.n_arms > 1
        self._waits_for_repeats = True
        self._audits_noise = audit is True
        super().__init__(problem, **options)
        if not self._piloting:
            self._plan()
            self._judge_all()

    # What a certificate rests on that was given while several arms were left.
    _certificate_reason = "no other arm can be better by more than epsilon"

    @property
    def _target_only(self) -> bool:
        return self._steers

    @property
    def _levels(self) -> slice:
        return slice(self.problem.target if self._target_only else 0, None)

    def _compared_fidelities(self) -> tuple[int, ...]:
        if self._target_only:
            return (self.problem.target,)
        return super()._compared_fidelities()

    def _needs_pilot(self) -> bool:
        declared = self.problem.bias is not None and self.problem.costs is not None
        return self._epsilon is None or not (self._target_only or declared)

    @abc.abstractmethod
    def _judge(self, fidelity: int) -> None:
        """Apply the rules that eliminate and certify, after what was seen at one fidelity."""

    def _judge_all(self) -> None:
        for fidelity in range(self.problem.n_fidelities):
            self._judge(fidelity)

    def _reinstate(self) -> None:
        self._roster.restore_eliminated()

    def _explored_fidelity(self) -> int:
        return self.problem.target

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Policy.finished`)."""
        if not self._roster.active.any():
            return True
        winner = self.winner
        if winner is not None and not self._awaits(winner):
            return True
        if winner is None and self._noise_is_hidden:
            return True
        left = self.budget - self._cost - self.held_cost
        if math.isinf(left):
            return False
        pull = self._next_pull(self._evidence.counts)
        return pull is not None and self._cost_of(pull.fidelity) > left

    @property
    def _noise_is_hidden(self) -> bool:
        """Whether enough repeats at a level were all equal, and say nothing about noise."""
        noise, counts = self._evidence.noise, self._evidence.counts
        least = max(_REPEATS_TO_SEE_NOISE, self.problem.n_arms)
        levels = self._compared_fidelities()
        if not any(noise.is_estimated_at(m) and noise.is_hidden(m, least) for m in levels):
            return False
        # Coarse scores are often equal on a few replicates.
        of_each = int(counts[self.active, self.problem.target].min(initial=least))
        return self._expects_spread or of_each >= _REPEATS_TO_SEE_NOISE

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 before it is found out."""
        return self._epsilon or 0.0

    @property
    def fidelity(self) -> int:
        """The fidelity being explored."""
        if self._piloting:
            return self._pilot.fidelities[0]
        return self._explored_fidelity()

    def stop_measuring(self) -> None:
        """Be content with the winner's target pulls and with repeats, however few they are."""
        self._waits_for_repeats = False
        winner = self.winner
        if winner is not None:
            pulled = int(self._evidence.counts[winner, self.problem.target])
            self._measure = min(self._measure, pulled)

    @property
    def winner(self) -> int | None:
        """The arm that the race has ended with, whose value may still be measured; or None."""
        if self._certificate is not None:
            return self._certificate
        arms = self.active
        return int(arms[0]) if len(arms) == 1 and not self._piloting else None

    @property
    def _certified(self) -> bool:
        """Whether there is a winner, measured, that was compared with something."""
        winner = self.winner
        if winner is None or self._awaits(winner):
            return False
        return self._certificate is not None or not self._alone

    @property
    def _alone(self) -> bool:
        """Whether one arm is left because all the others left without a comparison."""
        roster = self._roster
        return bool(roster.withdrawn.any() and not roster.eliminated.any())

    def _lacking(self, winner: int) -> dict[int, int]:
        """Return how many pulls a winner lacks at which fidelity."""
        counts, target = self._evidence.counts[winner], self.problem.target
        lacking = {target: self._measure - int(counts[target])}
        if self._waits_for_audit:
            unaudited = self._evidence.noise.unaudited if self._waits_for_repeats else {}
            for m, missing in unaudited.items():
                if self._cost_of(m) > self._cost_of(target):
                    continue  # it is dearer than what it stands for
                lacking[m] = max(lacking.get(m, 0), missing + int(counts[m] == 0))
            compared = self._compared_fidelities()
            planned = sum(max(lacking.get(m, 0), 0) for m in compared)
            short = self._values_awaited - self._values_of(winner) - planned
            if short > 0:
                cheapest = min(compared, key=self._cost_of)
                lacking[cheapest] = max(lacking.get(cheapest, 0), 0) + short
        return {m: missing for m, missing in lacking.items() if missing > 0}

    def _values_of(self, arm: int) -> int:
        return int(self._evidence.counts[arm, list(self._compared_fidelities())].sum())

    @property
    def _values_awaited(self) -> int:
        normal = self._evidence.supposes_normal
        return evaluations_to_see(_SHARE_TO_SEE, self.delta) if normal else 0

    def _confirms(self, arm: int) -> bool:
        if not self._waits_for_audit or self.winner != arm:
            return False
        return self._values_of(arm) == self._values_awaited

    def _pull_of_winner(self, winner: int) -> Pull | None:
        target = self.problem.target
        lacking = self._lacking(winner)
        if not lacking:
            return self._pull_to_audit(winner, self._evidence.counts) or Pull(winner, target)
        if self._evidence.counts[winner, target] < self._measure:
            return Pull(winner, target)
        return Pull(winner, min(lacking, key=self._cost_of))

    def _awaits(self, winner: int) -> bool:
        """Return whether the race goes on although it has a winner."""
        counts = self._evidence.counts
        return bool(self._lacking(winner)) or self._pull_to_audit(winner, counts) is not None

    def _next_pull(self, counts: IntArray) -> Pull | None:
        if not self._piloting and len(self.active) > 1 and self.winner is None:
            leader = self._leader_to_audit()
            pull = None if leader is None else self._pull_to_audit(leader, counts)
            if pull is not None:
                return pull
        return super()._next_pull(counts)

    def _leader_to_audit(self) -> int | None:
        """Return the arm that is evaluated at dearer levels, to compare it with itself."""
        return None

    def _pull_to_audit(self, leader: int, counts: IntArray) -> Pull | None:
        """Return the next pull that checks the declared bias bounds on the leading arm.

        Order bounds concern two arms, so the other arm with most target pulls is pulled, too.
        """
        bias, target = self.bias, self.problem.target
        if not (self._audit and self._waits_for_audit and self._waits_for_repeats):
            return None
        if bias is None or bias.source != "declared":
            return None
        arms = np.array([leader])
        if bias.kind == "order":
            roster = self._roster
            others = np.flatnonzero(~(roster.withdrawn | roster.merged))
            others = others[others != leader]
            if not others.size:
                return None
            order = np.lexsort((counts[others].sum(axis=1), counts[others, target]))
            arms = np.append(arms, others[order[-1]])
        scales = self._evidence.noise_scales()
        # Where there are no repeats yet, values may spread as at other levels.
        variances = np.where(np.isnan(scales), np.fmax.reduce(scales), scales) ** 2
        costs = np.array([self._cost_of(m) for m in range(target + 1)])
        allowance = _SHARE_OF_AUDIT * float(self._evidence.counts.sum(axis=0) @ costs)
        left = self.budget - self._cost - self.held_cost
        for m in np.flatnonzero(self._evidence.counts[:, :target].any(axis=0))[::-1].tolist():
            if costs[m] > costs[target]:
                continue  # it is dearer than what it stands for
            levels = [m, target]
            seen = counts[arms][:, levels]
            prices, spread = (np.tile(row[levels], (len(arms), 1)) for row in (costs, variances))
            needed = self._bias_audit.needed(bias.bounds[m], seen, spread, prices)
            missing = np.maximum(needed - seen, 0.0)
            if not 0.0 < float((missing * prices).sum()) <= _MOST_TO_AUDIT * costs[target]:
                continue
            due = (missing > 0.0) & ((seen + 1) * prices <= allowance) & (prices <= left)
            if due.any():
                place = np.argmax(np.where(due, missing / needed, 0.0))
                row, column = np.unravel_index(int(place), due.shape)
                return Pull(int(arms[row]), levels[int(column)])
        return None

    def _spread_of(self, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the values' variances, estimated or supposed, and degrees of freedom, (n, M)."""
        noise, seen = self._evidence.noise, self._evidence.counts[arms]
        variances, degrees = np.full(seen.shape, np.inf), np.full(seen.shape, np.inf)
        for m, counts in enumerate(seen.T):
            if noise.is_estimated_at(m):
                degrees[:, m] = counts - 1.0
                own = noise.squares(arms, m) / np.maximum(degrees[:, m], 1.0)
                variances[:, m] = np.where(counts > 1, own, np.inf)
            else:
                radii = self._evidence.half_widths(arms, m)
                variances[:, m] = (radii / _UNIT_RADIUS(np.maximum(counts, 1), noise.level)) ** 2
        return variances, degrees

    def _judge_anew(self) -> None:
        self._certificate = None
        self._judge_all()

    def _end_pilot(self) -> None:
        if not self._settle():
            return
        if self._epsilon is None:
            scale = self._evidence.noise_scale(self.problem.target)
            self._epsilon = scale if math.isfinite(scale) else 0.0
        self._plan()
        for fidelity in range(self.problem.n_fidelities):
            self._audit_bias(fidelity)
        self._judge_all()

    def _audit_bias(self, fidelity: int) -> None:
        if not self._audit:
            return
        assert self.bias is not None
        counts = self._evidence.counts
        seen = np.flatnonzero((counts[:, fidelity] > 0) & ((counts > 0).sum(axis=1) > 1))
        if not seen.size:
            return
        means, spread = self._evidence.all_means(seen), self._spread_of(seen)
        contradicted = False
        while found := self._bias_audit.find(
            self.bias, fidelity, means, counts[seen], spread, seen.tolist()
        ):
            contradicted = True
            warnings.warn(
                found.describe(self.labels.arm, self.labels.fidelity),
                BiasContradictedWarning,
                stacklevel=4,
            )
            self.bias = self.bias.widened(found.fidelity, found.widened_to)
        if not contradicted:
            return
        self._plan()
        self._reinstate()
        self._judge_anew()

    @property
    def _bias_audit(self) -> BiasAudit:
        assert self.bias is not None
        return BiasAudit(self.bias.kind, self.problem.n_arms, self.problem.n_fidelities)

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        return {**super().state_dict(), "audit": self._declared_audit}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        super().load_state_dict({"measure": self._measure, **state})

    def _check_declared(self, state: Mapping[str, Any]) -> None:
        super()._check_declared(state)
        audit = state.get("audit", self._declared_audit)
        if audit != self._declared_audit:
            raise ValueError(
                f"audit={self._declared_audit!r}, but the state was saved with audit={audit!r}; "
                f"make the policy with the arguments that it was saved with."
            )

    def _notices(self) -> tuple[str, ...]:
        noise, labels = self._evidence.noise, self.labels
        found = [
            f"all repeated evaluations at {labels.fidelity(m)} gave exactly the same value: {_SAME}"
            for m in self._compared_fidelities()
            if noise.is_hidden(m, LEAST_REPEATS)
        ]
        if self.bias is not None and self.bias.source == "widened":
            found.append("observations contradicted the declared bias bounds, which were widened")
        unaudited = noise.unaudited if self._waits_for_audit else {}
        if unaudited and not self._waits_for_repeats:
            levels = joined([labels.fidelity(m) for m in unaudited])
            found.append(
                f"too few repeats at {levels} to see whether the declared sigma is too small"
            )
        return (*found, *super()._notices())

    def _reason(self, arm: int | None) -> str:
        if arm is None:
            return "every arm failed and left the race"
        winner = self.winner
        if winner is None:
            reason = f"{len(self.active)} arms are not told apart yet"
            if self._piloting:
                reason = "the pilot is not complete"
        elif self._awaits(winner):
            reason = "the winner is evaluated more often, to see what a few values cannot show"
            if self._evidence.counts[winner, self.problem.target] < self._measure:
                reason = "the winner's value at the target is still being measured"
        elif self._certificate is not None:
            return self._certificate_reason
        elif self._alone:
            return "every other arm left without being compared, because its pulls failed"
        elif self._roster.eliminated.any():
            compared = " that was compared" if self._roster.withdrawn.any() else ""
            return f"every other arm{compared} was eliminated"
        else:
            return "the only arm"
        return f"{self._end} and {reason}" if self.finished else reason

    @property
    def _end(self) -> str:
        """Why a race that is not certified is over."""
        if self._noise_is_hidden:
            return f"all repeated evaluations gave exactly the same value: {_SAME}"
        return f"the budget of {self.budget:g} is spent"

    def _remaining_cost(self, leader: int | None) -> float | None:
        if leader is None or self._piloting or self._noise_is_hidden:
            return None
        winner = self.winner
        if winner is not None:
            lacking = self._lacking(winner).items()
            return sum((n * self._cost_of(m) for m, n in lacking), start=0.0)
        missing = remaining_pulls(self._evidence, self.active, leader, self.epsilon)
        if math.isnan(missing):
            return None
        return missing if math.isinf(missing) else missing * self._cost_of(self.problem.target)
