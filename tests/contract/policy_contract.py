"""What every policy promises, as tests.

    TestMyPolicy = contract(lambda problem: MyPolicy(problem, delta=0.01))

pytest then runs every test below on it. The instance is easy: at the target fidelity the best of
`MEANS` is far ahead of the others, and the biases are within the declared bounds.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Observation, Problem, Pull
from tests.contract.machine import machine

# Arms x fidelities. Arm 2 is the best at the target; the bias is at most 0.05.
MEANS = np.transpose(
    [
        [0.12, 0.48, 0.85, 0.12, 0.05],
        [0.08, 0.47, 0.88, 0.09, 0.07],
        [0.10, 0.45, 0.90, 0.10, 0.10],
    ]
)
BEST = 2
COSTS = (1.0, 3.0, 9.0)
SIGMA = 0.05


def seen(policy):
    """What a policy says, and asks for: two that agree in it have learned the same."""
    return repr(policy.recommend()), policy.ask(5), repr(policy.leader()), policy.cost


numbers = st.integers(0, 2**32 - 1)


def settings(max_examples):
    # One test serves many classes, each of which is another policy: that is meant.
    return hypothesis_settings(
        max_examples=max_examples, suppress_health_check=[HealthCheck.differing_executors]
    )


class AskAndTellContract:
    """What all policies promise, with time limits or without.

    A suite has `new`, which makes a policy, always with the same arguments, `observe`, which gives
    what comes of a pull, `anything`, which gives any pull with what comes of it, and checks of
    pulls, of answers and of the end.
    """

    most_pulls = 3000  # an easy race must be over after so many
    replayed = 3000  # so many are made again after loading

    def play(self, policy, rng, pulls):
        script = []
        while not policy.finished and len(script) < pulls:
            [pull] = policy.ask()
            script.append((pull, self.observe(rng, pull)))
            policy.tell(*script[-1])
        return script

    def go_on(self, policy, rng):
        for _ in range(10):
            pulls = policy.ask(3)
            self.check_pulls(policy, pulls, 3)
            for pull in pulls:
                policy.tell(pull, self.observe(rng, pull))
        self.check_end(policy)

    @settings(max_examples=3)
    @given(seed=numbers, n=st.integers(1, 9))
    def test_asking_is_pure(self, seed, n):
        rng = np.random.default_rng(seed)
        policy = self.new()
        self.play(policy, rng, int(rng.integers(0, 120)))
        before = seen(policy)
        pending = []
        for _ in range(3):
            first = policy.ask(n, tuple(pending))
            policy.recommend()
            _ = (policy.finished, policy.fidelity, policy.piloting, policy.leader())
            assert policy.ask(n, list(pending)) == first
            self.check_pulls(policy, first, n)
            pending += first
        # What is proposed accounts for what is under way.
        one_by_one = []
        for _ in range(6):
            one_by_one += policy.ask(1, one_by_one)
        assert policy.ask(6) == one_by_one
        assert seen(policy) == before

    @pytest.mark.parametrize(("seed", "workers"), [(0, 2), (1, 5), (2, 12)])
    def test_told_in_any_order_it_ends_with_the_right_answer(self, seed, workers):
        """Shuffled, delayed, evaluated twice, lost, failed now and then."""
        rng = np.random.default_rng(seed)
        policy = self.new()
        under_way = []
        told = 0
        while not policy.finished and told < 2 * self.most_pulls:
            free = workers - len(under_way)
            pulls = policy.ask(free, under_way) if free else []
            self.check_pulls(policy, pulls, free)
            under_way += pulls
            # Mostly an early one, sometimes the last: delays of very different lengths.
            at = int(rng.integers(len(under_way)) * rng.random())
            pull = under_way.pop(at)
            if rng.random() < 0.1:
                continue
            for _ in range(1 + (rng.random() < 0.1)):
                policy.tell(pull, self.observe(rng, pull, failure_rate=0.02))
                told += 1
            if told % 50 == 0:
                self.check_answer(policy)
        self.check_end(policy)

    @pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
    def test_whatever_workers_do_in_whatever_order(self):
        few = hypothesis_settings(max_examples=3, stateful_step_count=30)
        run_state_machine_as_test(machine(self), settings=few)

    @settings(max_examples=3)
    @given(seed=numbers, share=st.floats(0.0, 1.0))
    def test_replayed_it_goes_on_as_if_it_had_never_stopped(self, seed, share):
        policy = self.new()
        whole = self.play(policy, np.random.default_rng(seed), self.replayed)
        cut = int(share * len(whole))

        resumed = self.new()
        for pull, observation in whole[:cut]:
            resumed.tell(pull, observation)
        for pull, observation in whole[cut:]:
            assert not resumed.finished
            assert resumed.ask() == [pull]
            resumed.tell(pull, observation)
        assert resumed.finished == policy.finished
        assert seen(resumed) == seen(policy)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_a_withdrawn_arm_is_never_asked_for_nor_recommended(self, seed):
        rng = np.random.default_rng(seed)
        policy = self.new()
        self.play(policy, rng, int(rng.integers(0, 200)))
        policy.withdraw(self.best)
        assert self.best not in policy.active
        assert all(pull.arm != self.best for pull in policy.ask(8))
        self.check_pulls(policy, policy.ask(8), 8)
        assert policy.recommend().arm != self.best
        self.check_answer(policy)
        self.play(policy, rng, 2 * self.most_pulls)
        assert policy.finished
        answer = policy.recommend()
        assert (answer.arm, answer.certified) == (self.second_best, self.certifies)
        self.check_withdrawn(policy)

    def check_withdrawn(self, policy):
        pass

    def test_without_any_arm_left_there_is_an_answer(self):
        policy = self.new()
        for arm in policy.active.tolist():
            policy.withdraw(arm)
            self.check_answer(policy)
        assert policy.finished
        assert policy.ask(3) == []
        assert policy.recommend().arm is None
        assert not policy.recommend().certified

    @settings(max_examples=3)
    @given(seed=numbers)
    def test_anything_may_be_told_at_any_time(self, seed):
        rng = np.random.default_rng(seed)
        policy = self.new()
        told = []
        for _ in range(90):
            is_again = told and rng.random() < 0.1
            told.append(told[int(rng.integers(len(told)))] if is_again else self.anything(rng))
            policy.tell(*told[-1])
            self.check_answer(policy)
        self.check_pulls(policy, policy.ask(4), 4)
        assert policy.cost == pytest.approx(sum(observation.cost for _, observation in told))

    def test_no_global_randomness(self):
        state = np.random.get_state(legacy=False)  # noqa: NPY002
        script = self.play(self.new(), np.random.default_rng(3), 200)
        after = np.random.get_state(legacy=False)  # noqa: NPY002
        assert after["state"]["pos"] == state["state"]["pos"]
        assert np.array_equal(after["state"]["key"], state["state"]["key"])
        assert self.play(self.new(), np.random.default_rng(3), 200) == script


class PolicyContract(AskAndTellContract):
    best, second_best = BEST, 1
    certifies = True  # otherwise it ends with its budget, the right answer and no certificate
    noise = SubGaussian(SIGMA)
    bias = Bias.max(0.05, 0.05, 0.0)
    costs = COSTS

    def problem(self):
        n_fidelities = 0 if self.costs else len(COSTS)
        return Problem(5, self.costs, self.bias, self.noise, n_fidelities)

    def new(self):
        return self.make(self.problem())

    def anything(self, rng):
        pull = Pull(int(rng.integers(MEANS.shape[0])), int(rng.integers(MEANS.shape[1])))
        if rng.random() < 0.05:
            cost = COSTS[pull.fidelity]
            return pull, Observation(None, cost=cost, censored_at=cost)
        return pull, self.observe(rng, pull)

    # Values lie within [0, 1], so that they suit bounded noise too.
    def observe(self, rng, pull, failure_rate=0.0):
        cost = COSTS[pull.fidelity]
        if rng.random() < failure_rate:
            return Observation(None, cost=cost)
        noise = float(np.clip(SIGMA * rng.standard_normal(), -0.05, 0.05))
        return Observation(float(MEANS[pull.arm, pull.fidelity]) + noise, cost=cost)

    def check_answer(self, policy):
        recommendation = policy.recommend()
        json.dumps(recommendation.to_dict(), allow_nan=False)
        assert recommendation.arm is None or 0 <= recommendation.arm < len(MEANS)
        assert set(recommendation.survivors) == set(policy.active.tolist())
        assert recommendation.reason
        low, high = recommendation.interval
        assert low <= high
        if not math.isnan(recommendation.mean):
            count, mean, _ = policy.summary(recommendation.arm, recommendation.fidelity)
            assert count > 0
            assert recommendation.mean == mean
        assert policy.leader()[:2] == pytest.approx(
            (recommendation.arm, recommendation.mean), nan_ok=True
        )
        assert not recommendation.certified or policy.finished
        remaining = recommendation.remaining_cost
        assert remaining is None or remaining >= 0.0
        assert recommendation.cost == pytest.approx(policy.cost)

    def check_pulls(self, policy, pulls, expected):
        assert len(pulls) == expected
        for pull in pulls:
            assert isinstance(pull, Pull)
            assert 0 <= pull.arm < MEANS.shape[0]
            assert 0 <= pull.fidelity < MEANS.shape[1]

    def check_end(self, policy):
        recommendation = policy.recommend()
        assert policy.finished
        assert recommendation.certified == self.certifies
        assert recommendation.arm == BEST
        assert recommendation.remaining_cost == (0.0 if self.certifies else None)
        self.check_answer(policy)

    def test_a_new_policy_has_an_answer(self):
        policy = self.new()
        assert not policy.finished
        assert not policy.recommend().certified
        assert policy.cost == 0.0
        assert sorted(policy.active.tolist()) == list(range(len(MEANS)))
        assert policy.summary(0, 0)[0] == 0
        assert policy.summary(0, 0)[2] == math.inf
        self.check_answer(policy)

    def test_in_order_it_ends_with_the_right_answer(self):
        policy = self.new()
        script = self.play(policy, np.random.default_rng(0), self.most_pulls)
        self.check_end(policy)
        assert policy.cost == pytest.approx(sum(COSTS[pull.fidelity] for pull, _ in script))
        assert policy.recommend().pulls == len(script)
        self.go_on(policy, np.random.default_rng(1))

    def test_wrong_input_is_an_error_and_changes_nothing(self):
        policy = self.new()
        before = seen(policy)
        for cost in (math.nan, math.inf, -1.0):
            with pytest.raises(ValueError, match="cost"):
                policy.tell(Pull(0, 0), Observation(1.0, cost=cost))
        for arm in (-1, 5):
            with pytest.raises(ValueError, match=f"arm must be 0 to 4, got {arm}"):
                policy.tell(Pull(arm, 0), Observation(0.5, cost=1.0))
        for fidelity in (-1, 3):
            with pytest.raises(ValueError, match=f"fidelity must be 0 to 2, got {fidelity}"):
                policy.tell(Pull(0, fidelity), Observation(0.5, cost=1.0))
            with pytest.raises(ValueError, match="fidelity must be 0 to"):
                policy.ask(1, [Pull(0, fidelity)])
        with pytest.raises(ValueError, match="n must be at least 1, got 0"):
            policy.ask(0)
        assert seen(policy) == before


def contract(make, base=PolicyContract, **declared):
    return type("Contract", (base,), {"make": staticmethod(make), **declared})
