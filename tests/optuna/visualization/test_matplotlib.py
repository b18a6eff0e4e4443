"""The twins by matplotlib show the same stories."""

import sys

import pytest

from mfhpo_optuna.visualization.stories.gain import tell_gain
from mfhpo_optuna.visualization.stories.race import tell_race
from mfhpo_optuna.visualization.stories.search import tell_search
from tests.optuna.samplers.time_limits.timed import make, run
from tests.optuna.visualization.figures import race


@pytest.fixture
def twins():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from mfhpo_optuna.visualization import matplotlib as twins

    yield twins
    matplotlib.pyplot.close("all")


def texts(figure):
    figure.canvas.draw()
    return [text.get_text() for text in figure.texts]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def row_labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_a_race(twins, certified):
    story = tell_race(certified, certified.sampler)
    figure = twins.plot_race(certified)
    worth, paid = figure.axes
    assert texts(figure) == list(story.title)
    assert row_labels(worth) == [row.label for row in story.rows]
    assert worth.get_xlim() == story.value_span
    # The first containers of bars are lanes, then one for each level.
    lanes, *levels = paid.containers
    assert [bar.get_width() for bar in lanes] == [row.left_at for row in story.rows]
    widths = sum(bar.get_width() for level in levels for bar in level)
    assert widths == pytest.approx(story.cost)
    played = {story.levels[level] for row in story.rows for level, _, _ in row.paid}
    assert set(legend(figure)) == {"eliminated", "in the race", *played, story.rows[0].label}


def test_a_search(twins, finished):
    story = tell_search(finished, finished.sampler)
    figure = twins.plot_race(finished)
    top, bottom = figure.axes
    assert texts(figure) == list(story.title)
    assert top.get_ylim() == story.value_span
    assert row_labels(bottom) == [finalist.label for finalist in story.finalists]
    assert story.answer_label in legend(figure)


def test_gain(twins):
    study = run(make(), n_trials=80)
    story = tell_gain(study, study.sampler)
    figure = twins.plot_gain(study)
    gains, _ = figure.axes
    assert texts(figure) == list(story.title)
    best = next(line for line in gains.lines if line.get_label() == story.curves[0].label)
    assert best.get_ydata().tolist() == list(story.curves[0].gains)


def test_a_dollar_is_no_formula(twins, certified):
    from mfhpo_optuna.visualization.matplotlib.style import plain

    figure = twins.plot_race(certified)
    figure.text(0.5, 0.5, plain("$x = 1, $y = 2"))
    figure.canvas.draw()  # raises for a formula that it cannot read
    assert plain("$x") == r"\$x"


def test_a_legend_has_levels_whose_name_begins_with_an_underscore(twins):
    def objective(trial):
        return trial.suggest_float("x", 0, 1) * trial.suggest_int("_epochs", 1, 3)

    study = race(objective, n_trials=4, fidelity="_epochs", sigma=0.1)
    assert any("_epochs = " in text for text in legend(twins.plot_race(study)))


@pytest.mark.parametrize("name", ["plot_gain", "plot_race"])
def test_without_matplotlib_the_error_names_it(twins, name, monkeypatch, certified):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=rf'{name} needs matplotlib.*pip install "matplotlib>=3\.9"$'
    ):
        getattr(twins, name)(certified)
