import numpy as np
import pytest

from mfhpo_optuna.visualization.stories.search import tell_search
from tests.optuna.samplers.races import CERTIFICATE, PULL, pulls
from tests.optuna.visualization.figures import search, valley


def is_replicate(trial):
    return "shortlist" in trial.user_attrs[PULL]


def story_of(study):
    return tell_search(study, study.sampler)


def told(marks):
    """Trial number, cost and value of every mark."""
    return [
        (int(mark.lines[0].split(":")[0].removeprefix("trial ")), mark.cost, mark.value)
        for mark in marks
    ]


def test_every_evaluation_is_shown_once_where_it_was_paid(finished):
    story = story_of(finished)
    searched = [m for level in story.searched for m in told(level)] + told(story.answer)
    again = told(story.replicates) + told(story.answer_replicates)
    everything = sorted(searched + again)
    assert [number for number, _, _ in everything] == [trial.number for trial in pulls(finished)]
    paid = np.cumsum([trial.params["epochs"] for trial in pulls(finished)])
    assert [cost for _, cost, _ in everything] == paid.tolist()
    assert [value for _, _, value in everything] == [trial.value for trial in pulls(finished)]
    assert {number for number, _, _ in again} == {
        trial.number for trial in pulls(finished) if is_replicate(trial)
    }
    assert all(cost <= story.cost_of_search for _, cost, _ in searched)
    assert all(cost > story.cost_of_search for _, cost, _ in again)


def test_the_step_line_is_the_best_at_the_target():
    study = search(lambda trial: -valley(trial), "maximize", budget=200)
    at_target = [
        trial.value
        for trial in pulls(study)
        if trial.params["epochs"] == 9 and not is_replicate(trial)
    ]
    story = story_of(study)
    steps = [mark.value for mark in story.best]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (at_target[0], max(at_target))
    assert story.value_axis == "value (higher is better)"
    low, high = story.value_span
    assert low < steps[-1] < high


def test_the_shortlist_has_claim_mean_and_interval_with_the_winner_first(finished):
    certificate = finished.sampler.recommendation(finished).certificate
    story = story_of(finished)
    results = {result.name: result for result in certificate.candidates}
    labels = [finalist.label for finalist in story.finalists]
    assert story.has_winner
    assert sorted(labels) == sorted(results)
    assert labels[0] == certificate.candidates[certificate.winner].name
    others = [finalist.mean for finalist in story.finalists[1:]]
    assert others == sorted(others)
    for finalist in story.finalists:
        result = results[finalist.label]
        assert finalist.claim == result.claim
        assert finalist.mean == pytest.approx(result.mean, nan_ok=True)
        assert finalist.interval == result.interval
    luckiest = certificate.luckiest_result
    text = " ".join(story.title)
    assert f"{luckiest.name}, had shown {luckiest.claim:.4g}" in text
    better = "better" if luckiest.gap >= 0 else "worse"
    assert f"{abs(luckiest.gap):.2g} {better} than its new mean" in text


def test_before_there_is_a_certificate_the_title_says_so():
    story = story_of(search(n_trials=20))
    assert story.title[0].endswith("leads, not certified")
    assert any(line.startswith("The search goes on") for line in story.title)
    assert any(line.endswith("in 20 trials") for line in story.title)
    assert story.finalists == ()
    assert story.cost_of_search is None


def test_failures_are_told_apart():
    def failing(trial):
        if trial.number < 2:  # before anything is known of the levels
            raise ArithmeticError
        value = valley(trial)
        if trial.number % 5 == 4:
            raise ArithmeticError
        return value

    study = search(failing, n_trials=40)
    failed = [t.number for t in study.trials if t.value is None and CERTIFICATE not in t.user_attrs]
    story = story_of(study)
    assert [number for number, _, _ in told(story.failed)] == failed
    # At the bad end of the axis.
    assert {mark.value for mark in story.failed} == {story.value_span[1]}
    for level in (*story.searched, story.answer):
        for number, _, value in told(level):
            assert value == study.trials[number].value
