"""Races among the candidates of a shortlist."""

from mfhpo.certification.candidates import Candidate


def race_of(kind, n=2, **options):
    candidates = [Candidate(f"row {k}", {"k": k}, claim=1.0) for k in range(n)]
    return kind(candidates, **{"luckiest": 0, "maximise": True, **options})
