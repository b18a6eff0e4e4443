import itertools
import re

import numpy as np
import pytest

from mfhpo_optuna.visualization.stories.race import tell_race
from tests.optuna.samplers.races import BEST_ARM, REWARD, pulls
from tests.optuna.visualization.figures import ARMS, quadratic, race


def story_of(study):
    return tell_race(study, study.sampler)


def test_the_winner_is_first_with_its_interval_and_its_lead(certified):
    answer = certified.sampler.recommendation(certified)
    story = story_of(certified)
    first, second = story.rows[:2]
    assert answer.certified
    assert story.title[0] == f"Arm {answer.arm} of 4 wins, certified"
    assert (first.arm, first.mean, first.interval) == (answer.arm, answer.mean, answer.interval)
    assert sorted(row.arm for row in story.rows) == [0, 1, 2, 3]
    words = " ".join(story.title)
    assert f" {answer.mean:.4g} in [" in words
    assert first.level == second.level == 2
    assert f"; {second.mean - first.mean:.2g} ahead of arm {second.arm} At most " in words
    low, high = story.value_span
    assert low < answer.interval[0] < answer.interval[1] < high


def test_every_cost_is_in_the_row_of_the_arm_that_it_was_paid_for(certified):
    story = story_of(certified)
    paid = sorted((begin, end) for row in story.rows for _, begin, end in row.paid)
    assert paid[0][0] == 0.0
    assert paid[-1][1] == story.cost
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(paid))
    for row in story.rows:
        own = [t for t in pulls(certified) if t.params["x"] == ARMS[row.arm]["x"]]
        for level, epochs in enumerate((1, 3, 9)):
            spent = sum(end - begin for at, begin, end in row.paid if at == level)
            assert spent == sum(t.params["epochs"] for t in own if t.params["epochs"] == epochs)


def test_an_arm_s_lane_ends_where_it_left(certified):
    answer = certified.sampler.recommendation(certified)
    story = story_of(certified)
    for row in story.rows:
        gone = row.arm not in answer.survivors
        assert row.exit == ("eliminated" if gone else None)
        assert all(end <= row.left_at for _, _, end in row.paid)
        if not gone:
            assert row.left_at == story.cost
    exits = [row.left_at for row in story.rows]
    assert exits == sorted(exits, reverse=True)


def test_values_keep_the_sign_of_the_objective():
    study = race(lambda trial: -quadratic(trial), "maximize")
    story = story_of(study)
    # Arm 0 is the best, with a mean of about -0.05 / 9.
    assert abs(story.rows[0].mean) < 0.1
    assert min(row.mean for row in story.rows) < -0.5
    assert story.value_axis == "mean (higher is better)"
    assert " ahead of arm " in " ".join(story.title)


def test_arms_that_failed_are_told_apart():
    def failing(trial):
        value = quadratic(trial)
        if trial.params["x"] == 1.0:
            raise ArithmeticError
        return value

    story = story_of(race(failing))
    assert [row.arm for row in story.rows if row.exit == "failed"] == [3]
    lost = next(row for row in story.rows if row.arm == 3)
    assert np.isnan(lost.mean)
    assert lost.paid, "failures are paid for"
    assert any(re.search(r"in \d+ trials, 3 failed$", line) for line in story.title)


def test_a_race_under_way_is_said_not_to_be_certified():
    title = story_of(race(n_trials=30)).title
    assert title[0].endswith("leads, not certified")
    assert any(line.endswith("in 30 trials") for line in title)


@pytest.mark.parametrize("make", [BEST_ARM["top-two"], REWARD["UCB"]], ids=["top-two", "UCB"])
def test_every_sampler_s_race_has_a_row_for_each_arm(make):
    study = race(make=make, n_trials=60, sigma=0.1)
    answer = study.sampler.recommendation(study)
    story = story_of(study)
    assert len(story.rows) == len(ARMS)
    assert story.rows[0].arm == answer.arm
    assert story.cost == answer.cost
    incomplete = answer.certifies and not answer.certified
    assert ("not certified" in story.title[0]) == incomplete


def test_of_many_arms_those_that_left_last_are_shown():
    study = race(arms=50, n_trials=60)
    story = story_of(study)
    assert len(story.rows) == 40
    assert story.omitted == 10


def test_titles_fit_a_phone(certified):
    assert all(len(line) <= 60 for line in story_of(certified).title)


def test_where_all_failed_the_title_says_why():
    def failing(trial):
        quadratic(trial)
        raise ArithmeticError

    story = story_of(race(failing, n_trials=30))
    assert not story.has_winner
    assert story.title[:2] == ("A race of 4 arms", "Every arm failed and left the race")
    assert story.value_span == (0.0, 1.0)
