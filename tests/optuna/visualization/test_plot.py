import pytest

from mfhpo_optuna import plot_gain, plot_race
from tests.optuna.samplers.races import BEST_ARM, REWARD
from tests.optuna.samplers.time_limits.timed import CENSORED, LIMIT, LIMITS, PULL, make, run, score
from tests.optuna.visualization.figures import ARMS, numbers, quadratic, race, trace


def test_a_certified_race_names_its_winner_and_marks_every_elimination(certified):
    answer = certified.sampler.recommendation(certified)
    figure = plot_race(certified)

    assert answer.certified
    assert f"Arm {answer.arm} of 4 is certified after {answer.trials} trials" in (
        figure.layout.title.text
    )
    assert f"{answer.mean:.4g}" in figure.layout.title.text
    winner = numbers(trace(figure, f"arm {answer.arm}, certified").y)
    assert winner[-1] == pytest.approx(answer.mean, rel=1e-4)
    gone = set(range(4)) - set(answer.survivors)
    crosses = trace(figure, "eliminated")
    assert {int(text.split(":")[0].removeprefix("arm ")) for text in crosses.text} == gone
    # The winner first, and every arm once.
    ranking = figure.layout.xaxis2.categoryarray
    assert ranking[0] == str(answer.arm)
    assert sorted(ranking) == ["0", "1", "2", "3"]


def test_values_keep_the_sign_of_the_objective():
    study = race(lambda trial: -quadratic(trial), "maximize")
    figure = plot_race(study)
    # Arm 0 is the best, with a mean of about -0.05 / 9.
    label = f"arm {study.sampler.recommendation(study).arm}, certified"
    assert abs(numbers(trace(figure, label).y)[-1]) < 0.1
    last = numbers(y for trace in figure.data if trace.xaxis == "x2" for y in trace.y)
    assert max(last, key=abs) < -0.5
    assert "higher is better" in figure.layout.yaxis.title.text


def test_arms_that_failed_are_marked_apart():
    def failing(trial):
        value = quadratic(trial)
        if trial.params["x"] == 1.0:
            raise ArithmeticError
        return value

    figure = plot_race(race(failing))
    assert [text.split(":")[0] for text in trace(figure, "left by failing").text] == ["arm 3"]


def test_a_race_under_way_is_said_not_to_be_certified():
    figure = plot_race(race(n_trials=30))
    assert "leads after 30 trials, not certified" in figure.layout.title.text
    assert any(trace.name.endswith(", leading") for trace in figure.data if trace.name)


@pytest.mark.parametrize("make", [BEST_ARM["top-two"], REWARD["UCB"]], ids=["top-two", "UCB"])
def test_every_sampler_s_race_has_one_line_for_each_arm_and_level(make):
    study = race(make=make, n_trials=60, sigma=0.1)
    assert "leader: arm" in study.sampler._of(study).progress_text()
    answer = study.sampler.recommendation(study)
    figure = plot_race(study)
    for level in (1, 3, 9):
        assert list(trace(figure, f"epochs = {level}").y).count(None) <= len(ARMS)
    state = "certified" if answer.certified else "leading"
    thick = numbers(trace(figure, f"arm {answer.arm}, {state}").y)
    assert len(thick) > 2
    last = [t for t in figure.data if t.xaxis == "x2" and t.marker.symbol != "star"]
    assert sum(len(t.x) for t in last) == len(ARMS)
    [star] = [t for t in figure.data if t.marker.symbol == "star"]
    assert star.y[0] == pytest.approx(thick[-1], rel=1e-4)
    incomplete = answer.certifies and not answer.certified
    assert ("not certified" in figure.layout.title.text) == incomplete


def traces_of(figure, axis):
    return [trace for trace in figure.data if trace.xaxis == axis]


def test_gain_intervals_and_what_was_stopped():
    sampler = make(limits=LIMITS, reward_range=(-1.0, 0.0))
    study = run(sampler, lambda trial: score(trial, -1.0), 80, "minimize")
    figure = plot_gain(study)
    answer = sampler.recommendation(study)
    *curves, star = traces_of(figure, "x")
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
    survival, crosses = traces_of(figure, "x2")[:2]
    assert survival.x == LIMITS
    assert survival.y == pytest.approx([point.probability for point in answer.survival], abs=1e-9)
    for point, above, below in zip(
        answer.survival, survival.error_y.array, survival.error_y.arrayminus, strict=True
    ):
        assert point.probability + above == pytest.approx(point.high)
        assert point.probability - below == pytest.approx(point.low)
    pulls = [t for t in study.trials if PULL in t.user_attrs]
    played = [t for t in pulls if t.user_attrs[PULL]["arm"] == answer.arm]
    at = [t for t in played if t.user_attrs[LIMIT] == crosses.x[-1]]
    stopped = sum(CENSORED in t.user_attrs for t in at)
    assert crosses.text[-1] == f"{stopped} of {len(at)} stopped"
    assert crosses.y[-1] == pytest.approx(stopped / len(at))
    assert f"After 80 trials, {answer.censored:.0%}" in figure.layout.title.text
    assert figure.layout.yaxis.title.text == "gain of a trial (lower is better)"
