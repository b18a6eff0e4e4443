"""Tables of what rules that stop studies save and lose."""

from collections.abc import Callable
from typing import Any

from benchmarks.evidence.tables import distinct, only, percent, result, table
from benchmarks.settled.rules import DEFAULTS, EPSILONS, FAMILIES

_RESULT = "settled"
_SETTLED = FAMILIES["settled"]


def usual() -> str:
    """Tell what each rule saves and loses with usual settings, over all samplers."""
    rows = [
        [family.name.format(setting), *_at_both(kind, {_key(eps): setting for eps in EPSILONS})]
        for kind, family in FAMILIES.items()
        for setting in family.shown
    ]
    return table(_head("rule"), rows)


def chosen() -> str:
    """Tell what each rule saves and loses with the settings chosen on development tasks."""
    rows = [
        [FAMILIES[kind].free, *_at_both(kind, settings, shown=True)]
        for kind, settings in result(_RESULT)["chosen"].items()
    ]
    return table(_head("rule", "setting"), rows)


def by_sampler() -> str:
    """Tell what `StopWhenSettled` saves and loses with its delta, by sampler."""
    rules = {
        "default": DEFAULTS,
        **{f"{_key(eps)} sd": _SETTLED.full_name(_SETTLED.shown[0], eps) for eps in EPSILONS},
    }
    rows = []
    for sampler in (*_samplers(), None):
        cells = [sampler or "all"]
        for rule in rules.values():
            row = _row(rule, sampler)
            stopped = f"{row['stopped']} of {row['studies']}"
            cells += [stopped, percent(row["saved"]), percent(row["lost"])]
        rows.append(cells)
    columns = ("stopped", "saved", "lost")
    head = [f"{epsilon}: {column}" for epsilon in rules for column in columns]
    return table(["sampler", *head], rows)


def calibration() -> str:
    """Tell what `StopWhenSettled` promises at its stops, and how often that came true."""
    rows = []
    for sampler in (*_samplers(), None):
        cells = [sampler or "all"]
        for epsilons in EPSILONS:
            for delta in _SETTLED.shown:
                row = _row(_SETTLED.full_name(delta, epsilons), sampler)
                cells.append(_promise(row))
        rows.append(cells)
    head = [
        f"{_key(epsilons)} sd, delta {delta:g}" for epsilons in EPSILONS for delta in _SETTLED.shown
    ]
    return table(["sampler", *head], rows)


def _promise(row: dict[str, Any]) -> str:
    if row["promised"] is None:
        return "-"
    return f"{percent(row['promised'])}, {percent(row['came_true'])} of {row['stopped']}"


def _samplers() -> list[str]:
    return [name for name in distinct(result(_RESULT)["rows"], "sampler") if name]


def _head(first: str, *more: str) -> list[str]:
    return [
        first,
        *(
            f"{_key(epsilons)} sd: {column}"
            for epsilons in EPSILONS
            for column in (*more, "saved", "lost")
        ),
    ]


def _at_both(kind: str, settings: dict[str, float], shown: bool = False) -> list[str]:
    cells = []
    for epsilons in EPSILONS:
        setting = settings[_key(epsilons)]
        row = _row(FAMILIES[kind].full_name(setting, epsilons))
        cells += [f"{setting:g}"] if shown else []
        cells += [percent(row["saved"]), percent(row["lost"])]
    return cells


def _row(rule: str, sampler: str | None = None) -> dict[str, Any]:
    return only(result(_RESULT)["rows"], rule=rule, sampler=sampler)


def _key(epsilons: float) -> str:
    return f"{epsilons:g}"


FIGURES: dict[str, Callable[[], str]] = {
    "settled": usual,
    "settled, chosen": chosen,
    "settled by sampler": by_sampler,
    "settled, promises": calibration,
}
