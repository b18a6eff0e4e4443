"""mfhpo in scikit-learn: searches that certify their answer, and `certify` for other searches."""

from mfhpo_sklearn.certification import SearchCertificate, certify
from mfhpo_sklearn.given_search import IISESearchCV, MFSearchCV
from mfhpo_sklearn.race_search import RaceSearchCV

__all__ = ["IISESearchCV", "MFSearchCV", "RaceSearchCV", "SearchCertificate", "certify"]
