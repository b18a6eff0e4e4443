import inspect

import pytest

from mfhpo import IISE, Bounded, Fidelity
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.problem import Problem
from mfhpo.racing.declaration import Declaration
from mfhpo.racing.options import (
    IISEOptions,
    MFEliminationOptions,
    MFGradOptions,
    MFTopTwoOptions,
    MFUCBOptions,
    runs,
    with_defaults,
)
from mfhpo.regret import MFUCB, MFElimination

DECLARED = {"sigma", "bias"}  # of the problem, not of the policy


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (IISE, IISEOptions),
        (MFTopTwo, MFTopTwoOptions),
        (MFGrad, MFGradOptions),
        (MFUCB, MFUCBOptions),
        (MFElimination, MFEliminationOptions),
    ],
)
def test_a_policy_takes_the_options_that_are_documented_for_it(policy, options):
    @runs(policy, options)
    class Host:
        def __init__(self, **options):
            self.options = with_defaults(Host, options)

    given = Host().options
    assert set(given) == set(options.__annotations__)
    assert set(inspect.signature(Host).parameters) == set(given)
    given = {name: value for name, value in given.items() if name not in DECLARED}
    made = policy(Problem(2, (1.0, 2.0)), **given)
    assert (made.delta, given["max_failures"]) == (0.05, 3)
    assert Host(delta=0.1).options["delta"] == 0.1
    with pytest.raises(TypeError, match=r"Host\(\) got an unexpected keyword argument 'seed'"):
        Host(seed=1)


def test_wrong_options_raise_before_the_race():
    declaration = Declaration.of(Fidelity("epochs", levels=[1, 9]), Bounded(0.0, 1.0), None)
    declaration.rehearse(IISE, {}, [1, 9])
    with pytest.raises(ValueError, match=r"delta must lie .* got 2"):
        declaration.rehearse(IISE, {"delta": 2}, [1, 9])
