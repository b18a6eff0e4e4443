"""Each kind of experiment with one worker decides as its policy alone."""

import json
import math

import numpy as np
import pytest

from mfhpo import RCUCB, Bias, Fidelity, Observation, Problem, SubGaussian, recommend_policy
from mfhpo.experiment import (
    Answer,
    Begun,
    DistributionSpace,
    Done,
    Ended,
    Experiment,
    GameSettings,
    LimitSettings,
    RaceSettings,
    SearchSettings,
    Wait,
    event_of,
)
from mfhpo.experiment.kinds.games import levels_of, number_of
from mfhpo.games import MFUCBPNE, UCBPNE
from mfhpo.knowledge.space import Numeric, OneOf
from mfhpo.search import DeclaredSearch

CANDIDATES = [{"x": x} for x in (0.1, 0.4, 0.8, 0.9)]
LEVELS = (1, 3, 9)
EPOCHS = Fidelity("epochs", levels=LEVELS)
PLAYERS = {"a": {"x": Numeric()}, "b": {"y": OneOf(3)}}
NUMBERS = {"row": {"x": Numeric()}, "column": {"y": Numeric()}}


def search(values):
    declared = DeclaredSearch.of(EPOCHS, budget=90.0)
    return SearchSettings(declared=declared, levels=LEVELS, space=DistributionSpace({"x": values}))


def play(experiment, evaluate, most=10**6):
    """Evaluate with one worker; returns what was assigned."""
    assigned = []
    while len(assigned) < most and not isinstance(work := experiment.next(), Done):
        begun = work.begun(str(len(assigned)), experiment.order)
        experiment.apply(begun)
        assigned.append(work)
        experiment.apply(Ended(id=begun.id, order=experiment.order, **evaluate(work)))
    return assigned


def noisy(seed, sign=1.0):
    rng = np.random.default_rng(seed)

    def evaluate(work):
        value = work.configuration["x"] - 0.1 / LEVELS[work.level] + rng.normal(0.0, 0.1)
        return {"value": sign * value}

    return evaluate


@pytest.mark.parametrize("maximise", [True, False])
def test_a_race(maximise):
    sign = 1.0 if maximise else -1.0
    settings = RaceSettings.of(
        CANDIDATES,
        fidelity=EPOCHS,
        bias=(0.1, 0.03, 0.0),
        sigma=0.1,
        epsilon=0.05,
        maximise=maximise,
    )
    experiment = Experiment(settings)
    assigned = play(experiment, noisy(0, sign))
    problem = Problem(4, LEVELS, bias=Bias.max(0.1, 0.03, 0.0), noise=SubGaussian(0.1))
    policy = recommend_policy(problem).make(problem, epsilon=0.05, measure=10)
    evaluate, pulls = noisy(0), []
    while not policy.finished:
        [pull] = policy.ask()
        pulls.append((CANDIDATES[pull.arm], pull.fidelity))
        work = type("Work", (), {"configuration": CANDIDATES[pull.arm], "level": pull.fidelity})
        policy.tell(pull, Observation(evaluate(work)["value"]))
    assert [(work.configuration, work.level) for work in assigned] == pulls
    answer = experiment.answer()
    assert answer.certified
    assert answer.params == CANDIDATES[policy.recommend().arm]
    assert answer.mean == pytest.approx(sign * policy.recommend().mean)
    assert answer.trials == len(pulls)
    # A restart is a replay, also of what was written as JSON.
    events = [event_of(event.to_dict()) for event in experiment.events]
    assert Experiment.replay(settings, events).answer() == answer


def test_limits():
    settings = LimitSettings(candidates=CANDIDATES, limits=[1.0, 2.0, 4.0], options={"horizon": 60})
    rng = np.random.default_rng(1)
    seconds = rng.exponential(2.0, 60)

    def evaluate(work):
        took = seconds[evaluate.calls]
        evaluate.calls += 1
        if took > work.limit:
            return {"value": None, "cost": work.limit, "stopped_at": work.limit}
        return {"value": work.configuration["x"], "cost": took}

    evaluate.calls = 0
    experiment = Experiment(settings)
    assigned = play(experiment, evaluate)
    policy, pulls = RCUCB(4, [1.0, 2.0, 4.0], horizon=60), []
    for took in seconds:
        [pull] = policy.ask()
        pulls.append((pull.arm, pull.limit))
        stopped = took > pull.limit
        value = None if stopped else CANDIDATES[pull.arm]["x"]
        cost = min(took, pull.limit)
        policy.tell(pull, Observation(value, cost, pull.limit if stopped else None))
    assert [(CANDIDATES.index(work.configuration), work.limit) for work in assigned] == pulls
    answer = experiment.answer()
    assert answer.limit == policy.recommend().limit
    assert answer.gain == policy.recommend().mean
    assert "BEST SO FAR" in str(answer)


def test_a_game():
    def utilities(profile):
        x, y = profile["x"], profile["y"]
        return -((x - 0.3 * y) ** 2), -((y - 2 * x) ** 2)

    experiment = Experiment(GameSettings(players=PLAYERS, costs=(1.0, 4.0), budget=40.0))
    assigned = play(
        experiment, lambda work: {"value": None, "values": utilities(work.configuration)}
    )
    policy, queries = MFUCBPNE(PLAYERS, (1.0, 4.0), 40.0, seed=0), []
    while (query := policy.ask()) is not None:
        queries.append(dict(query.profile))
        policy.tell(query, utilities(query.profile))
    assert [work.configuration for work in assigned] == queries
    found = policy.recommend()
    assert experiment.answer() == Answer.of_game(found, dict(found.profile), found.reason)


def test_of_queries_at_the_same_moment_those_move_that_the_budget_does_not_pay_for():
    given = {"costs": (0.7,), "budget": 2.1, "options": {"joint": True}, "make": UCBPNE}
    experiment = Experiment(GameSettings(players=NUMBERS, **given))
    profiles = [{"x": 0.25 * place, "y": 0.5} for place in range(4)]
    for id, profile in enumerate(profiles):
        experiment.apply(Begun(id=str(id), order=0, configuration=profile, purpose="search"))
    assert [experiment.settle(str(id)) is None for id in range(4)] == [False, False, False, True]
    assert isinstance(experiment.next(moving="3"), Wait)


def test_a_game_that_only_fails_ends_and_knows_what_is_none_of_its_queries():
    given = {"costs": (1.0, 4.0), "budget": 400.0, "options": {"joint": True}}
    experiment = Experiment(GameSettings(players=NUMBERS, **given))
    profile = {"x": 0.5, "y": 0.5}
    for id, (configuration, level) in enumerate([(profile, 1), ({"x": 0.5}, 3), (profile, 3)]):
        begun = Begun(id=str(id), order=0, configuration=configuration, levels=(level,))
        experiment.apply(begun)
    assert experiment.open == ["2"]
    assert len(play(experiment, lambda work: {"value": None, "values": (None, math.nan)})) == 30
    assert experiment.answer().reason == "all of the first 30 evaluations failed"


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"fidelity": Fidelity("epochs", levels=(1, 9)), "bias": (0.1, 0.0)},
        {"fidelity": Fidelity("epochs", levels=(1, 9)), "estimated_bias": "eliminate"},
        {"shares_replicates": True},
    ],
)
def test_an_answer_says_what_it_can_about_huge_values(declared):
    rng = np.random.default_rng(0)
    experiment = Experiment(RaceSettings.of(CANDIDATES, budget=60.0, epsilon=0.0, **declared))

    def evaluate(work):
        return {"value": float(rng.choice((-1.0, 1.0)) * 10.0 ** rng.uniform(20.0, 50.0))}

    assert play(experiment, evaluate)
    assert not experiment.answer().certified


def test_a_declared_noise_halves_what_a_comparison_of_all_takes():
    many = [{"x": x} for x in range(12)]
    budget = {"fidelity": EPOCHS, "budget": 3.0 * 12 * LEVELS[-1]}
    assert isinstance(RaceSettings.of(many, **budget), SearchSettings)
    assert isinstance(RaceSettings.of(many, sigma=0.1, **budget), RaceSettings)


@pytest.mark.parametrize("kind", ["race", "limits"])
def test_an_end_without_its_cost_ends_nothing(kind):
    settings = LimitSettings(candidates=CANDIDATES, limits=[1.0, 2.0])
    if kind == "race":
        epochs = Fidelity("epochs", levels=LEVELS, costs="measured")
        settings = RaceSettings.of(CANDIDATES, fidelity=epochs, budget=60.0)
    experiment = Experiment(settings)
    play(experiment, lambda work: {"value": 0.5, "cost": 0.4}, most=8)
    cost, begun = experiment.answer().cost, experiment.next().begun("late", experiment.order)
    experiment.apply(begun)
    experiment.apply(Ended(id="late", order=experiment.order, value=0.5))
    assert experiment.answer().cost == pytest.approx(cost + 0.4 * (kind == "race"))
    assert Experiment.replay(settings, experiment.events).answer() == experiment.answer()


def test_a_search_with_nothing_left_is_over():
    experiment = Experiment(search([1, 2, 3]))
    play(experiment, lambda work: {"value": None if work.level else work.configuration["x"]})
    answer = experiment.answer()
    assert answer.finished
    assert answer.cost < 90.0
    assert answer.reason.startswith("nothing is left to evaluate; ")


def test_an_answer_has_in_json_what_belongs_to_its_kind():
    kinds = {
        "compared": RaceSettings.of(CANDIDATES),
        "tried": search([1, 2]),
        "gain": LimitSettings(candidates=CANDIDATES, limits=[1.0, 2.0]),
        "dissatisfaction": GameSettings(players=PLAYERS, costs=(1.0, 4.0), budget=40.0),
    }
    for kind, settings in kinds.items():
        content = json.loads(json.dumps(Experiment(settings).answer().to_dict(), allow_nan=False))
        assert {"params", "reason", "trials"} < content.keys()
        own = {"compared", "tried"} if kind == "tried" else {kind}
        assert kinds.keys() & content.keys() == own


def test_levels_of_many_players_have_numbers():
    sizes, levels = [100] * 12, list(range(12))
    assert levels_of(number_of(levels, sizes), sizes) == tuple(levels)
