"""Search: which configurations are worth trying, and how far each of them is evaluated."""

from mfhpo.search.budget import check_budget
from mfhpo.search.halving import HalvingSearch
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.one_level import fidelity_of, has_levels
from mfhpo.search.policy import Begin, SearchPolicy
from mfhpo.search.race import BudgetUnit, Replicate, SearchRace
from mfhpo.search.space import Numeric, OneOf, Point, SearchSpace

__all__ = [
    "Begin",
    "BudgetUnit",
    "HalvingSearch",
    "ModelSearch",
    "Numeric",
    "OneOf",
    "Point",
    "Replicate",
    "SearchPolicy",
    "SearchRace",
    "SearchSpace",
    "check_budget",
    "fidelity_of",
    "has_levels",
]
