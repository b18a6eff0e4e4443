import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from benchmarks.hpo.certificate_outcomes import Outcome, Statement, statement
from benchmarks.hpo.certificate_races import Job, Play, play
from benchmarks.hpo.certificate_summary import holds, markdown, rate, summary
from benchmarks.hpo.problems import problem_named
from mfhpo.certification.candidates import Candidate, CandidateResult
from mfhpo.certification.certificate import Certificate
from mfhpo.search import Replicate

SAID = Statement(
    shortlist=3,
    evaluations=10,
    certified=True,
    epsilon=0.5,
    within=0.4,
    short_of_best=0.2,
    claim_gap=1.0,
    claim_gap_interval=(0.5, 1.5),
    mean_gap=0.1,
    half_width=0.5,
    covered=True,
    all_covered=True,
)
OUTCOME = Outcome(
    task="lcbench 3945",
    sigma=0.5,
    seed=0,
    value=97.0,
    value_before=97.0,
    value_alone=98.0,
    alone_gap=0.5,
    cost=99.0,
    cost_alone=100.0,
    certificate=SAID,
    seconds=4.0,
)


def played(share):
    return Play(problem_named("branin", sigma=5.0), seed=3, budget=20.0, share=share)


@pytest.mark.slow
def test_the_search_alone_is_the_one_that_never_heard_of_a_certificate():
    race, whole = played(0.3), played(0.0)
    race.search()
    assert race.race.cost <= 0.7 * 20.0 + 1e-9
    assert isinstance(race.race.ask()[0], Replicate)
    alone = race.without_certificate()
    race.certify()  # does not touch the other one
    alone.search()
    whole.search()
    assert alone.configurations == whole.configurations
    assert alone.race.cost == pytest.approx(whole.race.cost)
    assert alone.answer() == whole.answer()
    assert len(alone.configurations) > len(race.configurations)


def test_a_run_holds_the_certificate_against_the_truth():
    outcome = play(Job("branin", 5.0, seed=3, budget=20.0, share=0.4))
    said = outcome.certificate
    assert said.shortlist >= 2
    assert said.short_of_best >= 0.0
    assert outcome.cost <= 20.0 + 1e-9
    assert outcome.cost_alone <= 20.0 + 1e-9
    assert Outcome.of_record(json.loads(json.dumps(asdict(outcome)))) == outcome


def result(claim, mean, radius):
    return CandidateResult.of(
        Candidate("arm", {}, claim),
        sign=1.0,
        mean=mean,
        interval=(mean - radius, mean + radius),
        evaluations=4,
        standing="not told apart",
    )


def certificate(*results, within=2.0):
    return Certificate(
        candidates=results,
        winner=1,
        luckiest=0,
        delta=0.05,
        epsilon=math.nan,
        within=within,
        finished=True,
        certified=False,
        reason="",
        evaluations=8,
        remaining=None,
        about="",
        shortlist="",
        assumptions=(),
    )


def test_a_statement_by_hand():
    # The luckiest promised 90 and has 85 +- 2; the winner has 86 +- 1.
    said = statement(certificate(result(90.0, 85.0, 2.0), result(88.0, 86.0, 1.0)), [87.5, 86.5])
    assert said.epsilon is None
    assert said.within == said.tolerance == 2.0
    assert said.short_of_best == 1.0
    assert not said.misses
    assert said.claim_gap == 2.5
    assert said.claim_gap_interval == (3.0, 7.0)
    assert said.gap_covered is False
    assert said.mean_gap == -0.5
    assert said.half_width == 1.0
    assert said.covered is True
    assert said.all_covered is False


def test_what_has_no_interval_is_neither_right_nor_wrong():
    said = statement(
        certificate(result(90.0, 85.0, math.inf), result(88.0, 86.0, math.inf), within=math.inf),
        [87.5, 86.5],
    )
    assert said.tolerance is None
    assert not said.misses
    assert said.claim_gap_interval is None
    assert said.gap_covered is None
    assert said.covered is None
    assert said.all_covered is None


def test_shares_have_exact_intervals():
    # None of 10: the upper end p has (1 - p)^10 = .025. All of 10: the lower end has p^10 = .025.
    assert rate([False] * 10)["interval"] == [0.0, pytest.approx(1.0 - 0.025**0.1, abs=1e-4)]
    assert rate([True] * 10)["interval"] == [pytest.approx(0.025**0.1, abs=1e-4), 1.0]
    assert rate([]) == {"count": 0, "of": 0, "share": None, "interval": None}


def outcomes():
    silent = replace(SAID, certified=False, epsilon=None, within=None, claim_gap_interval=None)
    beyond = replace(SAID, certified=False, within=0.1, claim_gap=2.0, covered=False)
    return [
        OUTCOME,
        replace(OUTCOME, seed=1, certificate=beyond, value=99.0),
        replace(OUTCOME, seed=2, certificate=silent),
        replace(OUTCOME, task="rbv2_xgboost 16", certificate=None, value=98.0),
    ]


def test_summary_by_hand():
    rows = summary(outcomes(), {"lcbench 3945": 99.0, "rbv2_xgboost 16": 100.0})
    assert [row["tasks"] for row in rows] == ["LCBench", "rbv2_xgboost", "all"]
    networks, trees, everything = rows
    counts = {
        "certified": (1, 3),
        "without_tolerance": (1, 3),
        "beyond_epsilon": (0, 1),
        "beyond_within": (1, 1),
        "beyond_tolerance": (1, 2),
        "claim_gap_outside": (1, 2),
        "winner_outside": (1, 3),
        "any_outside": (0, 3),
    }
    assert {name: (networks[name]["count"], networks[name]["of"]) for name in counts} == counts
    assert trees["certified"]["of"] == 1
    assert trees["beyond_tolerance"]["of"] == 0
    # Regrets 2, 0, 2 and 2 with a certificate; 1, 1, 1 and 2 without.
    assert networks["regret"] == pytest.approx(4 / 3, abs=1e-4)
    assert everything["regret"] == 1.5
    assert everything["regret_alone"] == 1.25
    assert everything["alone_difference"] == 0.25
    differences = np.array([1.0, -1.0, 1.0, 0.0])
    error = differences.std(ddof=1) / 2.0
    assert everything["alone_standard_error"] == pytest.approx(error, abs=1e-4)
    how = [everything[f"alone_{name}"] for name in ("better", "equal", "worse")]
    assert how == [1, 1, 2]
    table = markdown(rows, 0.5)
    assert "1 of 2: 50.0 % (1.3 to 98.7)" in table
    assert len({len(line) for line in table.splitlines()}) == 1


def test_wrong_statements_and_lost_regret_are_told():
    best = {"lcbench 3945": 99.0}
    fine = [replace(OUTCOME, seed=seed, value=98.0) for seed in range(20)]
    assert all(holds(summary(fine, best)).values())
    # 5 of 20 is beyond chance where .05 is allowed: its exact interval begins at .087.
    miss = replace(SAID, short_of_best=1.0, claim_gap=3.0, covered=False, all_covered=False)
    bad = [replace(one, certificate=miss) if one.seed < 5 else one for one in fine]
    checked = holds(summary(bad, best))
    assert list(checked.values()) == [False] * 4 + [True]
    # 3 of 20 may be chance: it begins at .032.
    few = [replace(one, certificate=miss) if one.seed < 3 else one for one in fine]
    assert all(holds(summary(few, best)).values())
    lost = [replace(one, value=97.0 + 0.01 * one.seed) for one in fine]
    assert list(holds(summary(lost, best)).values()) == [True] * 4 + [False]
