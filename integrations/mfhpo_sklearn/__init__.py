"""mfhpo in scikit-learn: what the winner of a parameter search is really worth."""

from mfhpo_sklearn._certify import SearchCertificate, certify

__all__ = ["SearchCertificate", "certify"]
