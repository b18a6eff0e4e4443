import inspect

import pytest

from mfhpo import IISE, Bounded, Fidelity
from mfhpo.certification.choice import make_lucb
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


def test_what_is_wrong_in_all_directions_raises_before_the_race():
    declaration = Declaration.of(Fidelity("epochs", levels=[1, 9]), Bounded(0.0, 1.0), None)
    tried = []

    def make(problem, sign, options):
        tried.append((sign, problem.noise, options["seed"]))
        if sign < 0.0:
            raise ValueError("second_no_worse_than")

    declaration.rehearse(make, {}, [1, 9], (1.0, -1.0))
    assert tried == [(1.0, Bounded(0.0, 1.0), 0), (-1.0, Bounded(-1.0, 0.0), 0)]
    with pytest.raises(ValueError, match="second_no_worse_than"):
        declaration.rehearse(make, {}, [1, 9], (-1.0,))
    with pytest.raises(TypeError, match="budget must be a number"):
        declaration.rehearse(make, {"budget": "much"}, [1, 9], (1.0,))


def test_bounds_on_the_means_are_mirrored():
    options = {"explore": "A", "best_no_better_than": 0.1, "second_no_worse_than": 0.4}
    problem = Problem(2, (1.0, 2.0))
    make_lucb(problem, -1.0, options)
    with pytest.raises(ValueError, match=r"second_no_worse_than=0\.4 must be worse .* maximised"):
        make_lucb(problem, 1.0, options)
