"""MF-GRAD: pulls that follow the gradient of what a certificate needs.

Poiani, Degenne, Kaufmann, Metelli and Restelli, "Optimal Multi-Fidelity Best-Arm Identification",
NeurIPS 2024.
"""

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any, Literal

import numpy as np

from mfhpo._validation import check_choice, check_positive, unwrapped
from mfhpo.identification.likelihood.likelihood import OwnBias
from mfhpo.identification.likelihood.likelihood_ratio import LikelihoodStop, Standing
from mfhpo.identification.top_two import TopTwo, check_options
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Kind
from mfhpo.problem import Problem, Pull
from mfhpo.racing.options import LearningRate
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Verdict

_LARGEST_GRADIENT = 1e150  # the square of which is finite

# The gradient is followed once at most so many arms are left; before, it would take long.
_MOST_ARMS = 32


class Gradient:
    """The rule of `MFGrad`."""

    def __init__(self, stop: LikelihoodStop, learning_rate: LearningRate) -> None:
        self.stop, self.needs, self.plan = stop, stop.needs, stop.plan
        self._top_two = TopTwo(stop)
        self._learning_rate = learning_rate
        self.told_at_once = 1  # values of a pair that make one step, more in simulations

    def _begin(self, known: Known) -> None:
        shape = known.problem.n_arms, len(known.compared)
        self.gradients: FloatArray = np.zeros(shape)
        self.planned_pulls: FloatArray = np.zeros(shape)
        self._largest_squares = 0.0
        self._cost_per_pull = 1.0
        self.steps = 0

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull (see `Rule.propose`)."""
        arms = known.arms
        if self._are_too_many(arms):
            return self._top_two.propose(known, expected)
        if known.target_only:
            first = self._top_two.first_pull(known, expected.counts)
            if first is not None:
                return first
        lowest = known.compared[0]
        counts = expected.counts[arms, known.levels]
        unseen = counts == 0
        if unseen.any():
            arm, fidelity = np.unravel_index(int(np.argmax(unseen)), unseen.shape)
            return Pull(int(arms[arm]), lowest + int(fidelity))
        lag = self.planned_pulls[arms] - counts
        # Ties go to the cheaper fidelity, then to the earlier arm.
        fidelity, arm = np.unravel_index(int(np.argmax(lag.T)), lag.T.shape)
        return Pull(int(arms[arm]), lowest + int(fidelity))

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield those of the stop, then make a step (see `Rule.verdict`)."""
        if fidelity is None:
            self._begin(known)  # what was planned was for other arms, or for other bounds
        yield from self.stop.verdict(known, fidelity)
        standing, arms = self.stop.standing, known.arms
        decided = known.winner is not None or len(arms) < 2
        if standing is None or decided or self._are_too_many(arms):
            return
        if known.evidence.counts[arms, known.levels].all():
            self._step(known, standing)

    def _are_too_many(self, arms: IntArray) -> bool:
        return len(arms) > _MOST_ARMS and not self.stop.published  # which drops none on the way

    def _step(self, known: Known, standing: Standing) -> None:
        arms = known.arms
        costs, counts = known.costs[known.levels], known.evidence.counts[arms, known.levels]
        if self.steps == 0:
            self.planned_pulls[arms] = counts
            # Even shares of the cost.
            self._cost_per_pull = 1.0 / float(np.mean(1.0 / costs))
        variances = standing.likelihood.variances[arms]
        means = known.evidence.means(arms, known.levels)
        # As if the pulls so far had been shared like this.
        pulls = self._shares(arms) / costs
        pulls *= counts.sum() / pulls.sum()
        spent = self.stop.likelihood(known, arms, means, pulls, prior=0.0)
        if not spent.weights.any():  # the noise is not known anywhere
            self._plan_pulls(known, np.full(variances.shape, 1.0 / variances.size))
            return
        leader = int(np.argmax(spent.centres))
        others = np.flatnonzero(np.arange(len(arms)) != leader)
        ratios, alternatives = spent.against(leader, others, known.epsilon)
        nearest = int(np.argmin(ratios))
        rival, alternative = int(others[nearest]), float(alternatives[nearest])
        above, below = spent.distances(leader, rival, alternative, known.epsilon)
        gradient = np.zeros(variances.shape)
        gradient[leader], gradient[rival] = above, below
        scale = self._cost_per_pull / (2.0 * costs)
        # Without noise a gradient would be infinite; this one can still be squared.
        # A bias can explain what lies on the far side of the alternative, but not at the target.
        explained = -1 if isinstance(spent, OwnBias) else None
        gradient[:, :explained] = np.maximum(gradient[:, :explained], 0.0)
        gradient = scale * gradient**2 / np.maximum(variances, 1e-100)
        gradient = np.minimum(gradient, _LARGEST_GRADIENT)
        self.gradients[arms] += self.told_at_once * gradient
        self._largest_squares += self.told_at_once * float(gradient.max()) ** 2
        self._plan_pulls(known, self._shares(arms))

    def _shares(self, arms: IntArray) -> FloatArray:
        if self._learning_rate == "adaptive":
            logs = math.log(self.gradients[arms].size)
            rate = math.sqrt(logs / self._largest_squares) if self._largest_squares > 0.0 else 0.0
        else:
            rate = float(self._learning_rate)
        exponents = rate * self.gradients[arms]
        shares = np.exp(exponents - exponents.max())
        return np.asarray(shares / shares.sum())

    def _plan_pulls(self, known: Known, shares: FloatArray) -> None:
        self.steps += self.told_at_once
        costs = known.costs[known.levels]
        pulls = shares / costs
        pulls /= pulls.sum()
        self._cost_per_pull = float((pulls * costs).sum())
        even = 1.0 / (4.0 * math.sqrt(self.steps))
        planned = (1.0 - even) * pulls + even / pulls.size
        self.planned_pulls[known.arms] += self.told_at_once * planned


class MFGrad(Race):
    """MF-GRAD, the gradient method that is asymptotically optimal in cost.

    It keeps shares of the cost for all pairs (arm, fidelity). After every pull it finds the
    alternative that is hardest to rule out if cost is spent by these shares, moves the shares
    towards the pairs that tell most about it per cost (exponentiated gradient), and pulls the pair
    that lags most behind its share; a vanishing part of the pulls is spread evenly. While more than
    32 arms are left, pulls are those of `MFTopTwo`.

    Parameters
    ----------
    learning_rate
        See `mfhpo.racing.options.MFGradOptions`. "adaptive" is
        ``sqrt(ln(K M) / sum of squared largest gradient entries)``.
    stop
        See `mfhpo.racing.options.MFGradOptions`. "published" stops when the likelihood ratio
        against all others reaches ln(K / delta) + M ln(ln t + 1), and eliminates no arm.
    variant, radius
        See `mfhpo.MFTopTwo`.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        learning_rate: LearningRate = "adaptive",
        stop: Literal["mixture", "published"] = "mixture",
        variant: Kind | None = None,
        **options: Any,
    ) -> None:
        check_options("MFGrad", problem, variant, options)
        check_choice("stop", stop, ("mixture", "published"))
        learning_rate = unwrapped(learning_rate)
        if isinstance(learning_rate, Real):
            check_positive("learning_rate", learning_rate, "; try 0.25")
        else:
            check_choice("learning_rate", learning_rate, ("adaptive",), " or a positive number")
        rule_of_stop = LikelihoodStop(variant, published=stop == "published")
        super().__init__(problem, Gradient(rule_of_stop, learning_rate), **options)
