import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.racing.roster import Roster

N_ARMS = 6


@given(seed=st.integers(0, 10_000))
def test_active_arms_are_those_of_the_mask_at_all_times(seed):
    rng = np.random.default_rng(seed)
    roster = Roster(N_ARMS)
    for _ in range(20):
        before = roster.arms.tolist()
        assert before == np.flatnonzero(roster.active).tolist()
        some = rng.permutation(N_ARMS)[: rng.integers(1, 3)]
        arm, by = int(some[0]), int(rng.integers(N_ARMS))
        match int(rng.integers(6)):
            case 0:
                roster.eliminate(some, by, 0, 0.5)
            case 1:
                roster.withdraw(arm)
            case 2:
                roster.merge(arm, by)
            case 3:
                roster.restore_unsupported(np.array([rng.random()]))
            case 4:
                roster.restore_eliminated()
            case _:
                other = Roster(N_ARMS)
                other.eliminate(np.array([arm]), by)
                assert other.arms.tolist() == [one for one in range(N_ARMS) if one != arm]
                other.load_state_dict(roster.state_dict())
                roster = other
    assert roster.arms.tolist() == np.flatnonzero(roster.active).tolist()


def test_active_arms_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        Roster(N_ARMS).arms[0] = 3
