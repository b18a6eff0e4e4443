"""Certificates of shortlists: which candidate is best, by values at the target level.

How the intervals are computed depends on who asks. `sequential.py`: `certify` of a study, at any
time. `group_sequential.py`: a search on a budget, which looks a few times. `paired.py`:
scikit-learn, whose candidates share their splits.
"""
