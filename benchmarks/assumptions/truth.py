"""Whether what an answer prints is true."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Claims", "Verdict", "read", "verdict"]

_CLAIM = re.compile(r"within (?:epsilon = )?([-+.\de]+) of the best of (?:the )?(\d+)")
_NUMBER = r"([-+.\deinf]+)"
_INTERVAL = rf"\[{_NUMBER}, {_NUMBER}\]"
_WINNER = re.compile(rf"^  (?:mean|value) .*?{_INTERVAL}", re.MULTILINE)
# A row of a certificate's table; the number in the name is the arm.
_ROW = re.compile(rf"^  trial (\d+)  .*{_INTERVAL}(.*)$", re.MULTILINE)
_NOTICE = re.compile(r"^  notice +(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Claims:
    """What an answer says.

    Parameters
    ----------
    certified
        Whether it calls itself certified.
    tolerance, counted
        "within `tolerance` of the best of `counted`"; None where nothing is claimed.
    interval
        Of the winner's mean.
    intervals
        Of each candidate's mean that is given one.
    worse
        Candidates that are called worse than another one.
    notices
        As printed.
    """

    certified: bool
    tolerance: float | None
    counted: int
    interval: tuple[float, float] | None
    intervals: dict[int, tuple[float, float]]
    worse: tuple[int, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Which of the claims are false.

    Parameters
    ----------
    claim_is_false
        Whether the arm is farther from the best of those compared than the text says, or the text
        counts others than were compared.
    worse_is_false
        Whether a candidate that is called worse is worse than none of those compared.
    winner_is_missed
        Whether the winner's interval misses its mean.
    missed
        Number of intervals in the table that miss their mean.
    """

    claim_is_false: bool
    worse_is_false: bool
    winner_is_missed: bool
    missed: int


def read(text: str) -> Claims:
    """Read a printed answer.

    Examples
    --------
    >>> claims = read("CERTIFIED: x=1\\n  claim       within 0.1 of the best of the 3 best")
    >>> claims.certified, claims.tolerance, claims.counted
    (True, 0.1, 3)
    """
    claim, winner = _CLAIM.search(text), _WINNER.search(text)
    rows = list(_ROW.finditer(text))
    return Claims(
        certified=text.startswith("CERTIFIED"),
        tolerance=None if claim is None else float(claim[1]),
        counted=0 if claim is None else int(claim[2]),
        interval=None if winner is None else (float(winner[1]), float(winner[2])),
        intervals={int(row[1]): (float(row[2]), float(row[3])) for row in rows},
        worse=tuple(int(row[1]) for row in rows if row[4].split()[:1] == ["worse"]),
        notices=tuple(_NOTICE.findall(text)),
    )


def verdict(
    claims: Claims,
    winner: int | None,
    means: npt.NDArray[np.float64],
    not_compared: Collection[int],
) -> Verdict:
    """Compare claims with the truth.

    Parameters
    ----------
    claims
        What is claimed.
    winner
        The arm that it is about.
    means
        True means at the target, shape (K,).
    not_compared
        The arms of which the text says that they were not compared.

    Examples
    --------
    >>> claims = read("claim  within 0.1 of the best of the 2 compared, of the 3 best")
    >>> verdict(claims, 0, np.array([0.5, 0.55, 0.9]), [2]).claim_is_false
    False
    >>> verdict(claims, 0, np.array([0.5, 0.65, 0.9]), [2]).claim_is_false
    True
    """
    compared = [arm for arm in range(len(means)) if arm not in not_compared]
    is_false = False
    if claims.tolerance is not None and winner is not None:
        # What is printed is rounded to three digits.
        tolerance = claims.tolerance * 1.005 + 1e-9
        is_false = bool(means[compared].max() - means[winner] > tolerance)
        is_false = is_false or claims.counted != len(compared)
    return Verdict(
        claim_is_false=is_false,
        worse_is_false=any(
            all(means[arm] >= means[other] for other in compared if other != arm)
            for arm in claims.worse
        ),
        winner_is_missed=winner is not None and _misses(claims.interval, means[winner]),
        missed=sum(_misses(interval, means[arm]) for arm, interval in claims.intervals.items()),
    )


def _misses(interval: tuple[float, float] | None, mean: float) -> bool:
    if interval is None:
        return False
    # What is printed is rounded to five digits.
    slack = 1e-4 * max(map(abs, interval))
    return not interval[0] - slack <= mean <= interval[1] + slack
