"""Certificates of shortlists: of studies, of searches on a budget, and of scikit-learn's."""
