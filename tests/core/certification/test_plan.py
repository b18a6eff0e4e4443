import json
import math

import numpy as np
import pytest

from mfhpo import Bounded
from mfhpo.certification.candidates import Candidate, Shortlist, n_finalists, own_noise
from mfhpo.certification.certification import Certification
from mfhpo.certification.plan import plan_of

OPTIONS = {"delta": 0.05, "epsilon": None, "budget": None, "sigma": None, "measure": 10}


def planned(claims, own_values=(), shares_splits=False, sign=1.0, **options):
    candidates = tuple(Candidate(f"trial {k}", {"k": k}, claim) for k, claim in enumerate(claims))
    shortlist = Shortlist(
        candidates,
        0,
        f"the {len(claims)} best of 50 trials",
        "by their values",
        own_values=own_values,
        shares_splits=shares_splits,
    )
    return plan_of(shortlist, {**OPTIONS, **options}, sign)


def test_a_plan_says_what_it_rests_on():
    claims = [1.0, 0.9, 0.85, 0.7]
    plan = planned(claims, epsilon=0.05, budget=20)
    assert plan.noise == pytest.approx(0.2)  # 1.5 of them from the best to the last
    assert plan.at_twice_epsilon < plan.evaluations < plan.at_half_epsilon
    assert plan.finalists == tuple({"k": k} for k in range(4))
    text = str(plan)
    assert text.startswith(f"about {float(f'{plan.evaluations:.2g}'):.0f} evaluations to certify")
    assert "guessed by how far the finalists' own values are apart" in text
    assert "budget      20 evaluations may not do" in text
    assert json.loads(json.dumps(plan.to_dict()))["noise"] == pytest.approx(0.2)
    repeated = planned(claims, tuple((claim - 0.1, claim + 0.1) for claim in claims))
    assert repeated.noise == pytest.approx(math.sqrt(4 * 0.02 / 4))
    assert repeated.epsilon == repeated.noise
    assert "by the search's own repeats" in repeated.rests_on
    assert planned(claims, sigma=0.3).noise == 0.3


def test_what_is_minimised_takes_as_much():
    claims = np.array([0.1, 0.101, 0.104, 0.5, math.nan])
    options = {"sigma": 0.02, "epsilon": 0.01}
    least, most = planned(claims, sign=-1.0, **options), planned(-claims, **options)
    assert least.evaluations == most.evaluations > 50


def test_few_replicates_are_all_used():
    plan = planned([1.0, 0.9, 0.85], blocks=True, replicates=5)
    assert (plan.evaluations, plan.epsilon) == (15.0 + 14.0, 0.0)
    assert "otherwise" not in str(plan)
    assert "15 on all 5 replicates are exact; up to 14 are made twice" in plan.rests_on
    assert planned([1.0, 0.9, 0.85], blocks=True, replicates=2**31).evaluations != 20.0
    bounded = planned([1.0, 0.9], blocks=True, replicates=800, sigma=Bounded(0.0, 1.0))
    assert bounded.evaluations == 1_600.0 + 80.0


def test_what_cannot_be_guessed():
    assert planned([1.0, 0.9, 0.8], sigma=0.0).evaluations == 2.0 + 10.0
    equal = planned([1.0, 1.0, 1.0])
    assert 30 < equal.evaluations < 150  # in units of the noise
    assert math.isnan(equal.epsilon)
    assert "epsilon = one standard deviation of the noise" in str(equal)
    for unknown in (
        planned([1.0, 1.0], epsilon=0.1),
        planned([1.0, 0.5], sigma=Bounded(0.0, 1.0)),
    ):
        assert math.isnan(unknown.evaluations)
        assert str(unknown).startswith("nobody knows how many evaluations")
        assert unknown.to_dict()["evaluations"] is None


def test_what_splits_do_to_all_is_no_noise_between_them():
    rng = np.random.default_rng(0)
    splits = rng.normal(0.0, 1.0, 5)
    means = np.array([0.1, 0.05, 0.0, -0.05])
    own = tuple(tuple((mean + splits + rng.normal(0.0, 0.01, 5)).tolist()) for mean in means)
    claims = [float(np.mean(values)) for values in own]
    alone, shared = (planned(claims, own, shares, blocks=True) for shares in (False, True))
    assert alone.noise == shared.noise
    assert shared.evaluations < alone.evaluations
    assert shared.rests_on.endswith("with what splits do to all of them left out")


@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_guesses_are_near_what_races_take(spread):
    truths = np.linspace(spread, 0.0, 5)
    guesses, taken = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        claims = np.sort(truths + rng.normal(0.0, 1.0, 5))[::-1].tolist()
        own = tuple((claim - 0.7, claim + 0.7) for claim in claims)
        guesses.append(planned(claims, own, epsilon=1.0).evaluations)
        candidates = [Candidate(str(k), {}, 0.0) for k in range(5)]
        race = Certification(candidates, luckiest=0, maximise=True, epsilon=1.0, seed=seed)
        while not race.finished:
            pull = race.ask()
            race.tell(pull, rng.normal(truths[pull.arm]))
        taken.append(race.evaluations)
    assert 0.6 < np.median(guesses) / np.median(taken) < 1.7


def test_those_far_below_the_best_are_left_out():
    own = [(1.0, 1.1, 0.9), (0.95, 1.05), (0.9,), (0.2, 0.3), (0.1,)]
    # Squares .02 + .005 + .005 = .03 with 4 degrees of freedom.
    assert own_noise(own) == pytest.approx(math.sqrt(0.03 / 4))
    # Three standard errors are .15 to .3: .75 to .9 below is far.
    assert n_finalists(own, 1.0, None) == (3, 2)
    assert n_finalists([tuple(-v for v in values) for values in own], -1.0, None) == (3, 2)
    assert n_finalists(own, 1.0, 5) == (5, 0)
    assert n_finalists([(1.0,), (0.0,)] * 5, 1.0, None) == (6, 0)  # none is repeated
    assert own_noise([(1.0, 1.0)] * 5) is None
