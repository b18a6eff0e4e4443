"""The fidelity of a search whose objective may have none."""

from __future__ import annotations

from dataclasses import replace

from mfhpo.knowledge.fidelity import Fidelity

__all__ = ["fidelity_of", "has_levels"]

# They stand for the fidelity of an objective that has none.
_ONE_LEVEL = Fidelity("no fidelity", levels=(1,), costs=(1.0,))
_TIMED_LEVEL = replace(_ONE_LEVEL, costs="measured")


def fidelity_of(fidelity: str | Fidelity | None, *, in_seconds: bool) -> Fidelity:
    """The fidelity of a search, given a user's.

    Parameters
    ----------
    fidelity
        The fidelity, its name alone, or None where the objective has none.
    in_seconds
        Whether the budget is in seconds, so that costs are measured.

    Raises
    ------
    TypeError
        If it is neither a name nor a `Fidelity`.
    ValueError
        If costs are declared, though the budget is in seconds.

    Examples
    --------
    >>> fidelity_of("epochs", in_seconds=True).costs
    'measured'
    """
    if fidelity is None:
        return _TIMED_LEVEL if in_seconds else _ONE_LEVEL
    named = Fidelity(fidelity) if isinstance(fidelity, str) else fidelity
    if not isinstance(named, Fidelity):
        raise TypeError(f"fidelity must be a name or a Fidelity or None, got {fidelity!r}.")
    return named.in_seconds() if in_seconds else named


def has_levels(fidelity: Fidelity) -> bool:
    """Whether a search's objective asks for a fidelity.

    Examples
    --------
    >>> has_levels(Fidelity("epochs")), has_levels(fidelity_of(None, in_seconds=False))
    (True, False)
    """
    return fidelity not in (_ONE_LEVEL, _TIMED_LEVEL)
