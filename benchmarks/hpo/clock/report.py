"""What the records of runs on the clock say: a comparison for each number of workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.hpo.figures import Panel, overview, styles_of
from benchmarks.hpo.record import Record
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.report import Report
from benchmarks.hpo.scores import BUDGETS, curves, known_best
from benchmarks.hpo.tasks import label_of

_UNIT = "time, in that in which all workers together make one median full training"


@dataclass(frozen=True)
class ClockReport:
    """Comparisons on the clock.

    Parameters
    ----------
    parts
        By number of workers.
    """

    parts: Mapping[int, Report]

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        references: Mapping[str, Reference],
        workers: Sequence[int],
        ours: Sequence[str],
        sigma: float | None = None,
        seeds: Sequence[int] = (),
    ) -> ClockReport:
        """Compare what is comparable, as `Comparison.of` says.

        The best known of a task is the same whoever evaluates.

        Raises
        ------
        ValueError
            If there are no records that can be compared.
        """
        labels = {
            label_of(task, sigma, number): (task, number)
            for task in references
            for number in workers
        }
        found = [record for record in records if record.problem in labels]
        known = known_best(
            [replace(record, problem=labels[record.problem][0]) for record in found], references
        )
        parts = {}
        for number in workers:
            part = [record for record in found if labels[record.problem][1] == number]
            if part:
                held = {label_of(task, sigma, number): known[task] for task in references}
                parts[number] = Report.of(part, held, {}, ours, unit=_UNIT, seeds=seeds)
        if not parts:
            raise ValueError("there are no records of runs on the clock; play them first.")
        return cls(parts)

    @property
    def _mean_ranks(self) -> dict[int, dict[str, Sequence[float]]]:
        """By number of workers and method, at each budget."""
        found = {}
        for number, report in self.parts.items():
            ranks = np.array([one.ranks for one in report.rankings(report.comparison)])
            of_methods = zip(report.comparison.methods, ranks.T.tolist(), strict=True)
            found[number] = dict(of_methods)
        return found

    def _by_rank(self) -> list[str]:
        """Methods, the one with the best mean rank over all numbers of workers first."""
        found = self._mean_ranks.values()
        names = dict.fromkeys(name for ranks in found for name in ranks)
        means = {
            name: float(np.mean([ranks[name] for ranks in found if name in ranks]))
            for name in names
        }
        return sorted(means, key=lambda name: means[name])

    def markdown(self) -> str:
        """The table of mean ranks; bold is the best at a time."""
        found = self._mean_ranks
        points = " / ".join(f"{budget:g}" for budget in BUDGETS)
        header = [f"mean rank at {points}", *(_workers(number) for number in found)]
        lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        ours = {name for report in self.parts.values() for name in report.ours}
        for name in self._by_rank():
            cells = [f"**{name}**" if name in ours else name]
            cells += [_cell(ranks, name) for ranks in found.values()]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def text(self) -> str:
        """All tables, and what they do not say."""
        said = [
            f"Time: {_UNIT[6:]}, so that 100 is the time of 100 such trainings divided by the "
            "workers. The optimiser's own CPU time is on the clock.",
            self.markdown(),
        ]
        for number, report in self.parts.items():
            said += [f"## {_workers(number)}", report.markdown(), report.notes()]
        return "\n\n".join(said)

    def figures(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "time": _UNIT[6:],
            "workers": {str(number): report.figures() for number, report in self.parts.items()},
        }

    def pictures(self) -> dict[str, Any]:
        """Plotly figures by their headings."""
        return {
            f"{_workers(number)}, {heading}": figure
            for number, report in self.parts.items()
            for heading, figure in report.pictures().items()
        }

    def picture(self) -> str:
        """The curves of all tasks for each number of workers, as SVG."""
        panels = [
            Panel(
                _workers(number),
                report.comparison.methods,
                curves(report.comparison, report.references),
            )
            for number, report in self.parts.items()
        ]
        first = next(iter(self.parts.values()))
        caption = (
            "Regret of the recommended configuration, in % of the median random one's, mean over "
            f"{len(first.comparison.tasks)} tasks; the optimisers' own time is on the clock"
        )
        return overview(panels, styles_of(self._by_rank(), first.ours), caption, "time")


def _workers(number: int) -> str:
    return f"{number} worker{'' if number == 1 else 's'}"


def _cell(ranks: Mapping[str, Sequence[float]], name: str) -> str:
    if name not in ranks:
        return "not played"
    least = np.min(list(ranks.values()), axis=0)
    parts = [
        f"**{rank:.1f}**" if rank <= best else f"{rank:.1f}"
        for rank, best in zip(ranks[name], least, strict=True)
    ]
    return " / ".join(parts)
