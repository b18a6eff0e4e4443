import numpy as np
import pytest

from mfhpo_optuna import plot_race
from tests.optuna.samplers.races import CERTIFICATE, PULL, pulls
from tests.optuna.visualization.figures import search, trace, valley

LEVELS = [1, 3, 9]
AGAIN = "evaluated again, for the certificate"
LUCKIEST = "luckiest value so far at epochs = 9"
MEANS = "mean of the new evaluations, with interval"
CLAIMS = "what the search had seen"


def is_replicate(trial):
    return "shortlist" in trial.user_attrs[PULL]


def drawn(figure, names):
    """Trial number, cost and value of every point of the traces, in the order of their costs."""
    points = [
        (int(text.split(":")[0].removeprefix("trial ")), x, y)
        for name in names
        for x, y, text in zip(*(trace(figure, name)[k] for k in ("x", "y", "text")), strict=True)
        if text is not None
    ]
    return sorted(points, key=lambda point: point[1])


def test_every_evaluation_is_drawn_once_where_it_was_paid(finished):
    answer = finished.sampler.recommendation(finished)
    figure = plot_race(finished)
    evaluated = [point for level in LEVELS for point in drawn(figure, [f"epochs = {level}"])]
    own = drawn(figure, [f"arm {answer.arm}, {'certified' if answer.certified else 'recommended'}"])
    numbers_of_search = {trial.number for trial in pulls(finished) if not is_replicate(trial)}
    again = drawn(figure, [AGAIN]) + [p for p in own if p[0] not in numbers_of_search]

    everything = sorted(evaluated + again)
    assert [number for number, _, _ in everything] == [trial.number for trial in pulls(finished)]
    paid = np.cumsum([trial.params["epochs"] for trial in pulls(finished)])
    assert [cost for _, cost, _ in everything] == paid.tolist()
    values = [trial.value for trial in pulls(finished)]
    assert [value for _, _, value in everything] == pytest.approx(values, rel=1e-5)
    assert {number for number, _, _ in again} == {
        trial.number for trial in pulls(finished) if is_replicate(trial)
    }


def test_the_step_line_is_the_best_at_the_target():
    study = search(lambda trial: -valley(trial), "maximize", budget=200)
    at_target = [
        trial.value
        for trial in pulls(study)
        if trial.params["epochs"] == 9 and not is_replicate(trial)
    ]
    figure = plot_race(study)
    steps = list(trace(figure, LUCKIEST).y)
    assert steps == sorted(steps)
    best = max(at_target)
    assert steps[0] == pytest.approx(at_target[0])
    assert steps[-1] == steps[-2] == pytest.approx(best)
    assert "higher is better" in figure.layout.yaxis.title.text
    low, high = figure.layout.yaxis.range
    assert low < best < high


def test_the_shortlist_shows_claim_mean_and_interval_with_the_winner_first(finished):
    certificate = finished.sampler.recommendation(finished).certificate
    figure = plot_race(finished)
    results = {result.name.removeprefix("arm "): result for result in certificate.candidates}
    labels = list(figure.layout.xaxis2.categoryarray)
    assert sorted(labels) == sorted(results)
    assert f"arm {labels[0]}" == certificate.candidates[certificate.winner].name
    others = [results[label].mean for label in labels[1:]]
    assert others == sorted(others)
    means, claims = trace(figure, MEANS), trace(figure, CLAIMS)
    assert list(means.x) == list(claims.x) == labels
    for label, mean, radius, claim in zip(
        labels, means.y, means.error_y.array, claims.y, strict=True
    ):
        low, high = results[label].interval
        assert (mean - radius, mean + radius) == pytest.approx((low, high))
        assert claim == results[label].claim
    [star] = [t for t in figure.data if t.marker.symbol == "star"]
    assert (star.x[0], star.y[0]) == (labels[0], certificate.mean)
    [note] = [a.text for a in figure.layout.annotations if a.text.startswith("luckiest")]
    luckiest = certificate.luckiest_result
    assert f"{luckiest.name} had promised {luckiest.claim:.4g}" in note
    assert f"by {abs(luckiest.gap):.3g} too {'much' if luckiest.gap >= 0 else 'little'}" in note


def test_before_there_is_a_certificate_the_picture_says_so():
    figure = plot_race(search(n_trials=20))
    [note] = [a.text for a in figure.layout.annotations]
    assert note.startswith("<b>No certificate yet</b><br>the search goes on")
    assert figure.layout.title.text.split("<br>")[0].endswith("in 20 trials")
    assert not any(t.name in (AGAIN, MEANS, CLAIMS) for t in figure.data)


def test_failures_are_marked_apart():
    def failing(trial):
        if trial.number < 2:  # before anything is known of the levels
            raise ArithmeticError
        value = valley(trial)
        if trial.number % 5 == 4:
            raise ArithmeticError
        return value

    study = search(failing, n_trials=40)
    failed = [t.number for t in study.trials if t.value is None and CERTIFICATE not in t.user_attrs]
    figure = plot_race(study)
    assert [number for number, _, _ in drawn(figure, ["failed"])] == failed
    for level in LEVELS:
        for number, _, value in drawn(figure, [f"epochs = {level}"]):
            assert value == pytest.approx(study.trials[number].value, rel=1e-5)
