import pytest

from mfhpo_sklearn.evaluation import evaluations


def test_what_has_ended_comes_in_order_and_without_a_gap_before_an_interrupt():
    def interrupted(tasks):
        yield from [(1, "b"), (0, "a"), (4, "e"), (3, "d")]
        raise KeyboardInterrupt

    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(evaluations(interrupted, [()] * 5))
    assert found == ["a", "b"]  # what is under way takes long, and may be poor
