import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mfhpo.problem import Observation, Pull
from mfhpo.search import BudgetedSearch, HalvingSearch, ModelSearch, Numeric, Replicate, SearchSpace
from tests.core.search.played import RacePlay, describe, replayed

COSTS = (1.0, 3.0, 9.0)
SIGMA = 0.05


def true_value(point, level):
    """Largest, 0, at x = .3; lower levels move the place a little."""
    return -((point["x"] - 0.3 - 0.02 * (2 - level)) ** 2)


def make(kind=HalvingSearch, costs=COSTS, continues=False, initial=9, seed=0, **options):
    search = kind(costs, continues=continues, initial=initial, seed=seed)
    search.space = SearchSpace({"x": Numeric()})
    return BudgetedSearch(search, **{"budget": 400.0} | options)


class Run(RacePlay):
    def __init__(self, race, sigma=SIGMA, seed=0, costs=None):
        super().__init__(race, lambda arm: {"x": np.random.default_rng([seed, 1, arm]).random()})
        self.sigma, self.seed, self.costs = sigma, seed, costs

    def outcome(self, pull):
        cost = None if self.costs is None else self.costs[pull.fidelity]
        rng = np.random.default_rng([self.seed, 2, len(self.told)])
        level = pull.fidelity + 3 - len(self.search.costs)
        return Observation(
            true_value(self.points[pull.arm], level) + self.sigma * rng.normal(), cost
        )

    def begin(self, pull):
        describe(self.race, pull, self.points, self.draw)

    @property
    def replicates(self):
        return [pull for pull in self.pulls if isinstance(pull, Replicate)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize(
    ("kind", "continues", "budget"),
    [
        (HalvingSearch, False, 0.5),
        (HalvingSearch, True, 10.0),
        (HalvingSearch, False, 47.0),
        (HalvingSearch, True, 120.0),
        (ModelSearch, False, 60.0),
    ],
)
def test_the_race_ends_when_it_says_so_and_keeps_its_budget(kind, share, continues, budget):
    race = make(kind, continues=continues, budget=budget, certify_share=share, epsilon=0.0)
    run = Run(race)
    while not race.finished:
        assert len(run.told) < 200
        assert run.step(), "it is not finished, but asks for nothing"
    assert race.ask() == []
    assert race.cost <= budget
    if share == 0.0:
        assert run.replicates == []
    # Nothing is left that would do for a full evaluation, or for another look, which takes as many
    # of each candidate as it has had.
    left = budget - race.cost
    wanted = 1
    certificate = race.certificate()
    if certificate is not None and math.isfinite(certificate.within):
        compared = [c for c in certificate.candidates if c.standing != "worse"]
        wanted = sum(candidate.evaluations for candidate in compared)
    assert left < wanted * COSTS[-1]


@given(
    st.floats(0.1, 200.0),
    st.floats(0.0, 0.99),
    st.integers(1, 4),
    st.integers(2, 9),
    st.booleans(),
    st.sampled_from(["cost", "evaluations"]),
    st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_with_workers_and_failures_the_budget_is_kept(
    budget, share, workers, initial, continues, unit, seed
):
    race = make(
        budget=budget,
        certify_share=share,
        initial=initial,
        continues=continues,
        unit=unit,
        seed=seed,
    )
    run, rng = Run(race), np.random.default_rng(seed)
    pending = []
    for _ in range(2000):
        asked = race.ask(1, pending) if len(pending) < workers else []
        assert asked == (race.ask(1, pending) if len(pending) < workers else [])
        if asked:
            run.begin(asked[0])
            pending += asked
            continue
        if not pending:
            break
        pull = pending.pop(int(rng.integers(len(pending))))
        if rng.random() < 0.15:
            race.tell(pull, Observation(None))
        else:
            run.tell(pull)
    else:
        raise AssertionError("the race does not end")
    assert race.finished
    spent = race.cost if unit == "cost" else race.recommend().pulls
    assert spent <= budget + 1e-6
    assert race.cost >= 0.0


def test_a_failure_leaves_the_checkpoint_and_a_replicate_is_paid_in_full():
    race = make(continues=True)
    race.tell(Pull(0, 0), Observation(0.0))
    race.tell(Pull(0, 1), Observation(None))
    race.tell(Pull(0, 1), Observation(0.0))
    assert race.cost == 1.0 + 2.0 + 2.0
    race.tell(Replicate(0, 2, shortlist=(0, 1)), Observation(0.0))
    assert race.cost == 5.0 + 9.0


def test_measured_increments_add_up_to_costs_from_scratch():
    race = make(measured=True, continues=True, budget=100.0)
    race.tell(Pull(0, 0), Observation(0.0, 2.0))
    # A crash at once does not make a dear level cheap, for which many would then begin.
    race.tell(Pull(0, 1), Observation(None, 0.1))
    assert race.search.costs == pytest.approx((2.0, 6.0, 18.0))
    race.tell(Pull(0, 1), Observation(0.0, 5.0))
    assert race.search.costs[:2] == pytest.approx((2.0, 7.0))
    assert race.cost == pytest.approx(7.1)
    race.tell(Pull(0, 2), Observation(0.0, 11.0))
    assert race.search.costs == pytest.approx((2.0, 7.0, 18.0))
    race.tell(Replicate(0, 2, shortlist=(0, 1)), Observation(0.0, 12.0))  # set up only once
    assert race.search.costs == pytest.approx((2.0, 7.0, 18.0))
    race.tell(Replicate(1, 2, shortlist=(0, 1)), Observation(0.0))
    assert race.cost == pytest.approx(18.1 + 12.0 + 12.0)


def test_a_failure_without_its_cost_counts_at_what_is_expected():
    """As of a worker that died: nobody knows what it took, and no price is learned from it."""
    race = make(measured=True, budget=100.0)
    race.tell(Pull(0, 0), Observation(None))
    assert race.cost == 0.0
    race.tell(Pull(0, 0), Observation(0.0, 5.0))
    race.tell(Pull(0, 2), Observation(None))  # a mere guess is not charged
    assert race.cost == 5.0
    race.tell(Pull(0, 1), Observation(0.0, 15.0))
    race.tell(Pull(1, 2), Observation(None))
    assert race.cost == pytest.approx(20.0 + 45.0)
    assert race.search.costs == pytest.approx((5.0, 15.0, 45.0))


@pytest.mark.parametrize(
    ("costs", "budget", "workers", "least"),
    [((1.0, 3.0, 9.0, 27.0, 81.0), 200.0, 3, 3), ((1.0, 81.0), 600.0, 1, 20)],
)
def test_the_target_is_reached_though_the_guess_says_it_is_too_dear(costs, budget, workers, least):
    """Of ten times the lowest level's cost, 81 times as much would leave nothing for the target."""
    search = ModelSearch(costs)
    search.space = SearchSpace({"x": Numeric()})
    race = BudgetedSearch(search, budget=budget, measured=True)
    run = Run(race, sigma=0.01, costs=[10.0 + 0.01 * cost for cost in costs]).to_end(workers)
    at_target = sum(pull.fidelity == len(costs) - 1 for pull in run.pulls)
    assert at_target >= least
    assert budget - 11.0 < race.cost <= budget + 11.0 * workers
    assert "nothing was evaluated at the target" not in race.recommend().reason


def finished_search(n=4, cost=10.0, **options):
    """A race whose arms have the values 0, .1, .2, ... at the target and cost all of the search."""
    race = make(**{"budget": 100.0 * n, "certify_share": 0.9, "top": 3} | options)
    for arm in range(n):
        race.search.describe(arm, {"x": arm / n})
        race.tell(Pull(arm, 2), Observation(0.1 * arm, cost))
    return race


def test_the_shortlist_is_drawn_up_of_the_best():
    race = finished_search()
    (pull,) = race.ask()
    assert pull in [Replicate(arm, 2, shortlist=(3, 2, 1)) for arm in (3, 2, 1)]
    assert race.shortlist == ()  # asking changes nothing
    race.tell(pull, Observation(0.2))
    assert race.shortlist == (3, 2, 1)
    assert not race.finished


def test_another_shortlist_keeps_what_was_told():
    race = finished_search(epsilon=0.01)
    for value in (0.30, 0.31, 0.29):
        race.tell(Replicate(3, 2, shortlist=(3, 2)), Observation(value))
    race.tell(Replicate(1, 2, shortlist=(3, 1)), Observation(0.7))  # not on the shortlist
    certificate = race.certificate()
    assert [result.evaluations for result in certificate.candidates] == [3, 0]
    race.agree((1, 3))
    certificate = race.certificate()
    assert [result.name for result in certificate.candidates] == ["arm=1", "arm=3"]
    assert [result.evaluations for result in certificate.candidates] == [1, 3]
    assert certificate.candidates[1].mean == pytest.approx(0.30)
    assert race.cost == 40.0 + 4 * 9.0


@pytest.mark.parametrize(("failures", "n_arms"), [(0, 4), (2, 3), (5, 2)])
def test_the_shortlist_leaves_room_for_failures(failures, n_arms):
    """Two looks at 4 take all 40 that are paid for; with a fifth that fails, 32: two at 3."""
    options = {"costs": (1.0, 3.0, 10.0), "budget": 480.0, "certify_share": 400 / 480}
    race = make(**options)
    for arm in range(10):
        race.search.describe(arm, {"x": arm / 10})
        value = None if arm < failures else 0.1 * arm
        race.tell(Pull(arm, 2), Observation(value, 8.0))
        race.tell(Pull(arm, 0), Observation(None, 0.0))  # of lower levels nothing follows
    assert len(race.ask()[0].shortlist) == n_arms


@pytest.mark.parametrize(("left", "waits"), [(99.0, True), (98.9, False)])
def test_who_can_begin_nothing_waits_if_a_failure_could_be_made_good(left, waits):
    """90 are for five evaluations of two arms, at 9 each; a further one takes 9."""
    options = {"budget": 200.0, "certify_share": left / 200.0, "epsilon": 0.01}
    race = finished_search(2, cost=(200.0 - left) / 2.0, **options)
    assert not race.is_ahead([])
    race.tell(race.ask()[0], Observation(0.1, 9.0))
    pending = []
    while pulls := race.ask(1, pending):
        assert not race.is_ahead(pending)
        pending += pulls
    assert len(pending) == 9
    assert race.is_ahead(pending) == waits


@pytest.mark.parametrize(
    ("budget", "unit", "is_kept"),
    [
        (144.0, "cost", True),
        (143.9, "cost", False),
        (16, "evaluations", True),
        (15, "evaluations", False),
    ],
)
def test_what_does_not_pay_for_a_comparison_is_not_kept(budget, unit, is_kept):
    """A comparison takes two evaluations of two arms: 36 of cost, or 4."""
    run = Run(make(budget=budget, unit=unit, certify_share=0.25, initial=2)).to_end()
    assert bool(run.replicates) == is_kept
    if not is_kept:
        reason = run.race.recommend().reason
        assert "a share of 0.25 of the budget is less than 4 evaluations" in reason


@pytest.mark.parametrize(
    ("evaluations", "kept", "options"),
    [
        (39, 0.0, {}),
        (40, 8.0, {}),
        (50, 10.0, {}),
        (75, 10.0, {}),
        (100, 10.0, {}),
        (150, 15.0, {}),
        (50, 5.0, {"certify_share": 0.1}),
        (99, 0.0, {"measured": True}),
        (100, 10.0, {"measured": True}),
        (75, 10.0, {"unit": "evaluations"}),
    ],
)
def test_ten_evaluations_are_kept_by_default_if_they_are_at_most_a_fifth(
    evaluations, kept, options
):
    price = 1 if "unit" in options else COSTS[-1]
    race = make(budget=evaluations * price, **options)
    assert race.budget.kept == pytest.approx(kept * price)


def test_a_fifth_is_kept_where_arms_are_given():
    search = HalvingSearch(COSTS)
    search.give([{} for _ in range(9)])
    assert BudgetedSearch(search, budget=180.0).budget.kept == pytest.approx(36.0)


@pytest.mark.parametrize(
    ("budget", "n", "options", "looks"),
    [
        (900.0, 2, {}, 1),  # ten evaluations of 9: five of each
        (1700.0, 2, {}, 1),  # nine of each
        (1800.0, 2, {}, 2),
        (3600.0, 2, {}, 3),
        (360.0, 2, {}, 1),  # two of each
        (900.0, 3, {}, None),  # more than was kept pays for them: the search ended early
        (3600.0, 2, {"measured": True}, None),
        (None, 2, {}, None),
    ],
)
def test_looks_are_planned_by_what_is_kept(budget, n, options, looks):
    race = make(budget=budget, **options)
    assert race.budget.planned_looks(n) == looks
    if budget == 3600.0 and looks:
        race.most_blocks = 13  # the search's, and twelve for the certificate
        assert race.budget.planned_looks(n) == 2


def test_the_only_look_that_a_tenth_pays_for_takes_nine_tenths_of_delta():
    run = Run(make(budget=900.0)).to_end()
    certificate = run.race.certificate()
    winner = run.race.shortlist[certificate.winner]
    new = [
        outcome.value
        for pull, outcome in run.told
        if isinstance(pull, Replicate) and pull.arm == winner
    ]
    assert (len(run.race.shortlist), len(new)) == (2, 5)
    low, high = certificate.interval
    width = stats.t.isf(0.9 * 0.05 / 4, 4) * np.std(new, ddof=1) / math.sqrt(5)
    assert (high - low) / 2 == pytest.approx(width)


@pytest.mark.parametrize(
    ("kind", "continues", "budget", "first"),
    [(HalvingSearch, False, 30, 9), (ModelSearch, True, 20, 9), (ModelSearch, False, 10, 5)],
)
def test_where_evaluations_are_counted_all_are_at_the_target(kind, continues, budget, first):
    """Nine at random, or what half of the budget pays for; costs are still said as they are."""
    search = kind((1.0, 3.0, 9.0, 27.0, 81.0), continues=continues)
    search.space = SearchSpace({"x": Numeric()})
    race = BudgetedSearch(search, budget=budget, unit="evaluations", certify_share=0.0)
    rng, chosen = np.random.default_rng(0), []
    while asked := race.ask():
        (pull,) = asked
        assert pull.fidelity == 4
        chosen.append(race.point_of(pull.arm) is not None)
        point = race.point_of(pull.arm) or {"x": float(rng.random())}
        search.describe(pull.arm, point)
        race.tell(pull, Observation(-((point["x"] - 0.3) ** 2)))
    assert len(chosen) == budget
    assert race.recommend().cost == budget * 81.0
    assert not any(chosen[:first])
    assert any(chosen[first:]) == (kind is ModelSearch)


def played_out(race, value):
    for _ in range(100):
        asked = race.ask()
        if not asked:
            break
        race.tell(asked[0], Observation(value(asked[0].arm)))
    assert race.finished
    return race.recommend()


@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
def test_when_all_of_the_shortlist_fail_the_race_ends():
    answer = played_out(finished_search(), lambda arm: None)
    assert (answer.arm, answer.certified) == (3, False)  # what the search knows


def test_in_blocks_the_search_has_the_first_one_and_its_certificate_those_after_it():
    options = {"blocks": True, "budget": 400.0, "certify_share": 0.4, "epsilon": 0.05}
    race = make(**options)
    effects, run = np.random.default_rng(7).normal(0.0, 1.0, 100), Run(race)
    pulls, told = [], []
    while asked := race.ask(3, pulls[-2:] if race.shortlist else []):
        for pull in asked:
            run.begin(pull)
            own = np.random.default_rng([pull.arm, pull.fidelity, pull.block]).normal(0.0, 0.01)
            value = true_value(run.points[pull.arm], pull.fidelity) + effects[pull.block] + own
            told.append((pull, Observation(value)))
            race.tell(*told[-1])
        pulls += asked
    blocks = {pull.block for pull in pulls if isinstance(pull, Replicate)}
    assert {pull.block for pull in pulls if not isinstance(pull, Replicate)} == {0}
    assert blocks == set(range(1, max(blocks) + 1))
    answer = race.recommend()
    assert answer.certified
    truths = {arm: true_value(run.points[arm], 2) for arm in race.shortlist}
    assert max(truths.values()) - truths[answer.arm] <= 0.05
    again = replayed(make(**options), run.points, told)
    assert str(again.recommend()) == str(answer)


@pytest.mark.parametrize("most", [2, 3, 5])
def test_of_few_replicates_the_first_is_the_search_s_alone(most):
    options = {"blocks": True, "budget": 900.0, "certify_share": 0.4, "epsilon": 0.001}
    race = make(**options)
    race.most_blocks = most
    run, blocks = Run(race), []
    while asked := race.ask(8):
        for pull in asked:
            run.begin(pull)
            run.tell(pull)
        blocks += [pull.block for pull in asked if isinstance(pull, Replicate)]
    assert set(blocks) == set(range(1, most)) - ({1} if most == 2 else set())
    answer = race.recommend()
    assert race.finished
    assert not answer.certified
    if most == 2:  # a certificate takes two besides
        assert race.shortlist == ()
        assert race.cost > 890.0
        assert "at least 2 replicates besides that of the search" in answer.reason
        return
    assert len(blocks) == len(race.shortlist) * (most - 1)
    assert f"more than the {most - 1} replicates" in answer.reason
    again = make(**options)
    again.most_blocks = most
    again = replayed(again, run.points, run.told)
    assert str(again.recommend()) == str(answer)
    assert again.finished


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n", "sigma", "budget"),
    [(HalvingSearch, 250, 0.08, 600.0), (ModelSearch, 60, None, 1000.0)],
)
def test_certificates_are_right_as_often_as_they_say(kind, n, sigma, budget):
    """A certified arm may be worse than the best listed by epsilon, another by `within`."""
    delta = 0.1
    wrong_arms = wrong_gaps = certified = lucky = missed = 0
    for seed in range(n):
        race = make(
            kind,
            costs=(1.0, 9.0),
            budget=budget,
            certify_share=0.8,
            top=4,
            delta=delta,
            epsilon=0.12,
            sigma=sigma,
            seed=seed,
        )
        run = Run(race, sigma=0.08, seed=seed).to_end()
        certificate = race.certificate()
        truths = [true_value(run.points[arm], 2) for arm in race.shortlist]
        tolerance = certificate.epsilon if certificate.certified else certificate.within
        wrong_arms += truths[certificate.winner] < max(truths) - tolerance
        certified += certificate.certified
        result = certificate.luckiest_result
        low, high = result.gap_interval
        gap = result.claim - truths[certificate.luckiest]
        wrong_gaps += not low <= gap <= high
        intervals = [one.interval for one in certificate.candidates]
        missed += any(not a <= t <= b for (a, b), t in zip(intervals, truths, strict=True))
        lucky += result.claim > truths[certificate.luckiest]
    margin = delta * n + 3.0 * math.sqrt(delta * (1.0 - delta) * n)
    assert wrong_arms <= margin
    assert wrong_gaps <= margin
    assert missed <= margin
    assert certified > n // 4, "too few certificates to say anything"
    assert lucky > 0.6 * n, "without luck the case shows nothing"
