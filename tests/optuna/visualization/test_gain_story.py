import pytest

from mfhpo_optuna.visualization.stories.gain import tell_gain
from tests.optuna.samplers.time_limits.timed import CENSORED, LIMIT, LIMITS, PULL, make, run, score


def test_gain_intervals_and_what_was_stopped():
    sampler = make(limits=LIMITS, reward_range=(-1.0, 0.0))
    study = run(sampler, lambda trial: score(trial, -1.0), 80, "minimize")
    answer = sampler.recommendation(study)
    story = tell_gain(study, sampler)
    assert (story.limit, story.gain) == (answer.limit, answer.gain)
    assert len(story.curves) == 3
    best = story.curves[0]
    assert best.label == f"arm {answer.arm}"
    place = best.limits.index(answer.limit)
    assert best.gains[place] == pytest.approx(answer.gain)
    assert best.intervals[place] == pytest.approx(answer.interval)
    assert best.survival_limits == tuple(LIMITS)
    assert best.survival == tuple(point.probability for point in answer.survival)
    assert [stops.bounds for stops in story.stops] == [(p.low, p.high) for p in answer.survival]
    played = [
        t for t in study.trials if PULL in t.user_attrs and t.user_attrs[PULL]["arm"] == answer.arm
    ]
    for stops in story.stops:
        at = [t for t in played if t.user_attrs[LIMIT] == stops.limit]
        assert stops.trials == len(at)
        assert stops.stopped == sum(CENSORED in t.user_attrs for t in at)
    assert story.title[0].startswith(f"Arm {answer.arm} of 3 leads, with a limit of")
    assert any(
        line.endswith(f"in 80 trials, {answer.censored:.0%} stopped") for line in story.title
    )
    assert story.gain_axis == "gain of a trial (lower is better)"
    assert "wrong with probability" in " ".join(story.title)


def test_bounds_from_an_estimated_range_claim_no_probability():
    sampler = make(limits=LIMITS, reward_range=None)
    study = run(sampler, n_trials=10)
    title = " ".join(tell_gain(study, sampler).title)
    assert "Bounds are approximate: the range of the values is estimated" in title
    assert "wrong with probability" not in title


def test_the_rival_is_the_best_that_another_arm_promises_surely():
    sampler = make(limits=LIMITS)
    study = run(sampler, n_trials=80)
    story = tell_gain(study, sampler)
    sure = [
        (low, curve.label, limit)
        for curve in story.curves[1:]
        for limit, (low, _) in zip(curve.limits, curve.intervals, strict=True)
    ]
    _, label, limit = max(sure)
    assert any(line.startswith(f"Next: {label} with {limit:.3g} s, ") for line in story.title)
