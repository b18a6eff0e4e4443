"""State machines of the policies that keep to the contract by their own calls: blocks, a search
on a budget, a game."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from mfhpo import IISE, BlockElimination, Fidelity, Observation, Problem
from mfhpo.games import MFUCBPNE, Hyperparameters
from mfhpo.search import BudgetedSearch, DeclaredSearch, HalvingSearch, ModelSearch, SearchSpace
from mfhpo.search import Numeric as Range
from tests.contract.machine import machine
from tests.core.games.known_games import ON_A_GRID, step, tracking

COSTS = (1.0, 3.0, 9.0)


class Blocks:
    """Values of a block have its effect in common."""

    def new(self):
        return BlockElimination(Problem(4, costs=(1.0,)), epsilon=0.05)

    def observe(self, rng, pull, failure_rate):
        if rng.random() < failure_rate:
            return Observation(None, cost=1.0)
        effect = np.random.default_rng(pull.block).normal()
        return Observation(0.2 * pull.arm + effect + 0.05 * rng.normal(), cost=1.0)

    def check_pulls(self, policy, pulls, expected):
        assert len(pulls) <= expected  # a block that was begun must be complete before too many
        assert all(pull.block is not None and pull.arm in policy.active for pull in pulls)
        assert len(set(pulls)) == len(pulls)

    def check_answer(self, policy):
        answer = policy.recommend()
        assert not answer.certified or policy.finished
        assert answer.survivors == tuple(policy.active.tolist())


class Described(BudgetedSearch):
    """A search whose configurations are told to it with their values."""

    def tell(self, pull, observation):
        self.search.describe(pull.arm, {"x": self.x_of(pull.arm)})
        super().tell(pull, observation)

    @staticmethod
    def x_of(arm):
        return float(np.random.default_rng(arm).random())


class Search:
    def __init__(self, kind):
        self.kind = kind

    def new(self):
        search = self.kind(COSTS, initial=9, seed=0)
        search.space = SearchSpace({"x": Range()})
        return Described(search, budget=200.0, certify_share=0.5)

    def observe(self, rng, pull, failure_rate):
        cost = COSTS[pull.fidelity]
        if rng.random() < failure_rate:
            return Observation(None, cost=cost)
        return Observation(Described.x_of(pull.arm) + 0.05 * rng.normal(), cost=cost)

    def check_pulls(self, policy, pulls, expected):
        assert len(pulls) <= expected  # the budget may not do for more

    def check_answer(self, policy):
        assert not policy.recommend().certified or policy.finished


class Given(Search):
    """Configurations are given; a policy compares finalists, or the model's estimate ends it."""

    def __init__(self, **options):
        self.options = options

    def new(self):
        declared = DeclaredSearch.of(
            Fidelity("level", levels=[1, 2, 3], costs=COSTS),
            budget=150.0,
            certify_share=0.4,
            epsilon=0.1,
            candidates=[{"x": Described.x_of(arm)} for arm in range(10)],
        )
        return declared.race([1, 2, 3], seed=0, sign=1.0, certifier=self.options.get("policy"))


class AsPolicy(MFUCBPNE):
    """A game that is asked for several queries, and told observations."""

    def ask(self, n=1, pending=()):
        queries = []
        while len(queries) < n and (query := super().ask([*pending, *queries])) is not None:
            queries.append(query)
        return queries

    def tell(self, query, told):
        super().tell(query, getattr(told, "value", told))


class Game:
    """Its models are known: to fit them takes long."""

    model = Hyperparameters.shared(5.0, 5.0, correlations=[0.8, 0.8], noise=0.01, n_features=2)

    def new(self):
        return AsPolicy(ON_A_GRID, COSTS, budget=60.0, hyperparameters=[self.model] * 2)

    def observe(self, rng, query, failure_rate):
        failed = rng.random() < failure_rate
        value = [None, None] if failed else tracking(query.profile, 0)
        return SimpleNamespace(value=value, cost=sum(COSTS[level] for level in query.levels))

    def check_pulls(self, policy, queries, expected):
        assert len(queries) <= expected
        for query in queries:
            step(policy, query)

    def check_answer(self, policy):
        answer = policy.recommend()
        assert answer.finished == policy.finished


SUITES = {
    "blocks": (Blocks(), 40),
    "halving": (Search(HalvingSearch), 40),
    "search": (Search(ModelSearch), 40),
    "given": (Given(policy=IISE), 25),
    "game": (Game(), 15),
}


@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
@pytest.mark.parametrize("name", SUITES)
def test_whatever_workers_do_in_whatever_order(name):
    suite, steps = SUITES[name]
    few = settings(max_examples=3, stateful_step_count=steps)
    run_state_machine_as_test(machine(suite), settings=few)
