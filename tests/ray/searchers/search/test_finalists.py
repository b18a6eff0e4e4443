"""Races whose budget does not pay for comparing all arms: cheap levels choose the finalists."""

import math

import numpy as np
import pytest

from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.search import ModelSearch
from mfhpo_ray import (
    IISESearch,
    MFSearch,
    recommendation,
)
from mfhpo_ray.experiment.configurations import decode, encode
from tests.ray.searchers.searching import (
    BEST_ARM,
    bowl,
    experiment_of,
    make,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")


def arms_of(n):
    return [{"x": float(x)} for x in np.linspace(-1.0, 1.0, n)]


MANY, BUDGET = arms_of(26), 26 * 9
# What is kept of it pays for a certificate.
MORE = {"arms": arms_of(60), "budget": 60 * 9, "measure": 5}
each_class = pytest.mark.parametrize("cls", BEST_ARM.values(), ids=BEST_ARM.keys())


def make_many(cls=IISESearch, **options):
    return make(cls, **{"arms": MANY, "budget": BUDGET, "sigma": 0.02, **options})


def loss(config):
    return bowl(config, scale=0.02)


@each_class
@pytest.mark.parametrize(("options", "certified"), [({}, False), (MORE, True)])
def test_cheap_levels_choose_finalists_which_are_evaluated_anew(cls, options, certified):
    search = make_many(cls, **options)
    configs = run(search, loss)
    answer = recommendation(search)
    assert answer.searched
    assert (answer.certified, answer.finished, answer.level) == (certified, True, 9)
    assert abs(answer.config["x"]) < 0.3
    n_arms = 60 if certified else 26
    assert answer.cost == sum(config["epochs"] for config in configs) <= 9 * n_arms
    assert answer.trials == len(configs)
    seeds = [config["seed"] for config in configs]
    assert len(set(seeds)) == len(seeds)
    at_target = {config["x"] for config in configs if config["epochs"] == 9}
    assert 2 <= answer.compared <= 4 <= answer.at_target == len(at_target) < n_arms
    words = str(answer)
    assert words.startswith("CERTIFIED" if certified else "NOT CERTIFIED")
    assert f"the {answer.compared} finalists of {n_arms} candidates" in words
    assert f"{answer.left['left at epochs=3']} left at epochs=3" in words
    assert decode(encode(answer)).to_dict() == answer.to_dict()


@each_class
@pytest.mark.parametrize("mode", ["min", "max"])
def test_finalists_are_compared_by_the_policy_with_the_options_of_the_user(cls, mode):
    search = make_many(cls, max_failures=7, delta=0.02, mode=mode)
    run(search, lambda config: loss(config) if mode == "min" else -loss(config))
    policy = experiment_of(search).runner.policy._finalists.certification().policy
    assert type(policy) is (GroupSequential if cls is MFSearch else cls._policy_class)
    assert policy.delta == 0.02
    assert policy.known.max_failures == 7
    if cls is not MFSearch:
        assert (policy.known.measure, policy.budget) == (0, math.inf)
    assert abs(search.recommendation().config["x"]) < 0.3


def _described(search):
    search.suggest("a")
    return experiment_of(search).runner.policy.search


def test_a_model_learns_from_scalars_also_in_nested_dictionaries():
    arms = [{"x": k, "model": {"kind": "ab"[k % 2]}} for k in range(26)]
    search = _described(make_many(arms=arms))
    assert isinstance(search, ModelSearch)
    assert search.space.parameters.keys() == {"x", "model/kind"}
