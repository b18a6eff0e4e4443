"""mfhpo in scikit-learn: what the winner of a parameter search is really worth."""

from mfhpo_sklearn.certification import SearchCertificate, certify

__all__ = ["SearchCertificate", "certify"]
