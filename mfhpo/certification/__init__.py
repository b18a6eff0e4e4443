"""Certificates of shortlists: which candidate is best, by values at the target level."""
