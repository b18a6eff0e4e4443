"""Search: which configurations are worth trying, and how far each of them is evaluated."""

from typing import TYPE_CHECKING

from mfhpo._validation.parameters import document
from mfhpo._validation.renamed import renamed
from mfhpo.knowledge.earlier import EarlierResults
from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace, place_in_range
from mfhpo.search.budget import BudgetUnit
from mfhpo.search.budgeted import BudgetedSearch
from mfhpo.search.declared import DeclaredSearch, SearchOptions
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import Replicate, SearchPolicy
from mfhpo.search.promotions import HalvingSearch

__all__ = [
    "BudgetUnit",
    "BudgetedSearch",
    "DeclaredSearch",
    "EarlierResults",
    "HalvingSearch",
    "ModelSearch",
    "Numeric",
    "OneOf",
    "Point",
    "Replicate",
    "SearchOptions",
    "SearchPolicy",
    "SearchSpace",
    "place_in_range",
]

document(*map(globals().get, __all__))

if not TYPE_CHECKING:  # a type checker that saw it would accept every name
    __getattr__ = renamed(__name__, {"SearchRace": "BudgetedSearch"})
