"""How often certificates are wrong, what they cost the search, and what must hold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks.hpo.certificate_outcomes import TIE, Outcome
from benchmarks.hpo.statistics import paired_test
from benchmarks.hpo.tasks import grouped

Row = dict[str, Any]

DELTA = 0.05
"""Probability that a race's certificate may be wrong with, as it is by default."""

_ALL = "all"
_NOISE = 1.96  # standard errors that a mean may be off by chance
_HOWS = ("better", "equal", "worse")


def rate(flags: Iterable[bool]) -> Row:
    """How many of some runs, and their share with its exact 95 % interval.

    Examples
    --------
    >>> rate([True, False, False, False])["count"], rate([])["share"]
    (1, None)
    """
    counted = list(flags)
    count = sum(counted)
    if not counted:
        return {"count": 0, "of": 0, "share": None, "interval": None}
    ends = binomtest(count, len(counted)).proportion_ci(0.95, method="exact")
    return {
        "count": count,
        "of": len(counted),
        "share": round(count / len(counted), 4),
        "interval": [round(float(ends.low), 4), round(float(ends.high), 4)],
    }


def summary(outcomes: Sequence[Outcome], best: Mapping[str, float]) -> list[Row]:
    """Rates and regrets for each noise and kind of tasks, and for all of them together.

    Parameters
    ----------
    outcomes
        The runs.
    best
        By task, the best true value that is known.
    """
    rows = []
    for sigma in sorted({outcome.sigma for outcome in outcomes}):
        chosen = [outcome for outcome in outcomes if outcome.sigma == sigma]
        groups = grouped(sorted({outcome.task for outcome in chosen}))
        for group, tasks in groups.items():
            rows.append(_row(sigma, group, [one for one in chosen if one.task in tasks], best))
        rows.append(_row(sigma, _ALL, chosen, best))
    return rows


def _row(sigma: float, group: str, runs: Sequence[Outcome], best: Mapping[str, float]) -> Row:
    said = [run.certificate for run in runs if run.certificate is not None]
    proved = [one for one in said if one.certified]
    others = [one for one in said if not one.certified and one.within is not None]
    half_widths = [one.half_width for one in said if one.half_width is not None]
    return {
        "sigma": sigma,
        "tasks": group,
        "runs": len(runs),
        "shortlist": _mean([one.shortlist for one in said]),
        "evaluations": _mean([one.evaluations for one in said]),
        "certified": rate(run.certified for run in runs),
        "without_tolerance": rate(one.tolerance is None for one in said),
        "beyond_epsilon": rate(one.misses for one in proved),
        "beyond_within": rate(one.misses for one in others),
        "beyond_tolerance": rate(one.misses for one in [*proved, *others]),
        "claim_gap_outside": rate(not one.gap_covered for one in said if one.claim_gap_interval),
        "winner_outside": rate(not one.covered for one in said if one.covered is not None),
        "any_outside": rate(not one.all_covered for one in said if one.all_covered is not None),
        "epsilon_if_certified": _median([one.epsilon for one in proved if one.epsilon is not None]),
        "within_if_not": _median([one.within for one in others if one.within is not None]),
        "half_width": _median(half_widths),
        "claim_gap": _mean([one.claim_gap for one in said]),
        "mean_gap": _mean([one.mean_gap for one in said]),
        "alone_gap": _mean([run.alone_gap for run in runs]),
        "cost": _mean([run.cost for run in runs]),
        "cost_alone": _mean([run.cost_alone for run in runs]),
        "regret": _mean([best[run.task] - run.value for run in runs]),
        "regret_before": _mean([best[run.task] - run.value_before for run in runs]),
        "regret_alone": _mean([best[run.task] - run.value_alone for run in runs]),
        **_duel("alone", runs, [run.value_alone for run in runs]),
        **_duel("before", runs, [run.value_before for run in runs]),
        "seconds": _mean([run.seconds for run in runs]),
    }


def _duel(name: str, runs: Sequence[Outcome], others: Sequence[float]) -> Row:
    """By how much more regret the certified answers have than others of the same runs."""
    worse = np.array(others) - np.array([run.value for run in runs])
    worse[np.abs(worse) <= TIE] = 0.0
    n = len(worse)
    p_value, _ = paired_test(worse, np.zeros(n))
    return {
        f"{name}_difference": round(float(worse.mean()), 4),
        f"{name}_standard_error": round(float(worse.std(ddof=1)) / n**0.5, 4) if n > 1 else None,
        f"{name}_p_value": float(f"{p_value:.3g}"),
        f"{name}_better": int((worse < 0.0).sum()),
        f"{name}_equal": int((worse == 0.0).sum()),
        f"{name}_worse": int((worse > 0.0).sum()),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None


def _median(values: Sequence[float]) -> float | None:
    return round(float(np.median(values)), 4) if values else None


_PROMISES = {
    "beyond_tolerance": "the winner is as close to the best of the shortlist as is said",
    "claim_gap_outside": "the claim gap is in its interval",
    "winner_outside": "the winner's true value is in its interval",
    "any_outside": "all candidates' true values are in their intervals",
}


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """What must hold, for all tasks together.

    A statement fails if more of it is wrong than delta and chance allow: the exact 95 % interval of
    the share of runs in which it is wrong lies above delta. The regret fails if on average it is
    above that of the search alone by more than 1.96 standard errors.
    """
    found = {}
    for row in rows:
        if row["tasks"] != _ALL:
            continue
        noise = f"sigma {row['sigma']:g}"
        for name, words in _PROMISES.items():
            wrong = row[name]
            if wrong["of"]:
                told = f"{noise}: {words}, wrong in {wrong['count']} of {wrong['of']}"
                found[f"{told} (delta {DELTA:g})"] = wrong["interval"][0] <= DELTA
        difference, error = row["alone_difference"], row["alone_standard_error"]
        if error is not None:
            told = f"{noise}: regret with a certificate less that of the search alone"
            found[f"{told}, {difference:+.3f} +- {error:.3f}, is not above 0 beyond noise"] = (
                difference <= _NOISE * error
            )
    return found


_LINES = {
    "runs": "runs",
    "CPU seconds of a run": "seconds",
    "candidates on the shortlist, mean": "shortlist",
    "evaluations for the certificate, mean": "evaluations",
    "cost, mean": "cost",
    "cost of the search alone, mean": "cost_alone",
    "certified": "certified",
    "neither certified nor any tolerance": "without_tolerance",
    "WRONG: beyond epsilon, of certified": "beyond_epsilon",
    "WRONG: beyond within, of others": "beyond_within",
    "WRONG: either": "beyond_tolerance",
    "WRONG: claim gap outside its interval": "claim_gap_outside",
    "WRONG: winner's value outside its interval": "winner_outside",
    "WRONG: any candidate's value outside": "any_outside",
    "epsilon of certified, median": "epsilon_if_certified",
    "within of others, median": "within_if_not",
    "half width of the winner's interval, median": "half_width",
    "luckiest claim minus its true value, mean": "claim_gap",
    "winner's new mean minus its true value, mean": "mean_gap",
    "the same of the search alone, mean": "alone_gap",
    "regret with certificate, mean": "regret",
    "regret before the certificate, mean": "regret_before",
    "regret of the search alone, mean": "regret_alone",
}


def markdown(rows: Sequence[Row], sigma: float) -> str:
    """The rows of one noise as a table in Markdown, one column for each kind of tasks."""
    chosen = [row for row in rows if row["sigma"] == sigma]
    table = [[f"sigma {sigma:g}", *(row["tasks"] for row in chosen)]]
    table += [[words, *(_cell(row[key]) for row in chosen)] for words, key in _LINES.items()]
    for key, other in (("alone", "the search alone"), ("before", "before the certificate")):
        table.append([f"regret less that of {other}", *(_difference(row, key) for row in chosen)])
        table.append(
            [
                "    better / equal / worse",
                *(" / ".join(str(row[f"{key}_{how}"]) for how in _HOWS) for row in chosen),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in table
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.2f}"
    if not value["of"]:
        return "none"
    low, high = (100.0 * end for end in value["interval"])
    share = 100.0 * value["share"]
    return f"{value['count']} of {value['of']}: {share:.1f} % ({low:.1f} to {high:.1f})"


def _difference(row: Row, key: str) -> str:
    error = row[f"{key}_standard_error"]
    told = f"{row[f'{key}_difference']:+.3f}" + ("" if error is None else f" +- {error:.3f}")
    return f"{told}, p = {row[f'{key}_p_value']:.2g}"
