"""Races among the candidates of a shortlist."""

from functools import partial

from mfhpo import Pull
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification

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
