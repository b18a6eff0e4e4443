"""mfhpo in scikit-learn: searches that certify their answer, and `certify` for other searches."""

from typing import TYPE_CHECKING

from mfhpo._validation.parameters import document
from mfhpo._validation.renamed import renamed
from mfhpo_sklearn.certification import SearchCertificate, certify
from mfhpo_sklearn.given_search import IISESearchCV, MFSearchCV
from mfhpo_sklearn.space_search import SpaceSearchCV

__all__ = ["IISESearchCV", "MFSearchCV", "SearchCertificate", "SpaceSearchCV", "certify"]

document(*map(globals().get, __all__))

if not TYPE_CHECKING:  # a type checker that saw it would accept every name
    __getattr__ = renamed(__name__, {"RaceSearchCV": "SpaceSearchCV"})
