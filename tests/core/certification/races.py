"""Races among the candidates of a shortlist."""

from mfhpo.certification.candidates import Candidate
from mfhpo.certification.group_sequential import GroupSequentialCertification
from mfhpo.certification.paired import PairedCertification
from mfhpo.certification.sequential import Certification

KINDS = [Certification, GroupSequentialCertification, PairedCertification]


def race_of(kind, n=2, claims=None, **options):
    claims = claims or [1.0] * n
    candidates = [Candidate(f"row {k}", {"k": k}, claim) for k, claim in enumerate(claims)]
    return kind(candidates, **{"luckiest": 0, "maximise": True, **options})
