"""What is learned of one player's utility, as it is observed."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo._validation import check_instance, check_sequence
from mfhpo.games.model.fitting import drawn_hyperparameters, first_guess, fit
from mfhpo.games.model.hyperparameters import Hyperparameters
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.games.model.observed import Observations, ObservedUtilities
from mfhpo.games.model.posterior import Assumptions
from mfhpo.knowledge.arrays import FloatArray

_FIRST_FIT = 4  # observations
_NEXT_FIT = 1.4  # fits are repeated each time that there are so many times more


class LearnedUtility:
    """A model of a player's utility, and what was ``seen`` of it.

    The ``model`` has the hyperparameters of the largest density, or declared ones.
    """

    def __init__(self, assumptions: Assumptions, declared: Hyperparameters | None = None) -> None:
        self._assumptions = assumptions
        self._is_declared = declared is not None
        self.seen = ObservedUtilities()
        self._next_fit = _FIRST_FIT
        if declared is None:
            at = np.zeros((1, len(assumptions.groups))), np.array([assumptions.n_levels - 1])
            declared = first_guess(Observations.once(*at, np.zeros(1)), assumptions)
        self.model = MultiOutputGP(declared)

    def tell(self, features: FloatArray, level: int, value: float | None) -> None:
        """Add an observation, or None for a failure, and fit the model again when it is time."""
        seen, known = self.seen, self.model.hyperparameters
        lengths = known.length_scales[-1]
        before = seen.failures(lengths)
        seen.add(features, level, value)
        if not seen.has_seen or (value is None and seen.failures(lengths) == before):
            return
        observations = seen.observations(lengths)
        if not self._is_declared and len(seen) >= self._next_fit:
            known = fit(observations, self._assumptions)
            self._next_fit = math.ceil(_NEXT_FIT * len(seen))
        elif not self._is_declared and len(seen) < _FIRST_FIT:
            known = first_guess(observations, self._assumptions)
        self.model = MultiOutputGP(known, observations)

    def possible(self, n: int, rng: np.random.Generator) -> list[MultiOutputGP]:
        """Return possible models: n with drawn hyperparameters, or one if these are known."""
        if self._is_declared or not self.seen.has_seen:
            return [self.model]
        observations = self.seen.observations(self.model.hyperparameters.length_scales[-1])
        drawn = drawn_hyperparameters(observations, self._assumptions, n, rng)
        return [MultiOutputGP(known, observations) for known in drawn]


def checked(
    hyperparameters: Sequence[Hyperparameters] | None, assumptions: Sequence[Assumptions]
) -> Sequence[Hyperparameters | None]:
    """Return each player's declared hyperparameters, or raise; None for what is to be fitted."""
    if hyperparameters is None:
        return [None] * len(assumptions)
    right = "one mfhpo.games.Hyperparameters for each player"
    hyperparameters = check_sequence("hyperparameters", hyperparameters, right)
    if len(hyperparameters) != len(assumptions):
        raise ValueError(
            f"hyperparameters must be one for each of the {len(assumptions)} players, got "
            f"{len(hyperparameters)}."
        )
    for position, (known, of_player) in enumerate(zip(hyperparameters, assumptions, strict=True)):
        check_instance("hyperparameters", known, Hyperparameters, right)
        shape = (of_player.n_levels, len(of_player.groups))
        if known.length_scales.shape != shape:
            raise ValueError(
                f"hyperparameters[{position}].length_scales must be of shape {shape} (levels, "
                f"features), got {known.length_scales.shape}."
            )
    return hyperparameters
