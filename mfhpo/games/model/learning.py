"""What is learned of one player's utility, as it is observed."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo._validation import check_instance, check_sequence
from mfhpo.games.model.fitting import drawn_hyperparameters, first_guess, fit
from mfhpo.games.model.hyperparameters import Hyperparameters
from mfhpo.games.model.marginal_likelihood import Assumptions
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.games.model.observed import Failure, Observations, ObservedUtilities
from mfhpo.knowledge.arrays import FloatArray

_FIRST_FIT = 4  # observations
_NEXT_FIT = 1.4  # fits are repeated each time that there are so many times more


class LearnedUtility:
    """A model of a player's utility, and the observations that it was made of.

    The ``model`` has the hyperparameters of the largest density, or declared ones. It keeps
    predictions for some points, with features of shape (n_points, d).
    """

    def __init__(
        self, assumptions: Assumptions, points: FloatArray, declared: Hyperparameters | None = None
    ) -> None:
        self._assumptions = assumptions
        self._points = points
        self._is_declared = declared is not None
        self._seen = ObservedUtilities()
        self._next_fit = _FIRST_FIT
        if declared is None:
            top = np.array([assumptions.n_levels - 1])
            declared = first_guess(Observations.once(points[:1], top, np.zeros(1)), assumptions)
        self.model = MultiOutputGP(declared, points)

    @property
    def has_seen(self) -> bool:
        """Whether any utility was observed."""
        return self._seen.has_seen

    @property
    def constant(self) -> float | None:
        """The utility that was observed again and again, and no other; None if there is none."""
        return self._seen.constant

    def tell(self, features: FloatArray, level: int, value: float | None) -> None:
        """Add an observation, or None for a failure, and fit the model again when it is time."""
        seen, known = self._seen, self.model.hyperparameters
        lengths = known.length_scales[-1]
        before = _told_of(seen.failures(lengths))
        if value is None:
            seen.fail(features, level)
        else:
            seen.add(features, level, value)
        is_as_before = _told_of(seen.failures(lengths)) == before
        if not seen.has_seen or (value is None and is_as_before):
            return
        n = len(seen)
        is_early = not self._is_declared and n <= _FIRST_FIT
        is_time = not self._is_declared and n >= self._next_fit
        if value is not None and is_as_before and not is_early and not is_time:
            self.model.add(features, level, value)
            return
        observations = seen.observations(lengths)
        if is_time:
            known = fit(observations, self._assumptions)
            self._next_fit = math.ceil(_NEXT_FIT * n)
        elif is_early:
            known = first_guess(observations, self._assumptions)
        self.model = _informed(known, observations, self._points)

    def possible(self, n: int, rng: np.random.Generator) -> list[MultiOutputGP]:
        """Return possible models: n with drawn hyperparameters, or one if these are known."""
        if self._is_declared or not self.has_seen:
            return [self.model]
        lengths = self.model.hyperparameters.length_scales[-1]
        observations = self._seen.observations(lengths)
        drawn = drawn_hyperparameters(observations, self._assumptions, n, rng)
        return [_informed(known, observations) for known in drawn]


def _told_of(failures: Sequence[Failure]) -> list[tuple[bytes, int, float]]:
    return [(one.features.tobytes(), one.level, one.worst) for one in failures]


def _informed(
    known: Hyperparameters, seen: Observations, points: FloatArray | None = None
) -> MultiOutputGP:
    return MultiOutputGP.of(
        known, seen.features, seen.levels, seen.values, seen.counts, points=points
    )


def checked(
    hyperparameters: Sequence[Hyperparameters] | None, assumptions: Sequence[Assumptions]
) -> list[Hyperparameters | None]:
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
    for known in hyperparameters:
        check_instance("hyperparameters", known, Hyperparameters, right)
    for position, (known, of_player) in enumerate(zip(hyperparameters, assumptions, strict=True)):
        shape = (of_player.n_levels, len(of_player.groups))
        if known.length_scales.shape != shape:
            raise ValueError(
                f"hyperparameters[{position}].length_scales must be of shape {shape} (levels, "
                f"features), got {known.length_scales.shape}."
            )
    return list(hyperparameters)
