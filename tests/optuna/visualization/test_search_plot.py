import math

import numpy as np
import pytest

from mfhpo_optuna import plot_race
from tests.optuna.samplers.races import PULL, pulls
from tests.optuna.visualization.figures import lines, row_labels, search, trace, valley


def is_replicate(trial):
    return "shortlist" in trial.user_attrs[PULL]


def marks(figure, panel="x"):
    """Trial number, cost and value of every evaluation in the upper panel."""
    return [
        (int(text.split(":")[0].removeprefix("trial ")), x, y)
        for one in figure.data
        if one.xaxis == panel and "markers" in one.mode
        for x, y, text in zip(one.x, one.y, one.text, strict=True)
    ]


def test_every_evaluation_is_shown_once_where_it_was_paid(finished):
    figure = plot_race(finished)
    shown = sorted(marks(figure))
    assert [number for number, _, _ in shown] == [trial.number for trial in pulls(finished)]
    paid = np.cumsum([trial.params["epochs"] for trial in pulls(finished)])
    assert [cost for _, cost, _ in shown] == paid.tolist()
    values = [trial.value for trial in pulls(finished)]
    assert [value for _, _, value in shown] == pytest.approx(values, rel=1e-5)
    again = {trial.number for trial in pulls(finished) if is_replicate(trial)}
    border = figure.layout.shapes[0].x0
    assert {number for number, cost, _ in shown if cost > border} == again


def test_no_evaluation_of_the_winner_is_cut_off():
    def best_but_for_outliers(trial):
        x, epochs = trial.suggest_int("x", 0, 7), trial.suggest_int("epochs", 1, 9)
        values = (0.0, 0.9) if x == 3 and epochs == 9 else (0.2 * (x != 3) + 0.3,)
        return values[trial.number % 3 % len(values)] + 1e-3 * trial.number

    study = search(best_but_for_outliers)
    answer, figure = study.sampler.recommendation(study), plot_race(study)
    assert answer.params == {"x": 3}
    own = [y for t in figure.data if (t.name or "").startswith("x=3") for y in t.y]
    low, high = figure.layout.yaxis.range
    assert low < min(own) < 0.9 < max(own) < high


def test_the_step_line_is_the_best_at_the_target():
    study = search(lambda trial: -valley(trial), "maximize", budget=200)
    searched = [trial for trial in pulls(study) if not is_replicate(trial)]
    at_target = [trial.value for trial in searched if trial.params["epochs"] == 9]
    figure = plot_race(study)
    steps = list(trace(figure, "luckiest value so far, epochs = 9").y)
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == pytest.approx((at_target[0], max(at_target)), rel=1e-5)
    assert figure.layout.yaxis.title.text == "value (higher is better)"
    low, high = figure.layout.yaxis.range
    assert low < steps[-1] < high


def test_the_finalists_have_claim_mean_and_whole_interval_with_the_winner_first(finished):
    certificate = finished.sampler.recommendation(finished).certificate
    results = {result.name: result for result in certificate.candidates}
    figure = plot_race(finished)
    first, *others = row_labels(figure, "y2")
    labels = [first.removeprefix("<b>").removesuffix("</b>"), *others]
    assert first.startswith("<b>")
    assert labels[0] == certificate.candidates[certificate.winner].name
    assert sorted(labels) == sorted(results)
    low, high = figure.layout.xaxis2.range
    below = [one for one in figure.data if one.xaxis == "x2" and one.mode == "markers"]
    dots, _, claims = below
    assert list(claims.x) == pytest.approx([results[name].claim for name in labels], rel=1e-5)
    for row, mean in zip(dots.y, dots.x, strict=True):
        result = results[labels[row]]
        assert mean == pytest.approx(result.mean, rel=1e-5)
        if math.isfinite(result.interval[0]):
            assert low < result.interval[0]
            assert result.interval[1] < high
    words = " ".join(lines(figure))
    luckiest = certificate.luckiest_result
    assert f"luckiest: {luckiest.name}, promised {luckiest.claim:.5g}" in words
