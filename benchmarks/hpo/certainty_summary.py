"""What races cost, who was wrong, what must hold, and all that as a table and in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.hpo.certainty_answers import Outcome
from benchmarks.hpo.certainty_contenders import CONTENDERS
from benchmarks.hpo.certainty_races import DELTA
from benchmarks.hpo.certainty_settings import Setting
from benchmarks.hpo.tasks import grouped

Row = dict[str, Any]

_BASELINE = "SE, target only"


def summary(setting: Setting, races: Sequence[Sequence[Outcome]]) -> list[Row]:
    """For each kind of tasks and each contender: what was paid, and what is wrong.

    Parameters
    ----------
    setting
        The setting of the races.
    races
        The outcomes of one race at a time.
    """
    rows = []
    for group, tasks in grouped(dict.fromkeys(race[0].task for race in races)).items():
        inside = [race for race in races if race[0].task in tasks]
        for name in CONTENDERS:
            pairs = [
                (outcome, next(other for other in race if other.contender == _BASELINE))
                for race in inside
                for outcome in race
                if outcome.contender == name
            ]
            if pairs:
                row = {"setting": setting.name, "tasks": group, "contender": name}
                rows.append(row | _figures(setting, pairs))
    return rows


def _figures(setting: Setting, pairs: Sequence[tuple[Outcome, Outcome]]) -> Row:
    outcomes = [outcome for outcome, _ in pairs]
    costs = np.array([outcome.cost for outcome in outcomes])
    ratios = costs / np.array([baseline.cost for _, baseline in pairs])
    regrets = np.array([outcome.regret for outcome in outcomes])
    scratch = [outcome.from_scratch for outcome in outcomes if outcome.from_scratch is not None]
    by_task = {
        task: [
            _rounded(np.median([o.cost for o in outcomes if o.task == task])),
            _rounded(np.mean([o.regret for o in outcomes if o.task == task])),
        ]
        for task in dict.fromkeys(outcome.task for outcome in outcomes)
    }
    return {
        "races": len(pairs),
        "cost": _rounded(np.median(costs)),
        "cost_quartiles": [_rounded(value) for value in np.quantile(costs, [0.25, 0.75])],
        "cost_from_scratch": _rounded(np.median(scratch)) if scratch else None,
        "over_se": _rounded(np.median(ratios)),
        "over_se_quartiles": [_rounded(value) for value in np.quantile(ratios, [0.25, 0.75])],
        "cheaper_than_se": int((ratios < 1.0).sum()),
        "regret": _rounded(regrets.mean()),
        "regret_largest": _rounded(regrets.max()),
        "beyond_epsilon": int((regrets > setting.epsilon).sum()),
        "certified": sum(outcome.certified for outcome in outcomes),
        "wrong": sum(outcome.wrong for outcome in outcomes),
        "unfinished": sum(outcome.unfinished for outcome in outcomes),
        "widened": sum(outcome.widened for outcome in outcomes),
        "median_cost_and_mean_regret_by_task": by_task,
    }


def _rounded(value: Any) -> float:
    return round(float(value), 3)


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """What the figures must show, whichever way the comparison goes."""
    result = {}
    for source, words in (("known", "bounds that hold"), ("none", "no bounds at all")):
        chosen = [row for row in rows if CONTENDERS[row["contender"]].source == source]
        # A policy that keeps its promise has more wrong certificates once in ten thousand rows.
        failing = [
            f"{row['contender']} ({row['setting']}, {row['tasks']})"
            for row in chosen
            if row["wrong"] > binom.ppf(0.9999, row["certified"], DELTA)
        ]
        told = f"with {words}, no more wrong certificates than delta={DELTA:g} allows"
        result[f"{told}; but {', '.join(failing)}" if failing else told] = not failing
    return result


def markdown(rows: Sequence[Row], setting: str) -> str:
    """The rows of a setting as a table in Markdown."""
    chosen = [row for row in rows if row["setting"] == setting]
    groups = list(dict.fromkeys(row["tasks"] for row in chosen))
    at = {(row["contender"], row["tasks"]): row for row in chosen}
    header = ["who"]
    for group in groups:
        header += [f"{group}: cost (quartiles)", "/ SE", "regret, largest", "> epsilon", "wrong"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for name in dict.fromkeys(row["contender"] for row in chosen):
        cells = [name]
        for group in groups:
            cells += _cells(at[name, group]) if (name, group) in at else [""] * 5
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    low, high = row["cost_quartiles"]
    late = f", {row['unfinished']} unfinished" if row["unfinished"] else ""
    return [
        f"{row['cost']:.0f} ({low:.0f} to {high:.0f}){late}",
        f"{row['over_se']:.2f}",
        f"{row['regret']:.2f}, {row['regret_largest']:.1f}",
        f"{100.0 * row['beyond_epsilon'] / row['races']:.0f} %",
        f"{row['wrong']} of {row['certified']}" if row["certified"] else "",
    ]


def in_words(rows: Sequence[Row]) -> str:
    """When fidelities with bounds pay: sentences for each setting and kind of tasks.

    Who is cheaper is decided by the median of the ratios to SE's cost on the same pool.
    """
    lines = []
    for setting, group in dict.fromkeys((row["setting"], row["tasks"]) for row in rows):
        chosen = {
            row["contender"]: row
            for row in rows
            if (row["setting"], row["tasks"]) == (setting, group)
        }
        alone = min(
            (row for name, row in chosen.items() if name.endswith("target only")),
            key=lambda row: float(row["over_se"]),
        )
        parts = [
            f"{setting}, {group}: at the target level alone "
            f"{alone['contender'].partition(',')[0]} is cheapest, {_price(alone)}, "
            f"SE pays {chosen[_BASELINE]['cost']:.0f}"
        ]
        for source in ("known", "declared", "estimated"):
            cheaper = [
                f"{CONTENDERS[name].rule} {_price(row)}"
                for name, row in chosen.items()
                if CONTENDERS[name].source == source and row["over_se"] < alone["over_se"]
            ]
            parts.append(f"cheaper with bounds {source}: {', '.join(cheaper) or 'nobody'}")
        halving = chosen["successive halving"]
        parts.append(
            f"halving pays {halving['cost']:.0f} and is {halving['regret']:.1f} percent off on "
            f"average, {halving['regret_largest']:.1f} at worst"
        )
        lines.append("; ".join(parts) + ".")
    return "\n".join(lines)


def _price(row: Row) -> str:
    wrong = f", {row['wrong']} of {row['certified']} wrong" if row["wrong"] else ""
    return f"{row['over_se']:.2f} of SE's cost ({row['cost']:.0f}{wrong})"
