"""Search: which configurations are worth trying, and how far each of them is evaluated."""

from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace, place_in_range
from mfhpo.search.budget import BudgetUnit
from mfhpo.search.declared import DeclaredSearch, SearchOptions, has_levels
from mfhpo.search.halving import HalvingSearch
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import Begin, Replicate, SearchPolicy
from mfhpo.search.race import SearchRace

__all__ = [
    "Begin",
    "BudgetUnit",
    "DeclaredSearch",
    "HalvingSearch",
    "ModelSearch",
    "Numeric",
    "OneOf",
    "Point",
    "Replicate",
    "SearchOptions",
    "SearchPolicy",
    "SearchRace",
    "SearchSpace",
    "has_levels",
    "place_in_range",
]
