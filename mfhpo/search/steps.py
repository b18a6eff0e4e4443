"""The steps that a search asks for besides pulls."""

from dataclasses import dataclass

from mfhpo.knowledge.space import Point
from mfhpo.problem import Pull


@dataclass(frozen=True)
class Begin:
    """Evaluate a new configuration, at a level given by its index.

    Parameters
    ----------
    fidelity
        Index of the level.
    point
        Values for all parameters of the space, also for those that turn out not to apply. None:
        whoever asks draws it, at random or as it likes.
    """

    fidelity: int
    point: Point | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate(Pull):
    """An evaluation at the target for a shortlist's certificate: from scratch, with a new seed.

    Parameters
    ----------
    shortlist
        The arms that are compared.
    """

    shortlist: tuple[int, ...] = ()
