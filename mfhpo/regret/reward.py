"""What the policies that maximise reward share: evidence, pilot, failures, budget, answers."""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count, check_nonnegative, check_probability
from mfhpo.bias import Bias
from mfhpo.confidence import MixtureRadius, Radius, StudentMixtureRadius
from mfhpo.evidence import Evidence
from mfhpo.identification import ArmWithdrawnWarning
from mfhpo.identification.pilot import Pilot
from mfhpo.identification.roster import Roster
from mfhpo.noise import Bounded, SubGaussian
from mfhpo.policy import Policy
from mfhpo.problem import Observation, Problem, Pull, Recommendation

__all__ = ["RewardPolicy", "RunningSums", "noise_is_estimated"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Arms (n,), fidelity, number of their values so far, sums of these (n,), and the numbers of values
# at which the sums are wanted (T,); gives the sums, shape (n, T). See `Instance.running_sums`.
RunningSums: TypeAlias = Callable[[IntArray, int, int, FloatArray, IntArray], FloatArray]


class RewardPolicy(Policy):
    """A policy that maximises the reward while it runs, and certifies nothing.

    Parameters
    ----------
    problem
        What is known.
    delta
        Probability with which one of the intervals of the answers may fail, in (0, 1).
    compared
        The fidelities whose values are evidence about the target.
    budget
        Largest total cost; None: the policy never finishes by itself.
    max_failures
        An arm leaves after so many pulls in a row without a value.
    pilot
        Fidelities that the pilot pulls; none: there is no pilot.
    pilot_arms, pilot_pulls
        Size of the pilot: arms, and pulls of each at every one of its fidelities.
    estimate_bias
        Whether bias bounds that are not declared are to be estimated by the pilot.
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
        delta: float,
        compared: int,
        budget: float | None,
        max_failures: int,
        pilot: tuple[int, ...],
        pilot_arms: int,
        pilot_pulls: int,
        estimate_bias: bool,
        seed: int,
    ) -> None:
        if budget is not None and not budget > 0.0:
            raise ValueError(f"budget must be positive or None, got {budget!r}.")
        self.problem = problem
        self.delta = check_probability("delta", delta)
        self.budget = math.inf if budget is None else float(budget)
        self._max_failures = check_count("max_failures", max_failures, 1)
        order = np.random.default_rng(seed).permutation(problem.n_arms)
        self._pilot = Pilot(
            tuple(order.tolist()),
            check_count("pilot_arms", pilot_arms, 2),
            check_count("pilot_pulls", pilot_pulls, 2),
            pilot,
        )
        self._piloting = bool(pilot)
        self._n_pilot = 0

        # Bounds that are estimated may fail as well; they get half of delta.
        self._bias = problem.bias
        self._bias_delta = self.delta / 2.0 if estimate_bias and problem.bias is None else 0.0
        self._evidence = Evidence(problem, self.delta - self._bias_delta, compared, _radii(problem))
        self._roster = Roster(problem.n_arms)
        self._cost = 0.0
        self.pulls = 0
        self._cost_sums: FloatArray = np.zeros(problem.n_fidelities)
        self._cost_counts: IntArray = np.zeros(problem.n_fidelities, dtype=np.int64)
        self._planned_costs: FloatArray | None = None
        if not self._piloting:
            self._fix_costs()

    # What subclasses decide.

    @abc.abstractmethod
    def _choose(self, ahead: IntArray) -> Pull:
        """The next pull of an active arm after the pilot; `ahead` counts what is under way."""

    def _learned(self) -> None:
        """Called after every observation outside the pilot, also after a failure."""

    @abc.abstractmethod
    def _start(self) -> None:
        """Called when the pilot has ended, and when the state after it is loaded."""

    def _judge_anew(self) -> None:
        """Called after an arm was withdrawn."""

    @abc.abstractmethod
    def _answer(self, arms: IntArray) -> int:
        """The best arm so far, of the active ones."""

    @abc.abstractmethod
    def interval(self, arm: int) -> tuple[float, float]:
        """Bounds on the arm's mean at the target fidelity, valid at all times with the others."""

    @abc.abstractmethod
    def _reason(self) -> str:
        """What the policy is for, and why the answer is not certified."""

    @abc.abstractmethod
    def _assumptions(self) -> tuple[str, ...]:
        """What the answer's interval and the policy's choices rest on, in words."""

    # The contract.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`)."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        ahead = np.zeros_like(self._evidence.counts)
        for pull in pending:
            self._check(pull)
            ahead[pull.arm, pull.fidelity] += 1
        pulls: list[Pull] = []
        for _ in range(n if self._roster.active.any() else 0):
            pulls.append(self._next_pull(ahead))
            ahead[pulls[-1].arm, pulls[-1].fidelity] += 1
        return pulls

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`)."""
        self._check(pull)
        arm, fidelity = int(pull.arm), int(pull.fidelity)
        self._pay(fidelity, observation.cost)
        if observation.value is None or not observation.has_value:
            self._fail(arm, fidelity)
        else:
            self.pulls += 1
            self._roster.failures[arm] = 0
            self._evidence.add(arm, fidelity, float(observation.value))
            if self._piloting:
                self._end_pilot()
        if not self._piloting:
            self._learned()

    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out of the race (see `Policy.withdraw`)."""
        self._check(Pull(arm, 0))
        if duplicate_of is None:
            self._roster.withdraw(arm)
        else:
            self._roster.merge(arm, duplicate_of)
        if self._piloting:
            self._end_pilot()
        if not self._piloting:
            self._judge_anew()

    @property
    def finished(self) -> bool:
        """Whether no arm is left, or the next pull would exceed the budget."""
        if not self._roster.active.any():
            return True
        left = self.budget - self._cost
        if max(map(self._cost_of, range(self.problem.n_fidelities))) <= left:
            return False
        [pull] = self.ask()
        return self._cost_of(pull.fidelity) > left

    def recommend(self) -> Recommendation:
        """The best answer so far, never certified (see `Policy.recommend`)."""
        arm, mean, interval, fidelity = self.leader()
        roster = self._roster
        finished = self.finished
        reason = self._reason()
        if arm is None:
            reason = "every arm failed and left the race"
        elif finished:
            reason = f"the budget of {self.budget:g} is spent; {reason}"
        elif self._piloting:
            reason = f"the pilot is not complete; {reason}"
        return Recommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=self.delta,
            epsilon=self.epsilon,
            finished=finished,
            certified=False,
            reason=reason,
            cost=self.cost,
            pulls=self.pulls,
            survivors=tuple(self.active.tolist()),
            compared=self.problem.n_arms - int((roster.withdrawn | roster.merged).sum()),
            assumptions=(*self._assumptions(), *self._not_compared()),
        )

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Arm, mean, interval at the target and fidelity of the mean of the best answer so far."""
        if not self._roster.active.any():
            return None, math.nan, (-math.inf, math.inf), 0
        arm = self._answer(self.active)
        seen = np.flatnonzero(self._evidence.counts[arm])
        if not seen.size:
            return arm, math.nan, (-math.inf, math.inf), 0
        highest = int(seen[-1])
        _, mean, _ = self.summary(arm, highest)
        return arm, mean, self.interval(arm), highest

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Count, mean and radius of what was observed of an arm at a fidelity."""
        return self._evidence.summary(arm, fidelity)

    @property
    def counts(self) -> IntArray:
        """Number of values of every arm at every fidelity, shape (K, M)."""
        return self._evidence.counts.copy()

    @property
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,)."""
        return self._roster.arms

    @property
    def fidelity(self) -> int:
        """The fidelity of the next pull; 0 when no arm is left."""
        pulls = self.ask()
        return pulls[0].fidelity if pulls else 0

    @property
    def piloting(self) -> bool:
        """Whether the pilot is still under way."""
        return self._piloting

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self._cost

    @property
    def epsilon(self) -> float:
        """The tolerance of the choice between arms; 0 where there is none."""
        return 0.0

    # Pulls, costs and failures.

    def _check(self, pull: Pull) -> None:
        if not 0 <= pull.arm < self.problem.n_arms:
            raise ValueError(f"arm must be 0 to {self.problem.n_arms - 1}, got {pull.arm}.")
        if not 0 <= pull.fidelity <= self.problem.target:
            raise ValueError(f"fidelity must be 0 to {self.problem.target}, got {pull.fidelity}.")

    def _next_pull(self, ahead: IntArray) -> Pull:
        if not self._piloting:
            return self._choose(ahead)
        counts, active = self._evidence.counts, self._roster.active
        missing = self._pilot.missing(counts + ahead, active)
        if missing:
            return missing[0]
        arms, cheapest = self.active, self._pilot.fidelities[0]
        under_way = (counts + ahead)[arms, cheapest]
        if under_way.min() < self._pilot.n_pulls:
            return Pull(int(arms[np.argmin(under_way)]), cheapest)
        # What is left is under way and may never come: pull it once more.
        return self._pilot.missing(counts, active)[0]

    def _pay(self, fidelity: int, cost: float | None) -> None:
        if cost is not None:
            cost = check_nonnegative("cost", float(cost))
        elif self.problem.costs is None:
            raise ValueError("cost=None: the problem's costs are measured; tell what was paid.")
        else:
            cost = self.problem.costs[fidelity]
        self._cost += cost
        self._cost_sums[fidelity] += cost
        self._cost_counts[fidelity] += 1

    def _cost_of(self, fidelity: int) -> float:
        """Cost of a pull: declared, or the mean of what was paid (0 before the first)."""
        if self.problem.costs is not None:
            return self.problem.costs[fidelity]
        return float(self._cost_sums[fidelity] / max(1, self._cost_counts[fidelity]))

    def _fix_costs(self) -> None:
        """Fix the costs to plan with, shape (M,): what is measured must not move the plan later."""
        paid = np.array([self._cost_of(m) for m in range(self.problem.n_fidelities)])
        # A coarse clock measures 0; nothing is free.
        paid[paid == 0.0] = 1e-3 * paid.max() if paid.any() else 1.0
        self._planned_costs = paid

    def _fail(self, arm: int, fidelity: int) -> None:
        self._roster.failures[arm] += 1
        failures = int(self._roster.failures[arm])
        if failures < self._max_failures or self._roster.withdrawn[arm]:
            return
        warnings.warn(
            f"{self.labels.arm(arm)} leaves the race: {failures} pulls in a row gave no value "
            f"(they failed, were pruned or ran out of time), the last at "
            f"{self.labels.fidelity(fidelity)}; mend the objective for this configuration, or "
            f"raise max_failures={self._max_failures}",
            ArmWithdrawnWarning,
            stacklevel=3,
        )
        self.withdraw(arm)

    def _end_pilot(self) -> None:
        """Settle what was unknown, once the pilot has all its pulls."""
        active = self._roster.active
        if not active.any() or self._pilot.missing(self._evidence.counts, active):
            return
        if self._bias_delta:
            level = self._bias_delta / max(1, self.problem.n_fidelities - 1)
            self._bias = self._pilot.bias(self._evidence, active, "max", level)
        self._piloting = False
        self._n_pilot = len(self._pilot.arms(active))
        self._fix_costs()
        self._start()

    def _sigmas(self) -> FloatArray:
        """Noise scale at each fidelity, shape (M,): declared, or the pooled standard deviation."""
        n_fidelities = self.problem.n_fidelities
        return np.array([self._sigma(m) for m in range(n_fidelities)])

    def _sigma(self, fidelity: int) -> float:
        noise = self.problem.noise
        if isinstance(noise, SubGaussian):
            return noise.at(fidelity, self.problem.n_fidelities)
        if isinstance(noise, Bounded):
            return (noise.high - noise.low) / 2.0
        return self._evidence.noise_scale(fidelity)

    def _noise_in_words(self) -> str:
        if isinstance(self.problem.noise, Bounded):
            return "values within the declared bounds"
        if isinstance(self.problem.noise, SubGaussian):
            return self._evidence.assumption
        return (
            "noise: Gaussian; the choice of pulls takes the pooled standard deviation of each "
            "fidelity for sigma, the interval each arm's own variance"
        )

    def _not_compared(self) -> tuple[str, ...]:
        gone = np.flatnonzero(self._roster.withdrawn).tolist()
        if not gone:
            return ()
        names = ", ".join(map(self.labels.arm, gone))
        return (f"not compared, because their pulls gave no value: {names}",)

    # Blocks of plays, for simulations.

    def _check_block(self, capital: float | None) -> float:
        """Return what may be spent, or raise where a block is not the same as asking."""
        if self.problem.costs is None or self._piloting or self._evidence.depends_on_values:
            raise ValueError(
                "blocks of plays need declared bias, costs and noise (SubGaussian or Bounded); "
                "use ask and tell."
            )
        limit = self.budget if capital is None else min(self.budget, float(capital))
        if not limit < math.inf:
            raise ValueError("capital must be finite where the policy has no budget.")
        return limit

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Everything learned so far (see `Policy.state_dict`)."""
        bias = self._bias
        return {
            "evidence": self._evidence.state_dict(),
            "roster": self._roster.state_dict(),
            "cost_sums": self._cost_sums.tolist(),
            "cost_counts": self._cost_counts.tolist(),
            "cost": self._cost,
            "pulls": self.pulls,
            "piloting": self._piloting,
            "n_pilot": self._n_pilot,
            "planned_costs": None if self._planned_costs is None else self._planned_costs.tolist(),
            "bias": None
            if bias is None
            else {"kind": bias.kind, "bounds": list(bias.bounds), "source": bias.source},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        self._evidence.load_state_dict(state["evidence"])
        self._roster.load_state_dict(state["roster"])
        self._cost_sums = np.asarray(state["cost_sums"], dtype=np.float64)
        self._cost_counts = np.asarray(state["cost_counts"], dtype=np.int64)
        self._cost = float(state["cost"])
        self.pulls = int(state["pulls"])
        self._piloting = bool(state["piloting"])
        self._n_pilot = int(state["n_pilot"])
        bias = state["bias"]
        self._bias = bias and Bias(bias["kind"], tuple(bias["bounds"]), bias["source"])
        costs = state["planned_costs"]
        self._planned_costs = None if costs is None else np.asarray(costs, dtype=np.float64)
        if not self._piloting:
            self._start()


def noise_is_estimated(problem: Problem) -> bool:
    """Whether the scale of the noise is not declared."""
    return not isinstance(problem.noise, (SubGaussian, Bounded))


def _radii(problem: Problem) -> list[Radius]:
    """Confidence radii that hold at all times whatever the rule that chooses the pulls, shape (M,).

    A pooled variance would not do: it is for pulls that do not depend on the values.
    """
    noise, n_fidelities = problem.noise, problem.n_fidelities
    if isinstance(noise, SubGaussian):
        return [MixtureRadius(noise.at(m, n_fidelities)) for m in range(n_fidelities)]
    if isinstance(noise, Bounded):
        return [MixtureRadius((noise.high - noise.low) / 2.0)] * n_fidelities
    return [StudentMixtureRadius()] * n_fidelities
