"""What a race's certificate says at its end, held against the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mfhpo.certification.certificate import Certificate

Interval = tuple[float, float]

TIE = 1e-4
"""Differences of true values below this are none: the surrogates have single precision."""


@dataclass(frozen=True)
class Statement:
    """What a certificate says, and what is true.

    Parameters
    ----------
    shortlist
        Number of candidates.
    evaluations
        Number of new evaluations.
    certified
        Whether epsilon was reached.
    epsilon, within
        See `Certificate`; None where it says nothing.
    short_of_best
        By how much the best candidate is truly better than the winner.
    claim_gap
        By how much the luckiest candidate's claim is truly too high.
    claim_gap_interval
        What the certificate says of it, or None.
    mean_gap
        By how much the winner's mean is too high.
    half_width
        Of the winner's interval, or None where it has none.
    covered
        Whether that interval contains the winner's true value; None where there is none.
    all_covered
        The same of all candidates that have an interval; None where none has.
    """

    shortlist: int
    evaluations: int
    certified: bool
    epsilon: float | None
    within: float | None
    short_of_best: float
    claim_gap: float
    claim_gap_interval: Interval | None
    mean_gap: float
    half_width: float | None
    covered: bool | None
    all_covered: bool | None

    @property
    def tolerance(self) -> float | None:
        """How much worse than the best of the shortlist the winner may be; None: no bound."""
        return self.epsilon if self.certified else self.within

    @property
    def misses(self) -> bool:
        """Whether the winner is worse than the tolerance allows."""
        return self.tolerance is not None and self.short_of_best > self.tolerance + TIE

    @property
    def gap_covered(self) -> bool | None:
        """Whether the interval of the claim gap contains it; None where there is none."""
        return _covers(self.claim_gap_interval, self.claim_gap)


@dataclass(frozen=True)
class Outcome:
    """What became of one run.

    Parameters
    ----------
    task, sigma, seed
        See `Job`.
    value
        True value of the race's answer.
    value_before
        True value of what the search would have answered when the certificate began.
    value_alone
        True value of the answer of the search that certifies nothing.
    alone_gap
        By how much the mean that this one promises is too high.
    cost, cost_alone
        What both have paid, in full evaluations.
    certificate
        None if the budget did not do for any.
    seconds
        CPU seconds that all of it took.
    """

    task: str
    sigma: float
    seed: int
    value: float
    value_before: float
    value_alone: float
    alone_gap: float
    cost: float
    cost_alone: float
    certificate: Statement | None
    seconds: float

    @property
    def certified(self) -> bool:
        """Whether epsilon was reached."""
        return self.certificate is not None and self.certificate.certified

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Outcome:
        """The outcome that was written down."""
        said = record["certificate"]
        if said is not None:
            interval = said["claim_gap_interval"]
            interval = None if interval is None else (interval[0], interval[1])
            said = Statement(**{**said, "claim_gap_interval": interval})
        return cls(**{**record, "certificate": said})


def statement(certificate: Certificate, truths: Sequence[float]) -> Statement:
    """Hold a certificate against the truth.

    Parameters
    ----------
    certificate
        Of values that are maximised.
    truths
        True values of its candidates.

    Raises
    ------
    ValueError
        If it has no winner.
    """
    if certificate.winner is None:
        raise ValueError("certificate must have a winner: on these problems nothing fails.")
    covered = [
        _covers(_bounded(result.interval), truth)
        for result, truth in zip(certificate.candidates, truths, strict=True)
    ]
    told = [one for one in covered if one is not None]
    truth = truths[certificate.winner]
    luckiest = certificate.luckiest_result
    interval = _bounded(certificate.interval)
    return Statement(
        shortlist=len(certificate.candidates),
        evaluations=certificate.evaluations,
        certified=certificate.certified,
        epsilon=_finite(certificate.epsilon),
        within=_finite(certificate.within),
        short_of_best=max(truths) - truth,
        claim_gap=luckiest.claim - truths[certificate.luckiest],
        claim_gap_interval=_bounded(luckiest.gap_interval),
        mean_gap=certificate.mean - truth,
        half_width=None if interval is None else (interval[1] - interval[0]) / 2.0,
        covered=_covers(interval, truth),
        all_covered=all(told) if told else None,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _bounded(interval: Interval) -> Interval | None:
    return interval if math.isfinite(interval[1] - interval[0]) else None


def _covers(interval: Interval | None, value: float) -> bool | None:
    return None if interval is None else interval[0] <= value <= interval[1]
