"""Games: pure Nash equilibria of utilities that are dear to evaluate."""

from mfhpo._validation.parameters import document
from mfhpo.games.equilibrium import Deviation, Dissatisfaction, Equilibrium, Query, Utility
from mfhpo.games.model.mogp import Hyperparameters, MultiOutputGP
from mfhpo.games.pne import MFUCBPNE, UCBPNE
from mfhpo.games.policy import GamePolicy

__all__ = [
    "MFUCBPNE",
    "UCBPNE",
    "Deviation",
    "Dissatisfaction",
    "Equilibrium",
    "GamePolicy",
    "Hyperparameters",
    "MultiOutputGP",
    "Query",
    "Utility",
]

document(*map(globals().get, __all__))
