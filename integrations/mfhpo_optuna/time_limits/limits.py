"""Limits as users and samplers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfhpo._validation import check_limit
from mfhpo_optuna.study.attributes import LIMIT_KEY

__all__ = ["limit_of"]


def limit_of(attributes: Mapping[str, Any], number: int, limit: float | None) -> float | None:
    """The seconds that a trial may take: what its sampler says or the given limit, the smaller.

    Parameters
    ----------
    attributes, number
        The trial's user attributes and number.
    limit
        The given limit, or None.

    Returns
    -------
    float or None
        None if neither says anything.

    Raises
    ------
    TypeError, ValueError
        If what the sampler says is no positive number.
    """
    name = f"the user attribute {LIMIT_KEY!r} of trial {number}"
    limits = [check_limit(name, attributes.get(LIMIT_KEY)), limit]
    return min((limit for limit in limits if limit is not None), default=None)
