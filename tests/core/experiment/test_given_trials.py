"""Hosts whose trials are given: only some can go on now, others come later, some are stopped."""

from dataclasses import replace

import pytest
from scipy.stats import uniform

from mfhpo.experiment import (
    Assignment,
    DistributionSpace,
    Done,
    Ended,
    Experiment,
    Found,
    LimitSettings,
    SearchSettings,
    Wait,
)
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.regret import MFUCB
from mfhpo.search import DeclaredSearch
from tests.core.experiment.story import LEVELS, Story, race
from tests.core.experiment.workers import search


def levels_pending(story):
    return [pull.fidelity for pull in story.experiment._current().ledger.pending()]


def test_a_claim_of_several_levels_is_pending_at_the_lowest():
    story = Story(race(levels=LEVELS))
    story.begin("0", levels=(0, 1, 2))
    assert levels_pending(story) == [0]
    story.end("0", level=0, last=False)
    assert levels_pending(story) == [1]


def test_repeats_are_counted_by_configuration_level_and_purpose():
    story = Story(race(levels=LEVELS))
    work = story.experiment.next()
    assert isinstance(work, Assignment)
    for n in range(3):
        x, level = work.configuration["x"], work.level
        assert story.experiment.next(fixed=({"x": x}, level)).repeat == n
        story.begin(str(n), x=x, levels=(level,))
        assert story.experiment.next(fixed=({"x": 1 - x}, level)).repeat == 0


def test_what_is_not_available_is_passed_over():
    story = Story(race(3))
    work = story.experiment.next(
        available=lambda arm, configuration, level: configuration["x"] == 2
    )
    assert isinstance(work, Assignment)
    assert work.configuration == {"x": 2}
    assert isinstance(story.experiment.next(available=lambda *_: False), Wait)
    assert isinstance(story.experiment.next(fixed=({"x": 1}, 0)), Assignment)


def test_what_is_withdrawn_takes_along_what_waits_for_it():
    """The quick ones alone would be no sample of the arm, should it come back."""
    story = Story(race(3))
    story.begin("slow", x=1)
    story.begin("quick", x=1)
    story.begin("other")
    story.end("quick", cost=2.0)
    story.lose("slow", is_withdrawn=True, cost=1.5)
    story.end("other")
    assert story.learned == ["other"]
    assert story.experiment.open == []
    assert story.answer.cost == 1.5 + 2.0 + 1.0
    assert "left out" not in story.conditions
    story.evaluate("again", x=1)
    assert story.learned == ["other", "again"]


def test_arms_that_come_later():
    story = Story(race(0, n_arms=3))
    assert isinstance(story.experiment.next(), Wait)
    story.begin("0", x=5)
    story.begin("1", x=7)
    for id, value in (("0", 1.0), ("1", 50.0)):
        story.end(id, value=value)
    story.experiment.apply(Found(id="search", order=story.experiment.order, arms=2))
    for n in range(50):
        if isinstance(story.experiment.next(), Done):
            break
        begun = story.follow(f"more {n}")
        story.end(begun.id, value=50.0 * (begun.configuration["x"] == 7))
    assert story.answer.params == {"x": 7}
    assert story.answer.certified
    assert story.answer.compared == 2
    story.begin("foreign", x=9)
    assert story.experiment.runner.configurations.find({"x": 9}) is None


def test_an_exhausted_experiment_is_over():
    story = Story(race())
    story.evaluate("0", value=1.0)
    story.experiment.apply(Found(id="trials", order=story.experiment.order, is_exhausted=True))
    assert isinstance(story.experiment.next(), Done)
    assert story.answer.finished
    assert "nothing is left to evaluate" in story.answer.reason


WIDE = DistributionSpace({"x": uniform(0, 1)})


@pytest.mark.parametrize(
    ("settings", "most"),
    [(race(20), 30), (race(40), 40), (replace(search(budget=500.0), space=WIDE), 30)],
)
def test_r25_if_all_fail_at_first_it_ends(settings, most):
    """Thirty, or each of the candidates."""
    story = Story(settings)
    for n in range(most):
        story.end(story.follow(str(n)).id, value=None)
    assert story.experiment.next() == Done(f"all of the first {most} evaluations failed")
    assert story.answer.finished
    assert not story.answer.certified


def test_r25_one_value_is_enough_to_go_on():
    story = Story(race(40))
    for n in range(40):
        story.end(story.follow(str(n)).id, value=None if n else 1.0)
    assert isinstance(story.experiment.next(), Assignment)


def test_d2_what_somebody_else_has_stopped_is_paid_and_left_out_under_a_condition():
    story = Story(race(2))
    story.begin("slow", x=1)
    story.evaluate("quick", x=1, value=1.0)
    story.lose("slow", why="ASHA stopped trials", cost=0.25, is_cut=True)
    assert story.learned == ["quick"]
    assert story.answer.cost == 1.25
    assert story.answer.failures == 0
    left_out = "the evaluation that was left out, because ASHA stopped trials, was like the others"
    assert story.conditions.endswith(left_out)
    for n in range(10):
        story.begin(str(n))
        story.lose(str(n), why="ASHA stopped trials", is_cut=True)
    why = "the last 11 evaluations gave nothing, because ASHA stopped trials"
    assert story.experiment.next() == Done(why)


def with_checkpoints(rates):
    fidelity = Fidelity("epochs", levels=LEVELS)
    declared = DeclaredSearch.of(fidelity, budget=400.0, checkpoints=True, candidates=rates)
    return Experiment(SearchSettings(declared=declared, levels=LEVELS, candidates=rates))


def test_a_search_plans_anew_once_it_is_known_that_nothing_goes_on():
    experiment = with_checkpoints([{"x": x} for x in range(8)])
    experiment.apply(Found(id="resumption", order=0, resumes=False, budget=500.0))
    policy = experiment.runner.policy
    assert (policy.budget.spent, policy.budget.amount) == (0.0, 500.0)
    assert policy.search.allowance == pytest.approx(400.0)  # a fifth is for the finalists
    assert policy.search.cost_from(1, 2) == 9.0


def test_a_candidate_that_can_be_evaluated_no_more_is_not_asked_for():
    rates = [{"rate": 0.1 * n} for n in range(12)]
    experiment = with_checkpoints(rates)
    for order in range(0, 6, 3):
        work = experiment.next()
        experiment.apply(work.begun(str(order), order))
        experiment.apply(Ended(id=str(order), order=order + 1, value=None))
        gone = rates.index(work.configuration)
        experiment.apply(Found(id=f"gone:{order}", order=order + 2, gone=gone))
    seen = []
    while isinstance(work := experiment.next(), Assignment):
        seen.append(rates.index(work.configuration))
        experiment.apply(work.begun(str(experiment.order), experiment.order))
        ended = {"id": str(experiment.order - 1), "order": experiment.order}
        experiment.apply(Ended(**ended, value=work.configuration["rate"], level=work.level))
    assert len(set(seen)) == 10
    assert experiment.answer().certificate is not None


def test_it_is_over_whatever_is_under_way():
    story = Story(race(measure=2, epsilon=9.0))
    for n in range(100):
        story.follow(str(n))
    assert not story.experiment.finished
    for n in range(90):
        story.end(str(n))
    assert (story.experiment.finished, len(story.experiment.open)) == (True, 10)


def test_a_wait_for_one_that_holds_back_many_is_told_apart():
    story = Story(race(1, measure=99))
    story.follow("slow")
    while isinstance(wait := story.experiment.next(), Assignment):
        story.end(story.follow(str(story.experiment.order)).id)
    assert wait.is_held_up
    assert wait.why.startswith("evaluation slow of candidate 0")


def test_a_race_for_rewards_certifies_nothing():
    story = Story(race(make=lambda problem, **options: MFUCB(problem)))
    story.end(story.follow("a").id)
    assert not story.answer.certifies


def test_limits_are_chosen_for_what_is_available_and_configurations_may_come_later():
    """Among those that can be run the choice is the policy's, however many cannot."""
    settings = LimitSettings(candidates=[{"x": x} for x in range(8)], limits=[1.0], n_arms=9)
    story = Story(settings)
    work = story.experiment.next(
        available=lambda arm, configuration, level: configuration["x"] == 7
    )
    assert isinstance(work, Assignment)
    assert work.configuration == {"x": 7}
    assert isinstance(story.experiment.next(available=lambda *_: False), Wait)
    story.begin("late", x=8, limit=1.0)
    story.end("late", value=0.5, cost=0.5)
    assert story.experiment.runner.configurations[8] == {"x": 8}
    assert story.answer.trials == 1
