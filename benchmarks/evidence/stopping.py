"""What rules that stop studies save and lose."""

from collections.abc import Callable
from typing import Any

from benchmarks.evidence.tables import only, percent, result, table
from benchmarks.settled.rules import EPSILONS, FAMILIES

_RESULT = "settled"


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
}
