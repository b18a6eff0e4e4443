import numpy as np
import pytest

from benchmarks.new_data_interval import SETTINGS, SHAPES, measure, plain_interval, scores_on_splits


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_models_learn_their_data(setting):
    rng = np.random.default_rng(0)
    score = setting.score(setting.draw(rng, 2_000), setting.draw(rng, 2_000))
    assert (0.7 if setting.is_classes else 0.5) < score < 0.95


def test_one_score_for_each_split():
    rng = np.random.default_rng(0)
    setting = SETTINGS[2]
    scores = scores_on_splits(setting, setting.draw(rng, setting.n), 6, 0.2, rng)
    assert len(set(scores)) == 6


def test_students_interval_by_hand():
    low, high = plain_interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2.0 - 2.4841, 2.0 + 2.4841), abs=1e-4)


def test_the_corrected_interval_holds_far_more_often_than_the_plain_one(monkeypatch):
    monkeypatch.setattr("benchmarks.new_data_interval._FITS_OF_TRUTH", 50)
    rows = measure(SETTINGS[2], runs=40)
    assert [(row["splits"], row["test share"]) for row in rows] == list(SHAPES)
    for row in rows:
        assert row["corrected, procedure"] > row["plain, procedure"]
        assert row["corrected, procedure"] > 0.8
