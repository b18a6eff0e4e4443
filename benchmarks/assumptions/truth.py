"""Whether what an answer prints is true."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

__all__ = ["false_sentences"]

_CLAIM = re.compile(r"within (?:epsilon = )?([-+.\de]+) of the best of (?:the )?(\d+)")


def false_sentences(
    text: str,
    winner: int | None,
    means: npt.NDArray[np.float64],
    not_compared: Collection[int],
) -> bool:
    """Whether the claim of a printed answer is false.

    Parameters
    ----------
    text
        The printed answer.
    winner
        The arm that it is for.
    means
        True means at the target, shape (K,).
    not_compared
        The arms of which the text says that they were not compared.

    Returns
    -------
    bool
        Whether the arm is farther from the best of those compared than the text says, or the text
        counts more arms than were compared.

    Examples
    --------
    >>> text = "claim  within 0.1 of the best of the 2 compared, of the 3 best of 9 trials"
    >>> false_sentences(text, 0, np.array([0.5, 0.55, 0.9]), [2])
    False
    >>> false_sentences(text, 0, np.array([0.5, 0.65, 0.9]), [2])
    True
    >>> false_sentences(text, 0, np.array([0.5, 0.55, 0.9]), [])
    True
    """
    found = _CLAIM.search(text)
    if found is None or winner is None:
        return False
    tolerance, counted = float(found[1]), int(found[2])
    compared = [mean for arm, mean in enumerate(means) if arm not in not_compared]
    # What is printed is rounded to three digits.
    behind = max(compared) - means[winner] > tolerance * 1.005 + 1e-9
    return bool(behind or counted != len(compared))
