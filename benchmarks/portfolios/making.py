"""Make a portfolio of a family, and the file that is shipped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.portfolios.families import Family
from benchmarks.portfolios.greedy import greedy, normalised

SIZE = 10
"""Configurations of a portfolio, the default included."""


class Making:
    """All candidates of a family on all data sets that it is made from."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._candidates = [dict(family.default), *family.candidates()]
        values = []
        for name in family.made_from:
            task = family.task(name)
            values.append(task.values([task.inside(one) for one in self._candidates]))
        self._regrets = normalised(np.array(values))

    def portfolio(self, without: str | None = None) -> list[dict[str, Any]]:
        """The portfolio, made from all data sets but one."""
        kept = [name != without for name in self._family.made_from]
        return [self._candidates[one] for one in greedy(self._regrets[kept], SIZE)]


def as_text(configurations: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """A portfolio's file: what it is made from, then a configuration on each line."""
    head = json.dumps(about, indent=1, ensure_ascii=False)[:-2]
    lines = ",\n".join(f"  {json.dumps(one)}" for one in configurations)
    return f'{head},\n "configurations": [\n{lines}\n ]\n}}\n'
