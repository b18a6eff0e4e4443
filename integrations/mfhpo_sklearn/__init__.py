"""mfhpo in scikit-learn: searches that certify their answer, and what other searches' is worth."""

from mfhpo_sklearn.certification import SearchCertificate, certify
from mfhpo_sklearn.given_search import IISESearchCV, MFSearchCV
from mfhpo_sklearn.race_search import RaceSearchCV

__all__ = ["IISESearchCV", "MFSearchCV", "RaceSearchCV", "SearchCertificate", "certify"]
