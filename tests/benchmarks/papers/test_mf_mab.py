import math

import numpy as np
import pytest

from benchmarks.papers.mf_mab_parts import PARTS
from benchmarks.papers.mf_mab_races import Settings, figure_1, lower_bound, table_3
from benchmarks.simulation.instances import BernoulliInstance


def test_table_3():
    # mu_km = .1 (k + 4) + .01 (m - 5): the best arm has .9 at the target, .86 at the cheapest.
    instance = table_3(3)
    assert instance.means[-1] == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9])
    assert instance.means[:, 4] == pytest.approx([0.86, 0.87, 0.88, 0.89, 0.9])
    assert instance.costs.tolist() == [1.0, 2.0, 3.0, 4.0, 15.0]
    assert (np.abs(instance.means - instance.means[-1]).max(axis=1) <= instance.xi + 1e-9).all()


class TestLowerBound:
    def test_by_hand(self):
        # One fidelity: both divergences are those of .5 and .75.
        instance = BernoulliInstance([[0.75, 0.5]], [2.0])
        of_the_best = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
        of_the_other = 0.5 * math.log(2.0 / 3.0) + 0.5 * math.log(2.0)
        expected = math.log(1.0 / 0.24) * 2.0 * (1.0 / of_the_best + 1.0 / of_the_other)
        assert lower_bound(instance, 0.1) == pytest.approx(expected)

    def test_a_cheaper_fidelity_helps_only_where_its_gap_is_positive(self):
        target = lower_bound(BernoulliInstance([[0.75, 0.5]], [2.0]), 0.1)
        means = [[0.75, 0.5], [0.75, 0.5]]
        useless = BernoulliInstance(means, [0.001, 2.0], xi=[0.25, 0.0])
        assert lower_bound(useless, 0.1) == pytest.approx(target)
        useful = BernoulliInstance(means, [0.001, 2.0], xi=[0.1, 0.0])
        assert lower_bound(useful, 0.1) < 0.1 * target

    def test_of_the_papers_instances(self):
        of_table_3 = [round(lower_bound(table_3(case), 0.1)) for case in (1, 2, 3, 4)]
        assert of_table_3 == [255, 301, 301, 301]
        assert [round(lower_bound(figure_1(name), 0.1)) for name in "ab"] == [105, 2251]


@pytest.mark.slow
def test_published_figures_of_table_3():
    outcome = PARTS["table3"](Settings(runs=6, seed=5, algorithms=("B", "top")))
    assert all(outcome.holds.values()), outcome.holds
    assert len(outcome.holds) == 3
    for row in outcome.rows:
        assert row["errors"] == row["uncertified"] == 0
        assert row["cost"] > 20 * row["lower_bound"]
        assert row["published"] is None or row["reading"] == "published"


@pytest.mark.slow
def test_the_index_is_cheaper_than_the_target_alone_where_that_is_dear():
    outcome = PARTS["table3"](Settings(runs=4, seed=6, algorithms=("A", "top")))
    assert outcome.holds["A is cheaper than the target alone in cases 2 to 4"]
