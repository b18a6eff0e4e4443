"""Certificates for shortlists: which candidate is best, by values at the target level."""
