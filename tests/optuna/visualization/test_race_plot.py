import itertools

import pytest

from mfhpo.racing.text import params_in_words
from mfhpo_optuna import plot_race
from tests.optuna.samplers.races import BEST_ARM, REWARD, pulls
from tests.optuna.visualization.figures import ARMS, lines, quadratic, race, row_labels, trace

LEVELS = {1: "epochs = 1", 3: "epochs = 3", 9: "epochs = 9"}


def stretches(figure):
    """What was paid, as the bars show it: level, row, from, to."""
    return [
        (epochs, row, base, base + length)
        for epochs, name in LEVELS.items()
        for bars in [trace(figure, name)]
        for row, base, length in zip(bars.y, bars.base, bars.x, strict=True)
    ]


def arms_of(figure):
    """The arms in the order of their rows."""
    labels = row_labels(figure)
    places = {params_in_words(params): arm for arm, params in enumerate(ARMS)}
    return [places[label.removeprefix("<b>").removesuffix("</b>")] for label in labels]


def star_of(figure, answer):
    """The winner's star, whose interval is the answer's and inside the axis."""
    star = trace(figure, params_in_words(answer.params))
    low, high = answer.interval
    assert star.x[0] + star.error_x.array[0] == pytest.approx(high, rel=1e-4)
    first, last = figure.layout.xaxis.range
    assert first < low < high < last
    return star


def test_the_winner_is_first_with_its_whole_interval(certified):
    answer = certified.sampler.recommendation(certified)
    figure = plot_race(certified)
    assert lines(figure)[:2] == ["<b style='font-size:17px'>CERTIFIED</b>", "x=0"]
    assert f"mean: {answer.mean:.5g} at level 9" in " ".join(lines(figure))
    assert row_labels(figure)[0] == f"<b>{params_in_words(answer.params)}</b>"
    assert sorted(arms_of(figure)) == [0, 1, 2, 3]
    star = star_of(figure, answer)
    assert star.x[0] == pytest.approx(answer.mean, rel=1e-5)
    assert star.x[0] - star.error_x.arrayminus[0] == pytest.approx(answer.interval[0], rel=1e-4)


def test_the_winner_has_the_interval_of_the_title_before_it_is_certified():
    study = race(n_trials=60, epsilon=1e-3)
    answer = study.sampler.recommendation(study)
    assert not answer.certified
    star_of(plot_race(study), answer)


def test_every_cost_is_in_the_row_of_the_arm_that_it_was_paid_for(certified):
    figure = plot_race(certified)
    paid = sorted((begin, end) for _, _, begin, end in stretches(figure))
    assert paid[0][0] == 0.0
    assert paid[-1][1] == certified.sampler.recommendation(certified).cost
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(paid))
    for place, arm in enumerate(arms_of(figure)):
        own = [t for t in pulls(certified) if t.params["x"] == ARMS[arm]["x"]]
        for epochs in LEVELS:
            at = [each[2:] for each in stretches(figure) if each[:2] == (epochs, place)]
            evaluated = sum(t.params["epochs"] == epochs for t in own)
            assert sum(end - begin for begin, end in at) == epochs * evaluated


def test_an_arm_s_lane_ends_where_it_left(certified):
    answer = certified.sampler.recommendation(certified)
    figure = plot_race(certified)
    lanes = trace(figure, "in the race").x
    assert list(lanes) == sorted(lanes, reverse=True)
    gone = trace(figure, "eliminated")
    assert {arms_of(figure)[row] for row in gone.y} == set(range(4)) - set(answer.survivors)
    assert [lanes[row] for row in gone.y] == list(gone.x)


def test_values_keep_the_sign_of_the_objective():
    study = race(lambda trial: -quadratic(trial), "maximize")
    figure = plot_race(study)
    assert figure.layout.xaxis.title.text == "mean (higher is better)"
    assert abs(trace(figure, "x=0").x[0]) < 0.1, "it is the best, with a mean of -0.05 / 9"


def failing(trial, at=(1.0,)):
    value = quadratic(trial)
    if trial.params["x"] in at:
        raise ArithmeticError
    return value


def test_arms_that_failed_are_told_apart_and_the_title_says_where_all_have():
    figure = plot_race(race(failing))
    assert [arms_of(figure)[row] for row in trace(figure, "left by failing").y] == [3]
    assert "failed 3 of" in " ".join(lines(figure))
    all_fail = race(lambda trial: failing(trial, [arm["x"] for arm in ARMS]), n_trials=30)
    assert "because: every arm failed and left the race" in lines(plot_race(all_fail))


@pytest.mark.parametrize("make", [BEST_ARM["top-two"], REWARD["UCB"]], ids=["top-two", "UCB"])
def test_every_sampler_s_race_has_a_row_for_each_arm(make):
    study = race(make=make, n_trials=60, sigma=0.1)
    answer = study.sampler.recommendation(study)
    figure = plot_race(study)
    assert len(arms_of(figure)) == len(ARMS)
    assert arms_of(figure)[0] == answer.arm
    incomplete = answer.certifies and not answer.certified
    assert ("NOT CERTIFIED" in lines(figure)[0]) == incomplete


def test_names_are_no_markup_and_no_escape_sequence():
    study = race(
        lambda trial: trial.suggest_float("x", 0, 1) * trial.suggest_int("<b>\x1b[2J", 1, 9),
        n_trials=3,
        arms=[{"x": 0.1}, {"x": 0.9}],
        sigma=0.1,
        fidelity="<b>\x1b[2J",
    )
    figure = plot_race(study)
    shown = [figure.layout.title.text, *(t.name for t in figure.data if t.name)]
    assert any(r"&lt;b&gt;\x1b[2J" in text for text in shown)
    assert not any("<b> =" in text or "\x1b" in text for text in shown)
