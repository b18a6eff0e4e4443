"""Certificates of shortlists: which candidate is best, by values at the target level.

How the intervals are computed depends on who asks. `sequential.py`: `certify` of a study or of
scikit-learn's searches, at any time, also where candidates share their splits or seeds.
`group_sequential.py`: a search on a budget, which looks a few times.
"""
