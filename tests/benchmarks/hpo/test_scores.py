import numpy as np
import pytest

from benchmarks.hpo.record import Record
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.scores import Comparison, curves, duels, normalised, ratios, regrets, summary
from tests.benchmarks.hpo.made_up import record

REFERENCES = {"a": Reference(100.0, 80.0), "b": Reference(1.0, 0.0)}


def two_methods():
    records = [
        record("x", "a", 0, [(5.0, 90.0, 91.0), (20.0, 96.0, 99.0)], best_tried=96.1),
        record("x", "a", 1, [(20.5, 98.0, 97.0)], best_tried=99.0, crash="it broke"),
        record("x", "b", 0, [(10.0, 0.5, None)]),
        record("x", "b", 1, [(1.0, 1.0, None)]),
        record("y", "a", 0, [(1.0, 90.0, 90.0)]),
        record("y", "a", 1, [(1.0, 90.0, 90.0)]),
        record("y", "b", 0, [(1.0, 0.5, 0.5)]),
        record("y", "b", 1, [(1.0, 0.5, 0.5)]),
    ]
    return Comparison.of(records, ["a", "b"])


class TestComparison:
    def test_what_is_missing_is_left_out(self):
        records = [
            record(method, task, seed, [])
            for method, counts in {"x": (4, 4, 1), "y": (3, 4, 0), "late": (1, 1, 0)}.items()
            for task, count in zip("abc", counts, strict=True)
            for seed in range(count)
        ]
        found = Comparison.of([*records, record("x", "other", 0, [])], ["a", "b", "c"])
        assert (found.methods, found.tasks, found.seeds) == (("x", "y"), ("a", "b"), (0, 1, 2))
        assert found.left_out == {"c": 1, "late": 2}

    @pytest.mark.parametrize(("asked", "compared"), [(4, ("x",)), (5, ("x", "y"))])
    def test_who_has_not_played_all_seeds_shortens_nobody_elses(self, asked, compared):
        counts = {"x": 4, "y": 3}
        records = [record(name, "a", seed, []) for name in counts for seed in range(counts[name])]
        found = Comparison.of(records, ["a"], range(asked))
        assert found.methods == compared
        assert found.seeds == tuple(range(min(counts[name] for name in compared)))

    def test_the_last_of_two_records_of_a_run_counts(self):
        found = Comparison.of(
            [record("x", "a", 0, [(1.0, 1.0, None)]), record("x", "a", 0, [(1.0, 2.0, None)])],
            ["a"],
        )
        assert found.records["x", "a", 0].value == (2.0,)

    def test_budgets_must_agree_and_truths_be_known(self):
        with pytest.raises(ValueError, match=r"one budget, got \[50.0, 100.0\]"):
            Comparison.of([record("x", "a", 0, []), record("y", "a", 0, [], budget=50.0)], ["a"])
        unknown = Record.from_dict(
            record("x", "a", 0, [(1.0, 2.0, None)]).to_dict() | {"value": [None]}
        )
        with pytest.raises(ValueError, match=r"those of \['a'\] lack some"):
            Comparison.of([unknown], ["a"])


class TestRegrets:
    def test_the_last_recommendation_within_the_budget(self):
        losses = regrets(two_methods(), REFERENCES)
        assert losses.shape == (2, 2, 2, 4)
        # Nothing yet is as good as the median, 20 points below the best.
        np.testing.assert_allclose(losses[0, 0], [[10, 4, 4, 4], [20, 20, 2, 2]])
        np.testing.assert_allclose(losses[0, 1], [[0.5] * 4, [0.0] * 4])
        percent = normalised(losses, two_methods(), REFERENCES)
        np.testing.assert_allclose(percent[0, 0], [[50, 20, 20, 20], [100, 100, 10, 10]])
        np.testing.assert_allclose(percent[1, 1], 50.0)

    def test_time_counts(self):
        records = [record("x", "a", 0, [(5.0, 90.0, 0.0), (20.0, 96.0, 0.0)], seconds=(60.0, 60.0))]
        found = Comparison.of(records, ["a"])
        losses = regrets(found, REFERENCES, seconds={"a": 12.0})
        # 60 s are 5 evaluations: the steps are made at 10 and 25.
        np.testing.assert_allclose(losses[0, 0, 0], [10, 10, 4, 4])

    def test_curves(self):
        found = curves(two_methods(), REFERENCES, points=3)
        np.testing.assert_allclose(found.budgets, [1.0, 10.0, 100.0])
        # Of x: (100 + 100 + 100 + 0) / 4, (50 + 100 + 50 + 0) / 4, (20 + 10 + 50 + 0) / 4.
        np.testing.assert_allclose(found.means, [[75.0, 50.0, 20.0], [50.0, 50.0, 50.0]])
        assert np.all(found.ends[:, 0] <= found.means)
        assert np.all(found.means <= found.ends[:, 1])


def test_summary_by_hand():
    first, second = summary(two_methods(), REFERENCES, epsilon=1.0)
    assert first["method"] == "x"
    assert first["points"] == [7.625, 6.125, 1.625, 1.625]
    assert first["percent"] == [50.0, 42.5, 20.0, 20.0]
    assert second["percent"] == [50.0] * 4
    # At 10: a tie (50, 50), a loss, a tie, a win. At 100: wins, but for a tie.
    assert first["rank"] == [1.5, 1.375, 1.125, 1.125]
    assert second["rank"] == [1.5, 1.625, 1.875, 1.875]
    # Claims: 91 - 90; 99 - 96; the same, and 97 - 98.
    assert first["claim_gap"] == [1.0, 3.0, 1.0, 1.0]
    assert first["claim_gap_absolute"] == [1.0, 3.0, 2.0, 2.0]
    assert first["claim_gap_percent"] == [5.0, 15.0, 5.0, 5.0]
    assert second["claim_gap"] == [0.0] * 4
    # 96 is within 1 % of 20 points of 96.1, but 98 is not so near to 99; 0.5 and 1 are above 0.
    assert first["epsilon_best"] == 0.75
    assert (first["runs"], first["failures"], first["crashes"]) == (4, 4, 1)
    assert second["crashes"] == 0
    assert first["milliseconds"] == 2.0
    low, high = first["interval"][0]
    assert low < 50.0 < high


class TestAgainstOthers:
    def comparison(self):
        """Of 10 seeds: x is better than y on a, hardly different from it on b."""
        values = {
            ("x", "a"): lambda seed: 99.0 - 0.1 * seed,
            ("y", "a"): lambda seed: 97.0 - 0.2 * seed,
            ("x", "b"): lambda seed: 0.5 + 0.01 * seed,
            ("y", "b"): lambda seed: 0.5 + 0.01 * seed + 0.001 * (-1) ** seed,
        }
        records = [
            record(method, task, seed, [(15.0, value(seed), None)])
            for (method, task), value in values.items()
            for seed in range(10)
        ]
        return Comparison.of(records, ["a", "b"])

    def test_wins_ties_and_losses(self):
        found = self.comparison()
        percent = normalised(regrets(found, REFERENCES), found, REFERENCES)
        [row] = duels("x", percent, found)
        assert (row["method"], row["opponent"]) == ("x", "y")
        assert row["wins"] == [0, 1, 1, 1]
        assert row["ties"] == [2, 1, 1, 1]
        assert row["losses"] == [0, 0, 0, 0]
        # On a all of x are better; on b, of 100 pairs, 45 are, and 50 if y is 0.001 worse.
        assert row["better"][0] == 0.5
        assert row["better"][-1] == pytest.approx((1.0 + 0.5) / 2)
        [turned] = duels("y", percent, found)
        assert turned["losses"] == [0, 1, 1, 1]
        assert turned["better"][-1] == pytest.approx(1.0 - row["better"][-1])

    def test_ratio_to_the_best_other(self):
        found = self.comparison().of_tasks(["a"])
        points = regrets(found, REFERENCES)
        rows = ratios("x", ["y"], points, found)
        # 20 of 20 while nobody says anything; then 1.45 of 3.9 points.
        assert [row["best"] for row in rows] == ["y"] * 4
        assert [row["ratio"] for row in rows] == [1.0] + [0.3718] * 3
        assert rows[0]["interval"] == [1.0, 1.0]
        low, high = rows[1]["interval"]
        assert low < 0.3718 < high < 0.5
