"""MF-GRAD: pulls that follow the gradient of what a certificate needs.

Poiani, Degenne, Kaufmann, Metelli and Restelli, "Optimal Multi-Fidelity Best-Arm Identification",
NeurIPS 2024.
"""

import math
from numbers import Real
from typing import Any, Literal

import numpy as np

from mfhpo._validation import check_choice, check_count, check_instance, check_positive, unwrapped
from mfhpo.identification.best_arm import only_steers
from mfhpo.identification.likelihood.likelihood import OwnBiasLikelihood
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.options import LearningRate

_LARGEST_GRADIENT = 1e150  # the square of which is finite


class MFGrad(MFTopTwo):
    """MF-GRAD, the gradient method that is asymptotically optimal in cost.

    It keeps shares omega of the cost for all pairs (arm, fidelity). After every pull it finds the
    alternative that is hardest to rule out if cost is spent by these shares, moves the shares
    towards the pairs that tell most about it per cost (exponentiated gradient), and pulls the pair
    that lags most behind its share; a vanishing part of the pulls is spread evenly. It begins with
    one pull of every pair. While more than `max_arms` are left, pulls are those of `MFTopTwo`.

    Parameters
    ----------
    learning_rate
        See `mfhpo.racing.options.MFGradOptions`. "adaptive" is
        ``sqrt(ln(K M) / sum of squared largest gradient entries)``.
    stop
        See `mfhpo.racing.options.MFGradOptions`. "published" stops when the likelihood ratio
        against all others reaches ln(K / delta) + M ln(ln t + 1), and eliminates no arm.
    max_arms
        See `mfhpo.racing.options.MFGradOptions`. At least 2.
    """

    # Values of a pair that a simulation tells at once, which make one step.
    _told_at_once = 1

    _saved = (
        *MFTopTwo._saved,
        "_gradients",
        "_largest_squares",
        "_planned_pulls",
        "_cost_per_pull",
        "_steps",
    )

    def __init__(
        self,
        problem: Problem,
        *,
        learning_rate: LearningRate = "adaptive",
        stop: Literal["mixture", "published"] = "mixture",
        max_arms: int = 32,
        **options: Any,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        check_choice("stop", stop, ("mixture", "published"))
        learning_rate = unwrapped(learning_rate)
        if isinstance(learning_rate, Real):
            check_positive("learning_rate", learning_rate, "; try 0.25")
        else:
            check_choice("learning_rate", learning_rate, ("adaptive",), " or a positive number")
        self._learning_rate = learning_rate
        self._published_stop = stop == "published"
        self._max_arms = check_count("max_arms", max_arms, 2)
        if self._published_stop and problem.n_arms > self._max_arms:
            raise ValueError(
                f"max_arms={max_arms} is below the {problem.n_arms} arms, none of which leaves on "
                f"the way with stop='published': raise max_arms, or leave stop='mixture'."
            )
        self._largest_squares = 0.0
        self._cost_per_pull = 1.0
        self._steps = 0
        steers = only_steers(problem, options.get("estimated_bias", "steer"))
        shape = (problem.n_arms, 1 if steers else problem.n_fidelities)
        self._gradients: FloatArray = np.zeros(shape)
        self._planned_pulls: FloatArray = np.zeros(shape)
        super().__init__(problem, **options)

    @property
    def threshold(self) -> float:
        """What the statistic against an arm must reach."""
        if not self._published_stop:
            return super().threshold
        n_arms, n_fidelities = self._gradients.shape
        time = math.log(max(math.e, float(self.pulls)))
        return float(
            np.log(n_arms / self._evidence.noise.delta) + n_fidelities * np.log(time + 1.0)
        )

    @property
    def _decides_at_target(self) -> bool:
        return not self._published_stop and super()._decides_at_target

    @property
    def _prior(self) -> float:
        return 0.0 if self._published_stop else super()._prior

    def _eliminable(self, others: IntArray, beaten: BoolArray) -> IntArray:
        # The published threshold grows with time: an arm must stay beaten until the end.
        if self._published_stop and not beaten.all():
            return others[:0]
        return super()._eliminable(others, beaten)

    def _conditions(self) -> tuple[str, ...]:
        if not self._published_stop:
            return super()._conditions()
        return (*super()._conditions(), "the published stop of MF-GRAD keeps delta, unproven")

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        if len(arms) > self._max_arms:
            return super()._race_pull(counts, arms)
        if self._target_only:
            first = self._first_pull(counts, arms)
            if first is not None:
                return first
        lowest = range(self.problem.n_fidelities)[self._levels][0]
        counts = counts[arms, self._levels]
        unseen = counts == 0
        if unseen.any():
            arm, fidelity = np.unravel_index(int(np.argmax(unseen)), unseen.shape)
            return Pull(int(arms[arm]), lowest + int(fidelity))
        lag = self._planned_pulls[arms] - counts
        # Ties go to the cheaper fidelity, then to the earlier arm.
        fidelity, arm = np.unravel_index(int(np.argmax(lag.T)), lag.T.shape)
        return Pull(int(arms[arm]), lowest + int(fidelity))

    def _judge_anew(self) -> None:
        # What was planned was for other arms, or for other bounds.
        self._gradients[:] = 0.0
        self._largest_squares = 0.0
        self._cost_per_pull = 1.0
        self._steps = 0
        super()._judge_anew()

    def _judge(self, fidelity: int) -> None:
        super()._judge(fidelity)
        arms = self.active
        decided = self.winner is not None or len(arms) < 2
        if self._standing is None or decided or len(arms) > self._max_arms:
            return
        if self._evidence.counts[arms, self._levels].all():
            self._step(arms)

    def _step(self, arms: IntArray) -> None:
        standing = self._standing
        assert standing is not None
        assert self._planned_costs is not None
        costs, counts = self._planned_costs[self._levels], self._evidence.counts[arms, self._levels]
        if self._steps == 0:
            self._planned_pulls[arms] = counts
            # Even shares of the cost.
            self._cost_per_pull = 1.0 / float(np.mean(1.0 / costs))
        variances = standing.likelihood.variances[arms]
        means = self._evidence.all_means(arms)[:, self._levels]
        # As if the pulls so far had been shared like this.
        pulls = self._shares(arms) / costs
        pulls *= counts.sum() / pulls.sum()
        spent = self._likelihood(arms, means, pulls, prior=0.0)
        if not spent.weights.any():  # the noise is not known anywhere
            self._plan_pulls(arms, np.full(variances.shape, 1.0 / variances.size))
            return
        leader = int(np.argmax(spent.centres))
        others = np.flatnonzero(np.arange(len(arms)) != leader)
        ratios, alternatives = spent.against(leader, others, self.epsilon)
        nearest = int(np.argmin(ratios))
        rival, alternative = int(others[nearest]), float(alternatives[nearest])
        above, below = spent.distances(leader, rival, alternative, self.epsilon)
        gradient = np.zeros(variances.shape)
        gradient[leader], gradient[rival] = above, below
        scale = self._cost_per_pull / (2.0 * costs)
        # Without noise a gradient would be infinite; this one can still be squared.
        # A bias can explain what lies on the far side of the alternative, but not at the target.
        explained = -1 if isinstance(spent, OwnBiasLikelihood) else None
        gradient[:, :explained] = np.maximum(gradient[:, :explained], 0.0)
        gradient = scale * gradient**2 / np.maximum(variances, 1e-100)
        gradient = np.minimum(gradient, _LARGEST_GRADIENT)
        self._gradients[arms] += self._told_at_once * gradient
        self._largest_squares += self._told_at_once * float(gradient.max()) ** 2
        self._plan_pulls(arms, self._shares(arms))

    def _shares(self, arms: IntArray) -> FloatArray:
        if self._learning_rate == "adaptive":
            logs = math.log(self._gradients[arms].size)
            rate = math.sqrt(logs / self._largest_squares) if self._largest_squares > 0.0 else 0.0
        else:
            rate = float(self._learning_rate)
        exponents = rate * self._gradients[arms]
        shares = np.exp(exponents - exponents.max())
        return np.asarray(shares / shares.sum())

    def _plan_pulls(self, arms: IntArray, shares: FloatArray) -> None:
        """Plan what follows: in proportion to shares over costs, and a part evenly."""
        assert self._planned_costs is not None
        self._steps += self._told_at_once
        costs = self._planned_costs[self._levels]
        pulls = shares / costs
        pulls /= pulls.sum()
        self._cost_per_pull = float((pulls * costs).sum())
        even = 1.0 / (4.0 * math.sqrt(self._steps))
        planned = (1.0 - even) * pulls + even / pulls.size
        self._planned_pulls[arms] += self._told_at_once * planned
