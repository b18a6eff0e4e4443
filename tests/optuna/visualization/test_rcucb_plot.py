import pytest

from mfhpo_optuna import plot_gain
from tests.optuna.samplers.time_limits.timed import CENSORED, LIMIT, LIMITS, PULL, make, run, score


def traces(figure, axis):
    return [trace for trace in figure.data if trace.xaxis == axis]


def test_gain_intervals_and_what_was_stopped():
    sampler = make(limits=LIMITS, reward_range=(-1.0, 0.0))
    study = run(sampler, lambda trial: score(trial, -1.0), 80, "minimize")
    figure = plot_gain(study)
    answer = sampler.recommendation(study)
    *curves, star = traces(figure, "x")
    assert star.name == "recommended: lowest upper end"
    assert (star.x, star.y) == ((answer.limit,), (answer.gain,))
    assert len(curves) == 3
    best = curves[0]
    assert best.name == f"arm {answer.arm}: x={answer.params['x']}"
    place = best.x.index(answer.limit)
    assert best.y[place] == pytest.approx(answer.gain)
    low, high = answer.interval
    assert best.y[place] + best.error_y.array[place] == pytest.approx(high)
    assert best.y[place] - best.error_y.arrayminus[place] == pytest.approx(low)
    survival, crosses = traces(figure, "x2")[:2]
    assert survival.x == LIMITS
    assert survival.y == pytest.approx([point.probability for point in answer.survival], abs=1e-9)
    for point, above, below in zip(
        answer.survival, survival.error_y.array, survival.error_y.arrayminus, strict=True
    ):
        assert point.probability + above == pytest.approx(point.high)
        assert point.probability - below == pytest.approx(point.low)
    played = [t for t in study.trials if t.user_attrs[PULL]["arm"] == answer.arm]
    at = [t for t in played if t.user_attrs[LIMIT] == crosses.x[-1]]
    stopped = sum(CENSORED in t.user_attrs for t in at)
    assert crosses.text[-1] == f"{stopped} of {len(at)} stopped"
    assert crosses.y[-1] == pytest.approx(stopped / len(at))
    assert f"After 80 trials, {answer.censored:.0%}" in figure.layout.title.text
    assert figure.layout.yaxis.title.text == "gain of a trial (lower is better)"
