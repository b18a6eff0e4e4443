"""Candidates whose mean is -inf: an evaluation gave the worst value that there is."""

import math
from collections.abc import Mapping
from dataclasses import replace

from mfhpo.certification.certificate import Certificate
from mfhpo.racing.claims import joined


def with_ruled_out(
    answer: Certificate, ruled_out: Mapping[int, int], noise_is_hidden: bool, worst: float
) -> Certificate:
    """Return a certificate that ranks candidates with worst values behind all others.

    `ruled_out` has by arm the number of its worst values, and `worst` is that value.
    """
    results = list(answer.candidates)
    for arm, count in ruled_out.items():
        n = results[arm].values + count
        results[arm] = replace(
            results[arm],
            evaluations=n,
            values=n,
            mean=worst,
            interval=(worst, worst),
            gap=math.inf,
            gap_interval=(math.inf, math.inf),
            standing="worse",
        )
    names = joined([results[arm].name for arm in sorted(ruled_out)])
    notice = f"{names} gave {worst}, and so on average: no other candidate is worse"
    answer = replace(
        answer,
        candidates=tuple(results),
        evaluations=answer.evaluations + sum(ruled_out.values()),
        notices=(*answer.notices, notice),
    )
    winner, left = answer.winner, len(results) - len(ruled_out)
    if not left:
        return replace(answer, reason=f"every candidate gave {worst}")
    if winner is None or left > 1 or noise_is_hidden:
        return answer
    results[winner] = replace(results[winner], standing="certified")
    return replace(
        answer,
        candidates=tuple(results),
        certified=True,
        epsilon=0.0 if math.isnan(answer.epsilon) else answer.epsilon,
        within=0.0,
        remaining=0.0,
        reason=f"every other candidate gave {worst}",
    )
