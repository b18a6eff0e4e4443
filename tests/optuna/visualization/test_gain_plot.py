import pytest

from mfhpo.racing.text import params_in_words
from mfhpo_optuna import plot_gain
from tests.optuna.samplers.time_limits.timed import LIMITS, make, run, score
from tests.optuna.visualization.figures import lines, trace


def test_gain_intervals_and_what_was_stopped():
    sampler = make(limits=LIMITS, reward_range=(-1.0, 0.0))
    study = run(sampler, lambda trial: score(trial, -1.0), 80, "minimize")
    answer = sampler.recommendation(study)
    figure = plot_gain(study)
    star = trace(figure, "recommended")
    assert (*star.x, *star.y) == pytest.approx((answer.limit, answer.gain), rel=1e-5)
    best = trace(figure, params_in_words(answer.params))
    place = list(best.x).index(answer.limit)
    assert best.y[place] == pytest.approx(answer.gain, rel=1e-5)
    low, high = answer.interval
    assert f"in [{low:.4g}, {high:.4g}]" in best.text[place]
    upper, lower = (one for one in figure.data if one.fill == "toself")
    assert all(
        any(shown == pytest.approx(end, rel=1e-4) for shown in upper.y) for end in (low, high)
    )
    points = [end for point in answer.survival for end in (point.low, point.high)]
    assert sorted(lower.y) == pytest.approx(sorted(points), rel=1e-4)
    assert lines(figure)[1].endswith(f", limit {answer.limit:g} s")
    assert any(f"{answer.censored:.0%} of them stopped" in line for line in lines(figure))
    assert figure.layout.yaxis.title.text == "gain of a trial (lower is better)"


def test_bounds_from_an_estimated_range_are_called_approximate():
    study = run(make(limits=LIMITS, reward_range=None), n_trials=10)
    words = " ".join(lines(plot_gain(study)))
    assert "the range of the values is estimated" in words
