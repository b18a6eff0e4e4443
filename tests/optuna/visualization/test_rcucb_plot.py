"""What `plot_gain` draws, read from the figure."""

from __future__ import annotations

import optuna
import pytest

from mfhpo.censored import Linear
from mfhpo_optuna import ZoomingRCUCBSampler, plot_gain
from tests.optuna.samplers.time_limits.timed import (
    ARMS,
    CENSORED,
    LIMIT,
    LIMITS,
    PULL,
    make,
    run,
    score,
)

pytest.importorskip("plotly")
optuna.logging.set_verbosity(optuna.logging.WARNING)


def traces(figure, axis):
    return [trace for trace in figure.data if trace.xaxis == axis]


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_gain_intervals_and_what_was_stopped(direction, sign):
    sampler = make(limits=LIMITS, reward_range=tuple(sorted((0.0, sign))))
    study = run(sampler, lambda trial: score(trial, sign), 80, direction)
    figure = plot_gain(study)
    answer = sampler.recommendation(study)
    *curves, star = traces(figure, "x")
    assert star.name == f"recommended: {'highest lower' if sign > 0.0 else 'lowest upper'} end"
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
    better = "higher" if sign > 0.0 else "lower"
    assert figure.layout.yaxis.title.text == f"gain of a trial ({better} is better)"


def test_every_arm_has_its_own_limits_where_they_are_refined():
    sampler = ZoomingRCUCBSampler(
        ARMS, 4.0, smoothness=3.0, cost=Linear(0.05), reward_range=(0.0, 1.0)
    )
    study = run(sampler, n_trials=80)
    curves = traces(plot_gain(study), "x")[:-1]
    assert max(len(curve.x) for curve in curves) > 1
    assert all(curve.text[-1] == "4 s" for curve in curves)


def test_a_single_limit():
    axis = plot_gain(run(make(limits=[2.0]), n_trials=10)).layout.xaxis
    assert axis.tickvals == (2.0,)
    low, high = axis.range
    assert 10.0**low < 2.0 < 10.0**high


def test_another_sampler_for_a_study():
    study = run(make(), n_trials=30)
    expected = plot_gain(study)
    study.sampler = optuna.samplers.RandomSampler()
    with pytest.raises(TypeError, match=r"study\.sampler is a RandomSampler; pass sampler="):
        plot_gain(study)
    assert plot_gain(study, sampler=make()) == expected


def test_nothing_to_show_yet():
    study = optuna.create_study(direction="maximize", sampler=make(limits=3))
    study.optimize(score, n_trials=2)
    with pytest.raises(ValueError, match="limits are still being derived"):
        plot_gain(study)
