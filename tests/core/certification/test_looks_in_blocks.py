"""Planned looks in blocks; for those at independent values see the file beside this one."""

import math
from functools import partial

import numpy as np
import pytest

from mfhpo import Observation, Pull
from tests.core.certification.races import EFFECTS, PATTERN, make_looks

pytestmark = pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")


make = partial(make_looks, delta=0.2, epsilon=0.0)


def tell(policy, arm, block, value):
    policy.tell(Pull(arm, 0, block=block), Observation(value))


def tell_differences(policy, differences):
    """The second arm is better by these, whatever the blocks do to both."""
    for block, difference in enumerate(differences):
        tell(policy, 0, block, EFFECTS[block])
        tell(policy, 1, block, EFFECTS[block] + difference)


def test_pairs_are_compared_by_their_differences():
    policy = make()
    tell_differences(policy, [1.0 + step for step in PATTERN])
    # Level .1 of the first look for the only pair, 5 - 1 degrees: t = 1.533.
    assert policy.rule.behind(policy.known) == pytest.approx(
        1.533 * math.sqrt(2.5 / 5) - 1.0, abs=1e-3
    )
    assert policy.leader()[0] == 1
    assert not policy.finished
    sure = make()
    tell_differences(sure, [1.2 + step for step in PATTERN])
    assert sure.winner == 1  # 1.084 < 1.2
    assert sure.recommend().certified
    assert "differences of configurations on the same one" in sure.recommend().conditions[1]


def test_own_means_have_the_spread_of_the_blocks():
    policy = make()
    tell_differences(policy, PATTERN)
    count, mean, radius = policy.summary(0, 0)
    values = EFFECTS[:5]
    assert (count, mean) == (5, pytest.approx(values.mean()))
    # .1 / 4 on each side of two means, 4 degrees: t = 2.776.
    assert radius == pytest.approx(2.776 * values.std(ddof=1) / math.sqrt(5), rel=1e-3)


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize(("n_blocks", "looks"), [(2, 1), (3, 1), (5, 2)])
def test_there_are_few_blocks(n_blocks, looks, workers):
    policy = make(3, first_look=2)
    policy.most_blocks = n_blocks
    rng, under_way, told = np.random.default_rng(1), [], []
    while not policy.finished:
        asked = policy.ask(workers, under_way) if len(under_way) < workers else []
        under_way += asked[: workers - len(under_way)]
        assert under_way
        pull = under_way.pop(int(rng.integers(len(under_way))))
        tell(policy, pull.arm, pull.block, float(rng.normal()))
        told.append((pull.arm, pull.block))
    assert len(set(told)) == len(told)
    assert max(block for _, block in told) < n_blocks
    answer = policy.recommend()
    assert policy.rule.looks == looks
    assert not answer.certified
    assert f"a further look takes more than the {n_blocks} replicates" in answer.reason
    assert answer.remaining_cost == math.inf


def test_what_is_repeated_or_does_not_exist_is_paid_for_and_does_not_count():
    policy = make()
    policy.most_blocks = 20
    tell_differences(policy, PATTERN[:4])
    tell(policy, 0, 2, 1e6)
    tell(policy, 0, 20, 1e6)
    assert (policy.pulls, policy.cost, policy.rule.looks) == (8, 10.0, 0)
    pending = [Pull(0, 0, block=20), Pull(1, 0, block=20)]
    assert policy.rule.looks_with(policy.known, pending) == 0
    assert policy.rule.missing(policy.known, pending) == 2
    with pytest.raises(ValueError, match="block must be at least 0, got None"):
        policy.tell(Pull(0, 0), Observation(1.0))


def test_a_look_waits_for_gaps():
    policy = make()
    for block in (0, 2, 3, 4, 5):
        for arm in (0, 1):
            tell(policy, arm, block, EFFECTS[block] + arm * PATTERN[block % 5])
    assert policy.rule.looks == 0
    assert [(pull.arm, pull.block) for pull in policy.ask(2)] == [(0, 1), (1, 1)]
    assert policy.ask(1, [Pull(0, 0, block=1)]) == [Pull(1, 0, block=1)]
    for arm in (1, 0):
        tell(policy, arm, 1, EFFECTS[1])
    assert policy.rule.looks == 1
    assert policy.summary(0, 0)[1] == pytest.approx(EFFECTS[:5].mean())


def test_equal_differences_may_hide_others():
    # .81 - .80 and .71 - .70 differ by a bit or two. Values of either arm have the variance 1/60.
    policy = make(first_look=4)
    for block in range(4):
        base = 0.8 - 0.1 * block
        tell(policy, 0, block, round(base, 2))
        tell(policy, 1, block, round(base + 0.01, 2))
    # On 1 - .1^(1/4) = .438 of the replicates the difference may be another one; t = 1.638.
    assert policy.rule.behind(policy.known) == pytest.approx(
        1.638 * math.sqrt(0.438 / 60 / 4) - 0.01, abs=1e-4
    )
    assert policy.winner is None


def test_equal_differences_hide_as_much_as_the_others_show():
    policy = make(first_look=4)
    tell_differences(policy, [0.0, 0.0, 2.0, 0.0])
    # The variance is 1; .438 of 3/4 of the replicates may differ by 2.
    radius = 1.638 * math.sqrt((1.0 + 0.75 * 0.438 * 4.0) / 4)
    assert policy.rule.behind(policy.known) == pytest.approx(radius - 0.5, abs=1e-3)
