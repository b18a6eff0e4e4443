"""Certificates of shortlists: which candidate is best, by values at the target level.

`certification.py` races the candidates by a policy of `mfhpo.identification`, which computes the
intervals; `certificate.py` says what came of it.
"""
