"""What plotly draws of a story; what the story says is tested beside it."""

import math

import plotly.io
import pytest

from mfhpo_optuna import plot_gain, plot_race
from mfhpo_optuna.visualization.stories.gain import tell_gain
from mfhpo_optuna.visualization.stories.race import tell_race
from mfhpo_optuna.visualization.stories.search import tell_search
from tests.optuna.samplers.time_limits.timed import make, run
from tests.optuna.visualization.figures import race, search, trace


def points(traces):
    """Where the traces have marks, with the digits that figures keep."""
    return {digits(x, y) for one in traces for x, y in zip(one.x, one.y, strict=True)}


def digits(x, y):
    return float(f"{float(f'{x:.6g}'):.5g}"), y  # drawn with six digits, which round again


def test_a_race_has_a_row_for_each_arm(certified):
    story = tell_race(certified, certified.sampler)
    figure = plot_race(certified)
    for line in story.title:
        assert line in figure.layout.title.text
    assert figure.layout.yaxis.ticktext[0] == f"<b>{story.rows[0].label}</b>"
    assert list(figure.layout.yaxis.ticktext[1:]) == [row.label for row in story.rows[1:]]
    low, high = story.value_span
    shown = points(t for t in figure.data if t.type == "scatter" and t.xaxis == "x")
    for place, row in enumerate(story.rows):
        assert digits(min(max(row.mean, low), high), place) in shown
    star = trace(figure, story.rows[0].label)
    assert star.marker.symbol == "star"
    assert star.x[0] + star.error_x.array[0] == pytest.approx(story.rows[0].interval[1], rel=1e-4)
    for level, name in enumerate(story.levels):
        bars = trace(figure, name)
        assert sum(bars.x) == pytest.approx(
            sum(end - begin for row in story.rows for at, begin, end in row.paid if at == level)
        )
    gone = [digits(row.left_at, place) for place, row in enumerate(story.rows) if row.exit]
    assert points([trace(figure, "eliminated")]) == set(gone)


def test_an_arm_beyond_the_axis_is_an_arrow_at_its_edge():
    arms = [{"x": x} for x in (0.0, 0.05, 0.1, 0.12, 0.15, 0.2, 1.0)]
    study = race(arms=arms, n_trials=60)
    story = tell_race(study, study.sampler)
    [far] = [place for place, row in enumerate(story.rows) if row.mean > story.value_span[1]]
    symbols = {
        (y, symbol)
        for t in plot_race(study).data
        if t.type == "scatter" and isinstance(t.marker.symbol, tuple)
        for y, symbol in zip(t.y, t.marker.symbol, strict=True)
    }
    assert (far, "triangle-right") in symbols
    assert story.rows[far].arm == 6


def test_a_search_has_a_row_for_each_finalist(finished):
    story = tell_search(finished, finished.sampler)
    figure = plot_race(finished)
    assert figure.layout.yaxis2.ticktext[0] == f"<b>{story.finalists[0].label}</b>"
    below = points(t for t in figure.data if t.xaxis == "x2" and t.mode == "markers")
    for place, finalist in enumerate(story.finalists):
        assert digits(finalist.claim, place) in below
        if math.isfinite(finalist.mean):
            assert digits(finalist.mean, place) in below
    above = [t for t in figure.data if t.xaxis == "x" and "markers" in t.mode]
    evaluations = [*story.searched, story.replicates, story.answer, story.answer_replicates]
    assert sum(len(t.x) for t in above) == sum(map(len, evaluations))


def test_a_search_without_a_certificate_has_one_panel():
    figure = plot_race(search(n_trials=20))
    assert {trace.xaxis for trace in figure.data} == {"x"}
    assert figure.layout.title.text.count("<br>") >= 2


def test_gain_has_a_band_and_a_star():
    study = run(make(), n_trials=80)
    story = tell_gain(study, study.sampler)
    figure = plot_gain(study)
    star = trace(figure, "recommended")
    assert (star.x, star.y) == ((story.limit,), (story.gain,))
    best = story.curves[0]
    line = trace(figure, best.label)
    assert list(line.x) == list(best.limits)
    assert list(line.y) == pytest.approx(list(best.gains), rel=1e-5)
    [band] = [t for t in figure.data if t.fill == "toself" and t.xaxis == "x"]
    ends = {end for interval in best.intervals for end in interval if math.isfinite(end)}
    assert sorted(set(band.y)) == pytest.approx(sorted(ends), rel=1e-4)


def test_names_are_no_markup():
    study = race(
        lambda trial: trial.suggest_float("x", 0, 1) * trial.suggest_int("<b>", 1, 9),
        n_trials=3,
        arms=[{"x": 0.1}, {"x": 0.9}],
        sigma=0.1,
        fidelity="<b>",
    )
    figure = plot_race(study)
    shown = [figure.layout.title.text, *(t.name for t in figure.data if t.name)]
    assert any("&lt;b&gt;" in text for text in shown)
    assert not any("<b> =" in text for text in shown)


def test_quotation_marks_are_shown_as_they_are():
    study = race(
        lambda trial: (
            len(trial.suggest_categorical('a "b"', ["it's", '"c"']))
            + 0.0 * trial.suggest_int("epochs", 1, 9)
        ),
        n_trials=3,
        arms=[{'a "b"': "it's"}, {'a "b"': '"c"'}],
        sigma=0.1,
    )
    figure = plot_race(study).to_json()
    assert r"""a \"b\" = \"c\"""" in figure
    assert "&quot;" not in figure
    assert "&#x27;" not in figure


def test_the_template_is_the_user_s(certified, monkeypatch):
    monkeypatch.setattr(plotly.io.templates, "default", "plotly_dark")
    figure = plot_race(certified)
    assert figure.layout.template == plotly.io.templates["plotly_dark"]
    assert figure.layout.font.color is None
