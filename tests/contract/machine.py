"""A policy in a machine that does to it, in any order, whatever workers and storages may do."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

CHOICE = st.integers(0, 10**6)  # of one of those under way


def machine(suite):
    """A state machine for the policy of a contract suite: its `new`, `observe` and checks.

    What is told goes to two policies. One of them is made anew, and told all again, now and then.
    """

    class Machine(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.policy, self.twin = suite.new(), suite.new()
            self.rng = np.random.default_rng(0)
            self.under_way, self.told = [], []

        @rule(n=st.integers(1, 4))
        def ask(self, n):
            pulls = self.policy.ask(n, self.under_way)
            if pulls or not self.policy.finished:  # no arm may be left
                suite.check_pulls(self.policy, pulls, n)
            self.under_way += pulls
            assert self.under_way or self.policy.finished

        @rule(times=st.integers(1, 8))
        def evaluate(self, times):
            """Some steps of a race, so that it comes to its end: what was asked first is late."""
            for _ in range(times):
                self.ask(4)
                while len(self.under_way) > 2:
                    self.tell(-1)
            if self.under_way:
                self.tell(0)

        @precondition(lambda self: self.under_way)
        @rule(choice=CHOICE)
        def tell(self, choice):
            self._tell(self.under_way.pop(choice % len(self.under_way)))

        @precondition(lambda self: self.under_way)
        @rule(choice=CHOICE)
        def duplicate(self, choice):
            """Two workers evaluate the same."""
            self._tell(self.under_way[choice % len(self.under_way)])

        @precondition(lambda self: self.under_way)
        @rule(choice=CHOICE)
        def fail(self, choice):
            self._tell(self.under_way.pop(choice % len(self.under_way)), failure_rate=1.0)

        @precondition(lambda self: self.under_way)
        @rule(choice=CHOICE)
        def lose(self, choice):
            self.under_way.pop(choice % len(self.under_way))

        def _tell(self, pull, failure_rate=0.0):
            observation = suite.observe(self.rng, pull, failure_rate)
            self.told.append((pull, observation))
            for policy in (self.policy, self.twin):
                policy.tell(pull, observation)

        @rule()
        def replay(self):
            self.policy = suite.new()
            for pull, observation in self.told:
                self.policy.tell(pull, observation)

        @invariant()
        def a_replay_knows_the_same(self):
            assert self.policy.finished == self.twin.finished
            assert self.policy.ask(2, self.under_way) == self.twin.ask(2, self.under_way)
            assert repr(self.policy.recommend()) == repr(self.twin.recommend())

        @invariant()
        def what_was_told_is_paid_for(self):
            paid = sum(observation.cost for _, observation in self.told)
            np.testing.assert_allclose(self.policy.cost, paid, rtol=1e-9)
            suite.check_answer(self.policy)

    return Machine
