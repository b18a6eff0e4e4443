"""Races and searches that are told which configuration is in use today."""

import json
import math

import numpy as np
import pytest
from scipy.stats import uniform

from mfhpo import Fidelity
from mfhpo.experiment import (
    Assignment,
    Begun,
    DistributionSpace,
    Ended,
    Experiment,
    RaceSettings,
    SearchSettings,
    event_of,
)
from mfhpo.search import DeclaredSearch

EPOCHS = Fidelity("epochs", levels=[1, 3, 9])
SPACE = DistributionSpace({"x": uniform(-1.0, 2.0)})
TODAY = {"x": 0.75}


def value(configuration, level, rng):
    return -(configuration["x"] ** 2) - 0.3 / (1 + level) + 0.02 * rng.normal()


def play(settings, value=value, is_baseline=lambda configuration: False):
    """Run an experiment; return it and what was evaluated: configuration, level, purpose."""
    experiment, rng, made = Experiment(settings), np.random.default_rng(0), []
    while isinstance(work := experiment.next(), Assignment):
        begun = work.begun(str(experiment.n_begun), experiment.order)
        if is_baseline(work.configuration):
            begun = Begun(**{**vars(begun), "is_baseline": True})
        experiment.apply(begun)
        made.append((work.configuration, work.level, work.purpose))
        found = value(work.configuration, work.level, rng)
        experiment.apply(Ended(id=begun.id, order=experiment.order, value=found))
    return experiment, made


def search(baseline=TODAY, budget=600.0, space=SPACE, candidates=(), **options):
    listed = list(candidates) or None
    declared = DeclaredSearch.of(
        EPOCHS, budget=budget, baseline=baseline, candidates=listed, **options
    )
    given = {"candidates": candidates} if candidates else {"space": space}
    return SearchSettings(declared=declared, levels=EPOCHS.levels, **given)


def race(n=4, **options):
    return RaceSettings.of([{"x": x / n} for x in range(n)], sigma=0.05, epsilon=0.01, **options)


@pytest.mark.parametrize("shares", [{}, {"replicate": "split", "certify_share": 0.5}])
def test_search_evaluates_it_first_at_the_target_and_makes_it_a_finalist(shares):
    experiment, made = play(search(**shares))
    assert made[0] == (TODAY, 2, "search")
    assert [at for at, level, purpose in made if purpose == "search"].count(TODAY) == 1
    assert (TODAY, 2, "certificate") in made
    answer = experiment.answer()
    found = answer.certificate.baseline
    assert answer.baseline is found
    assert (found.verdict, dict(found.params)) == ("better", TODAY)
    assert 0.0 < found.at_least < 0.5625 < found.at_least + 0.3  # of 0 to 0.75 squared
    assert answer.delta == answer.certificate.delta == 0.05
    assert str(answer).splitlines()[1] == f"  baseline    {found}"
    replay = Experiment.replay(experiment.settings, experiment.events)
    assert str(replay.answer()) == str(answer)


def test_search_without_it_makes_the_same_choices_as_before():
    _, made = play(search(baseline=None))
    assert TODAY not in [configuration for configuration, *_ in made]


def test_candidate_may_be_the_baseline():
    candidates = [{"x": x} for x in np.linspace(-1.0, 1.0, 12)]
    for baseline in (candidates[0], 0):
        experiment, made = play(search(baseline, candidates=candidates))
        assert made[0] == (candidates[0], 2, "search")
        assert experiment.answer().baseline.params == candidates[0]
    with pytest.raises(ValueError, match="is none of the 12 configurations that are compared"):
        search({"x": 5.0}, candidates=candidates).runner()


def test_host_may_mark_it_when_it_is_begun():
    candidates = [{"x": x} for x in np.linspace(-1.0, 1.0, 12)]
    settings = search(None, candidates=candidates)
    experiment, made = play(settings, is_baseline=lambda each: each["x"] == 1.0)
    assert [at["x"] for at, level, _ in made if level == 2].count(1.0) > 1
    assert experiment.answer().baseline.params == {"x": 1.0}
    marked = next(event for event in experiment.events if isinstance(event, Begun))
    records = [json.loads(json.dumps(event.to_dict())) for event in experiment.events]
    assert [*map(event_of, records)] == experiment.events
    assert sum("is_baseline" in record for record in records) > 1
    assert "is_baseline" not in Begun(id="0", order=0, configuration={}).to_dict()
    assert marked.id == "0"


def test_baseline_that_fails_is_tried_again_and_then_named():
    def fails(configuration, level, rng):
        return math.nan if configuration == TODAY else value(configuration, level, rng)

    experiment, made = play(search(), fails)
    assert [at for at, *_ in made[:3]] == [TODAY] * 3
    answer = experiment.answer()
    assert answer.baseline.verdict == "failed"
    assert f"  baseline    {answer.baseline}" in str(answer).splitlines()
    words = "the baseline gave no value at the target, so that it is not compared"
    assert words in answer.certificate.notices


@pytest.mark.parametrize("baseline", [{"x": 0.75}, 3])
@pytest.mark.parametrize("options", [{}, {"fidelity": EPOCHS, "bias": [0.3, 0.1, 0.0]}])
def test_race_says_how_the_winner_compares(baseline, options):
    experiment, _ = play(race(baseline=baseline, **options))
    answer = experiment.answer()
    assert (answer.certified, answer.params, answer.delta) == (True, {"x": 0.0}, 0.05)
    assert answer.baseline.verdict == "better"
    assert 0.0 < answer.baseline.at_least < 0.5625
    assert str(answer).splitlines()[1] == f"  baseline    {answer.baseline}"
    assert answer.to_dict()["baseline"]["words"] == str(answer.baseline)


def test_race_shares_delta_with_the_comparison():
    for baseline, delta in ((None, 0.04), (0, 0.02)):
        assert race(baseline=baseline, delta=0.04).runner().policy.delta == delta
    assert "baseline" not in play(race())[0].answer().to_dict()


def test_race_in_blocks_and_the_baseline_itself():
    settings = RaceSettings.of(
        [{"x": 0.0}, {"x": 0.5}], epsilon=0.01, shares_replicates=True, baseline=0
    )
    answer = play(settings)[0].answer()
    assert str(answer.baseline) == "the baseline is the winner: keep it"


def test_small_budget_makes_the_baseline_a_finalist():
    many = [{"x": x / 30} for x in range(30)]
    settings = RaceSettings.of(many, fidelity=EPOCHS, budget=300.0, epsilon=0.01, baseline=29)
    experiment, _ = play(settings)
    assert isinstance(settings, SearchSettings)
    assert experiment.answer().baseline.params == many[29]


@pytest.mark.parametrize("baseline", [{"x": 9.0}, 4])
def test_race_has_the_baseline_among_its_arms(baseline):
    with pytest.raises(ValueError, match=r"none of the 4 configurations|baseline must be 0 to 3"):
        race(baseline=baseline)
