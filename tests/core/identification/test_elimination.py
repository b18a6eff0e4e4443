import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulation.rounds import plan_rounds, tell_rounds
from mfhpo.identification.elimination import IISE, LevelByLevel
from mfhpo.knowledge.bias import Bias, BiasContradictedWarning
from mfhpo.knowledge.confidence import HoeffdingRadius
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Observation, Problem, Pull
from mfhpo.racing.race import ArmWithdrawnWarning, Race
from tests.core.racing.plays import play


def tell_all(policy, objective, pulls):
    for pull in pulls:
        policy.tell(pull, Observation(objective(pull)))


def noisy(means, sigma=1.0, seed=0):
    rng = np.random.default_rng(seed)
    table = np.asarray(means, dtype=np.float64)
    return lambda pull: float(table[pull.fidelity, pull.arm] + sigma * rng.standard_normal())


def tapes_of(means, sigma, seed, length=400):
    """The n-th value of each arm at each fidelity, (M, K, length), whoever asks."""
    noise = np.random.default_rng(seed).standard_normal((*means.shape, length))
    return means[:, :, None] + sigma * noise


def judged(values, active, margin, radius, epsilon):
    """Return who leaves by the values at a fidelity, and the arm to end with, or None."""
    low, high = dict.fromkeys(active, -math.inf), dict.fromkeys(active, math.inf)
    for arm in active:
        if seen := values.get(arm, []):
            mean, half = sum(seen) / len(seen), radius(len(seen))
            low[arm], high[arm] = mean - half, mean + half
    leader = max(active, key=lambda arm: low[arm])
    out = [arm for arm in active if arm != leader and low[leader] >= high[arm] + margin]
    rest = [high[arm] + margin for arm in active if arm not in (leader, *out)]
    is_close = epsilon > 0.0 and rest and low[leader] + epsilon >= max(rest)
    return out, leader if is_close or not rest else None


def algorithm_1(tapes, fidelities, alpha, margins, radius, epsilon, most):
    """Algorithm 1 of Poiani et al. (2022) word by word: one pull at a time."""
    active, exits, pulls, winner = list(range(tapes.shape[1])), {}, {}, None
    for fidelity in fidelities:
        t = 0
        while winner is None and t < most and (t == 0 or 4.0 * radius(t) > alpha[fidelity]):
            t += 1
            pulls |= {(arm, fidelity): t for arm in active}
            values = {arm: tapes[fidelity, arm, :t].tolist() for arm in active}
            out, winner = judged(values, active, margins[fidelity], radius, epsilon)
            exits |= dict.fromkeys(out, (fidelity, t))
            active = [arm for arm in active if arm not in out]
        if winner is not None or (t >= most and 4.0 * radius(t) > alpha[fidelity]):
            break
    return exits, pulls, winner


VARIANTS = ("SE", "IISE", "IISE-gamma", "MFE")


def setting(variant, seed):
    """Random means (M, K), the problem, the fidelities used and the thresholds, by the paper."""
    rng = np.random.default_rng(seed)
    n_arms, n_fidelities = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    bounds = np.append(np.sort(rng.uniform(0.05, 1.0, n_fidelities - 1))[::-1], 0.0)
    costs = np.cumprod(rng.uniform(1.2, 4.0, n_fidelities))
    targets = rng.normal(0.0, 1.5, n_arms)
    targets[0] = targets.max() + 1.0
    means = targets + bounds[:, None] * rng.uniform(-1.0, 1.0, (n_fidelities, n_arms))
    kind = "order" if variant == "IISE-gamma" else "max"
    problem = Problem(
        n_arms, tuple(costs.tolist()), Bias(kind, tuple(bounds.tolist())), SubGaussian(1.0)
    )
    # c = 4 with xi, c = 2 with gamma (Eq. 8 and Section 5); MFE: a share of xi.
    factor = 2.0 if kind == "order" else 4.0
    roots = np.sqrt(costs)

    def convenient(m, k):
        return factor * (bounds[m] - bounds[k]) * roots[m] / (roots[k] - roots[m])

    levels = range(n_fidelities)
    alpha = [max((convenient(m, k) for k in levels[m + 1 :]), default=0.0) for m in levels]
    if variant == "MFE":
        alpha = (0.7 * bounds).tolist()
    used = [n_fidelities - 1] if variant == "SE" else list(range(n_fidelities))
    return means, problem, HoeffdingRadius(0.3), used, alpha


def policy_of(variant, problem, **options):
    options = {"delta": 0.1, "audit": False} | options
    if variant == "SE":
        return IISE(problem, variant="se", **options)
    fraction = 0.7 if variant == "MFE" else None
    return Race(problem, LevelByLevel(problem, preselect=False, fraction=fraction), **options)


def counts_of(policy):
    return {cell: count for cell, count in np.ndenumerate(policy.counts) if count}


def level_of(variant, problem):
    compared = 1 if variant == "SE" else problem.n_fidelities
    return 0.1 / (problem.n_arms * compared)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=30)
@given(
    block=st.sampled_from([1, 7, 400]),
    epsilon=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 10**6),
)
def test_rounds_against_algorithm_1(variant, block, epsilon, seed):
    most = 400
    means, problem, radius, used, alpha = setting(variant, seed)
    tapes = tapes_of(means, 0.3, seed)
    level = level_of(variant, problem)
    widths = radius(np.arange(1, most + 1), level).tolist()
    exits, pulls, winner = algorithm_1(
        tapes, used, alpha, problem.bias.margins, lambda t: widths[t - 1], epsilon, most
    )
    policy = policy_of(variant, problem, radius=radius, epsilon=epsilon)
    found = {}
    sums = {(m, i): np.cumsum(tapes[m, i]) for m in used for i in range(problem.n_arms)}
    while not policy.finished:
        plan = plan_rounds(policy)
        end = min(plan.done + block, plan.until or most, most)
        if end <= plan.done:
            break
        totals = np.arange(plan.done + 1, end + 1)
        tell_rounds(
            policy,
            totals,
            np.stack([sums[plan.fidelity, int(i)][plan.done : end] for i in plan.arms]),
        )
        for arm in set(plan.arms.tolist()) - set(policy.active.tolist()):
            found[arm] = (plan.fidelity, policy.summary(arm, plan.fidelity)[0])
    assert found == exits
    assert counts_of(policy) == pulls
    costs = problem.costs or ()
    assert policy.cost == pytest.approx(sum(costs[m] * n for (_, m), n in pulls.items()))
    assert policy.pulls == sum(pulls.values())
    recommendation = policy.recommend()
    assert recommendation.certified == policy.finished == (winner is not None)
    assert winner in (None, recommendation.arm)


def one_by_one(tapes, order, margins, radius, epsilon, compared):
    active, exits, values, winner = list(range(tapes.shape[1])), {}, {}, None
    for number, (arm, m) in enumerate(order):
        at_fidelity = values.setdefault(m, {})
        cell = at_fidelity.setdefault(arm, [])
        cell.append(tapes[m, arm, len(cell)])
        if m in compared and winner is None:
            out, winner = judged(at_fidelity, active, margins[m], radius, epsilon)
            exits |= dict.fromkeys(out, (m, number))
            active = [arm for arm in active if arm not in out]
    return exits, winner


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=15)
@given(
    workers=st.sampled_from([1, 5]), epsilon=st.sampled_from([0.0, 0.5]), seed=st.integers(0, 10**6)
)
def test_ask_and_tell_against_the_rule_after_every_tell(variant, workers, epsilon, seed):
    means, problem, radius, used, _ = setting(variant, seed)
    tapes = tapes_of(means, 0.3, seed)
    widths = radius(np.arange(1, 401), level_of(variant, problem)).tolist()
    policy = policy_of(variant, problem, radius=radius, epsilon=epsilon)
    rng = np.random.default_rng(seed)
    order, found, under_way, done = [], {}, [], {}
    while not policy.finished and len(order) < 400:
        under_way += policy.ask(workers - len(under_way), under_way)
        pull = under_way.pop(int(rng.integers(len(under_way))))
        cell = (pull.arm, pull.fidelity)
        before = set(policy.active.tolist())
        policy.tell(pull, Observation(tapes[pull.fidelity, pull.arm, done.get(cell, 0)]))
        done[cell] = done.get(cell, 0) + 1
        for arm in before - set(policy.active.tolist()):
            found[arm] = (pull.fidelity, len(order))
        order.append(cell)
    exits, winner = one_by_one(
        tapes, order, problem.bias.margins, lambda n: widths[n - 1], epsilon, used
    )
    assert found == exits
    recommendation = policy.recommend()
    assert recommendation.certified == (winner is not None)
    assert winner in (None, recommendation.arm)
    assert counts_of(policy) == done
    assert policy.cost == pytest.approx(
        sum((problem.costs or ())[m] * n for (_, m), n in done.items())
    )


PROBLEM = Problem(3, (1.0, 10.0), Bias.max(0.1, 0.0), SubGaussian(1.0))


def test_epsilon_stop_by_hand():
    # Without noise (sigma 0) the radius is 0. Three arms at 1.0, 0.9, 0.5; xi = 0.05, margin 0.1.
    # At fidelity 0, arm 2 leaves: 1.0 - 0.5 >= 0.1. Arm 1 is 0.1 - 0.001 short of it, and
    # 0.099 + 0.2 >= 0.1: the race ends at fidelity 0, without the target.
    problem = Problem(3, (1.0, 100.0), Bias.max(0.05, 0.0), SubGaussian(0.0))
    policy = IISE(problem, epsilon=0.2)
    pulls = play(policy, lambda pull: (1.0, 0.901, 0.5)[pull.arm])
    answer = policy.recommend()
    assert pulls == [Pull(0, 0), Pull(1, 0), Pull(2, 0)]
    assert (answer.arm, answer.certified, answer.survivors, answer.cost) == (0, True, (0, 1), 3.0)
    assert "within epsilon" in answer.reason
    # mean ± xi: 1.0 ± 0.05.
    assert answer.interval == pytest.approx((0.95, 1.05))


def test_measure_pulls_the_winner_at_the_target():
    means = [[0.0, 0.0, 9.0], [0.0, 0.0, 9.0]]
    without, with_measure = IISE(PROBLEM, audit=False), IISE(PROBLEM, measure=4, audit=False)
    first = play(without, noisy(means))
    assert {pull.fidelity for pull in first} == {0}
    assert play(with_measure, noisy(means)) == first + [Pull(2, 1)] * 4
    answer = with_measure.recommend()
    assert (answer.certified, answer.fidelity) == (True, 1)
    assert answer.cost == pytest.approx(without.cost + 40.0)


FAILED = Observation(None)


def test_three_failures_withdraw_an_arm_that_has_no_value():
    policy = IISE(PROBLEM)
    policy.tell(Pull(1, 0), FAILED)
    policy.tell(Pull(1, 1), Observation(math.nan))
    assert policy.active.tolist() == [0, 1, 2]
    message = r"leaves the race: 3 of 3 .*no number of a size up to 1e50\), the last at fidelity 0"
    with pytest.warns(ArmWithdrawnWarning, match=message) as caught:
        policy.tell(Pull(1, 0), Observation(math.inf))
    assert "max_failures=3" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert policy.active.tolist() == [0, 2]
    assert policy.cost == 12.0  # failures are paid for
    assert policy.summary(1, 0)[0] == 0
    assert policy.recommend().not_compared == ("arm 1: failed 3 of 3",)
    assert policy.recommend().failures == 3
    # Withdrawn once and for all, and only one warning.
    policy.tell(Pull(1, 0), FAILED)
    policy.tell(Pull(1, 0), Observation(100.0))
    assert policy.active.tolist() == [0, 2]


def test_arms_that_a_withdrawn_arm_eliminated_come_back_and_one_of_them_wins():
    problem = Problem(4, (1.0,), Bias.max(0.0), SubGaussian(0.0))
    policy = IISE(problem, variant="se")
    values = (0.3, 0.2, 0.9, 0.1)
    for arm in (0, 1, 3):
        policy.tell(Pull(arm, 0), Observation(values[arm]))
    assert policy.active.tolist() == [0, 2]  # 0 eliminated 1 and 3; 2 was not seen
    policy.tell(Pull(2, 0), Observation(values[2]))
    assert policy.active.tolist() == [2]
    policy.withdraw(2)
    # 2 had eliminated 0 alone; 1 and 3 stay out, for 0 is back.
    assert policy.active.tolist() == [0]
    assert (policy.recommend().arm, policy.recommend().certified) == (0, True)


def test_an_arm_that_led_and_fails_from_then_on_keeps_the_answer_uncertified():
    policy = IISE(Problem(3, (1.0,), Bias.max(0.0), SubGaussian(0.0)), variant="se")
    policy.tell(Pull(2, 0), Observation(0.9))
    policy.tell(Pull(0, 0), Observation(0.3))
    # One value: 12 failures are not yet surely more than half of all that may come, 13 are.
    for _ in range(12):
        policy.tell(Pull(2, 0), FAILED)
    assert 2 in policy.active
    with pytest.warns(ArmWithdrawnWarning, match="13 of 14 pulls gave no value"):
        policy.tell(Pull(2, 0), FAILED)
    policy.tell(Pull(1, 0), Observation(0.2))
    answer = policy.recommend()
    assert (answer.arm, answer.finished, answer.certified) == (0, True, False)
    assert answer.reason.startswith("arm 2 led when it left the race")
    assert answer.not_compared == ("arm 2: failed 13 of 14",)
    assert answer.compared == 2


@pytest.mark.parametrize("kind", ["max", "order"])
def test_a_false_bound_is_widened_and_the_best_arm_put_back_wins(kind):
    # The best arm's cheap value is 3 too low; 0.2 is declared.
    means = [[-1.0, 1.5, 1.0, 0.5, 0.0], [2.0, 1.5, 1.0, 0.5, 0.0]]
    policy = IISE(Problem(5, (1.0, 4.0), Bias(kind, (0.2, 0.0)), SubGaussian(0.5)))
    objective = noisy(means, 0.5)
    # The cheap fidelity has eliminated the best arm ...
    while 0 in policy.active:
        [pull] = policy.ask()
        policy.tell(pull, Observation(objective(pull)))
        assert pull.fidelity == 0
    # ... whose other pulls, asked for long ago by somebody else, come in now.
    late = [Pull(arm, fidelity) for _ in range(40) for arm in (0, 1) for fidelity in (0, 1)]
    with pytest.warns(BiasContradictedWarning) as caught:
        tell_all(policy, objective, late)
    text = str(caught[0].message)
    arms = ("arm 0: ",) if kind == "max" else ("arm 0 and arm", "arm 1 and arm 0: ")
    assert text.startswith(arms)
    assert "fidelity 0 and fidelity 1 differ by" in text
    assert "allow at most 0.2;" in text
    assert "the bound at fidelity 0 is widened to" in text
    assert caught[0].filename == __file__  # where tell was called
    assert policy.bias.source == "widened"
    assert policy.bias.bounds[0] >= 3.0 - 1e-9
    assert 0 in policy.active
    play(policy, objective)
    answer = policy.recommend()
    assert (answer.arm, answer.certified) == (0, True)
    assert any("widened because observations contradicted" in a for a in answer.assumptions)


def test_a_tie_does_not_end_but_has_an_answer():
    # Two arms whose values are equal for ever, and a declared noise that forbids to believe it.
    problem = Problem(3, (1.0,), Bias.max(0.0), SubGaussian(1.0))
    policy = IISE(problem, variant="se")
    play(policy, lambda pull: (5.0, 5.0, 0.0)[pull.arm], 400)
    answer = policy.recommend()
    assert (policy.finished, answer.survivors, answer.certified) == (False, (0, 1), False)
    assert answer.arm in (0, 1)
    assert answer.reason == "2 arms are not told apart yet"
    assert answer.remaining_cost == math.inf
    tolerant = IISE(problem, variant="se", epsilon=1.0)
    play(tolerant, lambda pull: (5.0, 5.0, 0.0)[pull.arm], 2000)
    assert tolerant.recommend().certified


def test_pulls_at_other_fidelities_are_used():
    # Told at the target although the first phase is on: with sigma 0 that decides.
    problem = Problem(2, (1.0, 10.0), Bias.max(5.0, 0.0), SubGaussian(0.0))
    policy = IISE(problem)
    policy.tell(Pull(0, 1), Observation(1.0))
    policy.tell(Pull(1, 1), Observation(2.0))
    assert (policy.recommend().arm, policy.recommend().certified) == (1, True)
    # SE does not look below the target, whatever it is told there.
    alone = IISE(problem, variant="se")
    alone.tell(Pull(0, 0), Observation(1.0))
    alone.tell(Pull(1, 0), Observation(200.0))
    assert alone.active.tolist() == [0, 1]


def test_a_race_that_ends_with_its_pilot_is_audited():
    # The order of the arms is reversed at the cheap fidelity, by far more than was declared.
    problem = Problem(2, None, Bias.order(0.01, 0.0), SubGaussian(0.1), n_fidelities=2)
    policy = IISE(problem, pilot_pulls=40)
    means = [[1.0, 0.0], [0.0, 1.0]]
    objective = noisy(means, 0.1)
    with pytest.warns(BiasContradictedWarning):
        play(policy, objective, costs=(1.0, 9.0))
    assert (policy.recommend().arm, policy.recommend().certified) == (1, True)
