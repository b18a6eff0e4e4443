"""Races among the candidates of a shortlist."""

from functools import partial

import numpy as np
import pytest

from mfhpo import BlockElimination, Problem, Pull
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.identification.group_sequential import GroupSequential

PATTERN = (-2.0, -1.0, 0.0, 1.0, 2.0)  # mean 0, variance 10 / 4 = 2.5; twice over, 20 / 9
EFFECTS = np.random.default_rng(0).normal(0.0, 100.0, 200)
"""The effect of a block on all arms."""

in_blocks = partial(Certification, blocks=True)
by_looks = partial(Certification, first_look=5)

KINDS = [Certification, by_looks, in_blocks, partial(by_looks, blocks=True)]


def race_of(kind, n=2, claims=None, **options):
    claims = claims or [1.0] * n
    candidates = [Candidate(f"row {k}", {"k": k}, claim) for k, claim in enumerate(claims)]
    return kind(candidates, **{"luckiest": 0, "maximise": True, **options})


def tell(race, arm, value, block=0):
    race.tell(Pull(arm, 0, block=block), value)


def evaluate(race, outcome):
    """Evaluate what a race asks for; `outcome` is the value of an arm."""
    pull = race.ask()
    race.tell(pull, outcome(pull.arm))
    return pull


def make_looks(n=2, **options):
    return GroupSequential(Problem(n, costs=(1.0,)), **{"blocks": True, **options})


def make_elimination(n, **options):
    return BlockElimination(Problem(n, costs=(1.0,)), **options)


both = pytest.mark.parametrize("make", [make_looks, make_elimination], ids=["looks", "elimination"])
