"""How good the recommendations of optimisers were, from the records of their runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.hpo.record import Record
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.statistics import (
    bootstrap_means,
    holm,
    interval,
    mean_ranks,
    paired_test,
    probability_of_less,
)
from mfhpo.knowledge.arrays import FloatArray

Row: TypeAlias = dict[str, Any]

BUDGETS = (10.0, 20.0, 50.0, 100.0)
"""In evaluations at the target level."""


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods on several tasks, with the same seeds everywhere.

    Parameters
    ----------
    methods, tasks, seeds
        All of them have been played with one another.
    records
        By method, task and seed.
    left_out
        Methods and tasks that lack too many runs, each with the number of its runs.

    Examples
    --------
    >>> Comparison.of([], tasks=["branin"]).methods
    ()
    """

    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    records: Mapping[tuple[str, str, int], Record]
    left_out: Mapping[str, int]

    @classmethod
    def of(
        cls, records: Iterable[Record], tasks: Sequence[str], seeds: Sequence[int] = ()
    ) -> Comparison:
        """Choose what can be compared, while runs may be missing.

        A task is left out if it has less than half the runs of the task that has most. If any
        method has all of `seeds` on the others, those that have not are left out. Else those are
        that have less than half the seeds, complete on all tasks, of the one that has most. What
        remains is compared on the seeds that everyone has.

        Raises
        ------
        ValueError
            If the records' budgets differ, or one lacks true values.
        """
        found = {
            (record.method, record.problem, record.seed): record
            for record in records
            if record.problem in tasks
        }
        budgets = {record.budget for record in found.values()}
        if len(budgets) > 1:
            raise ValueError(f"records must have one budget, got {sorted(budgets)}.")
        unknown = {record.problem for record in found.values() if None in record.value}
        if unknown:
            raise ValueError(
                f"records must have true values; those of {sorted(unknown)} lack some."
            )
        runs = Counter(task for _, task, _ in found)
        kept = [task for task in tasks if runs[task] and 2 * runs[task] >= max(runs.values())]
        played: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for method, task, seed in found:
            played[method][task].add(seed)
        complete = {
            method: set.intersection(*(of_task[task] for task in kept))
            for method, of_task in played.items()
        }
        most = max(map(len, complete.values()), default=0)
        methods = [name for name, own in complete.items() if seeds and own.issuperset(seeds)]
        if not methods:
            methods = [name for name, own in complete.items() if own and 2 * len(own) >= most]
        common = set.intersection(*(complete[name] for name in methods)) if methods else set()
        left_out = {task: runs[task] for task in tasks if task not in kept}
        left_out |= {
            name: sum(map(len, played[name].values())) for name in played if name not in methods
        }
        if not common:
            methods = []
        return cls(
            methods=tuple(methods),
            tasks=tuple(kept),
            seeds=tuple(sorted(common)),
            records={
                key: record
                for key, record in found.items()
                if key[0] in methods and key[1] in kept and key[2] in common
            },
            left_out=left_out,
        )

    def of_tasks(self, tasks: Sequence[str]) -> Comparison:
        """The part of it that is about some of the tasks."""
        kept = tuple(task for task in self.tasks if task in tasks)
        records = {key: record for key, record in self.records.items() if key[1] in kept}
        return Comparison(self.methods, kept, self.seeds, records, self.left_out)

    def of_method(self, method: str) -> list[Record]:
        """The records of a method, by task and seed."""
        return [self.records[method, task, seed] for task in self.tasks for seed in self.seeds]


def known_best(
    records: Iterable[Record], references: Mapping[str, Reference]
) -> dict[str, Reference]:
    """Replace the best values known by what runs have found, where that is better."""
    best = {task: reference.best for task, reference in references.items()}
    for record in records:
        if record.problem in best and record.best_tried is not None:
            best[record.problem] = max(best[record.problem], record.best_tried)
    return {task: Reference(best[task], references[task].median) for task in references}


def regrets(
    comparison: Comparison,
    references: Mapping[str, Reference],
    budgets: Sequence[float] = BUDGETS,
    seconds: Mapping[str, float] | None = None,
) -> FloatArray:
    """How far below the best known the last recommendation within a budget truly is.

    Who has not recommended anything yet is given the median random configuration.

    Parameters
    ----------
    comparison
        The runs.
    references
        Best known and median random value of each task.
    budgets
        In evaluations at the target level.
    seconds
        What such an evaluation takes, by task. If given, the optimiser's own time is counted
        against the budget as well, in this unit.

    Returns
    -------
    numpy.ndarray
        Shape (methods, tasks, seeds, budgets), in points.
    """
    losses = np.empty(
        (len(comparison.methods), len(comparison.tasks), len(comparison.seeds), len(budgets))
    )
    for i, method in enumerate(comparison.methods):
        for j, task in enumerate(comparison.tasks):
            best, median = references[task]
            for k, seed in enumerate(comparison.seeds):
                record = comparison.records[method, task, seed]
                when = np.array(record.cost)
                if seconds is not None:
                    when = when + np.array(record.seconds) / seconds[task]
                values = np.array([median, *record.value])
                losses[i, j, k] = best - values[_last(when, budgets) + 1]
    return losses


def _last(when: FloatArray, budgets: Sequence[float]) -> npt.NDArray[np.intp]:
    """Index of the last entry at or before each budget, up to rounding; -1 if there is none."""
    return np.searchsorted(when, np.asarray(budgets) + 1e-9, side="right") - 1


def normalised(
    losses: FloatArray, comparison: Comparison, references: Mapping[str, Reference]
) -> FloatArray:
    """Regrets in percent of those of the median random configuration."""
    scale = np.array([references[task].best - references[task].median for task in comparison.tasks])
    return np.asarray(100.0 * losses / scale[:, None, None], dtype=np.float64)


@dataclass(frozen=True)
class Curves:
    """Mean normalised regret along the way, and its 95 % interval.

    Parameters
    ----------
    budgets
        Shape (points,), in evaluations at the target level.
    means
        Shape (methods, points), in percent.
    ends
        Shape (methods, 2, points).
    """

    budgets: FloatArray
    means: FloatArray
    ends: FloatArray


def along_the_way(points: int = 61) -> FloatArray:
    """Budgets at which curves are drawn."""
    return np.geomspace(1.0, BUDGETS[-1], points)


def curves(
    comparison: Comparison,
    references: Mapping[str, Reference],
    seconds: Mapping[str, float] | None = None,
    points: int = 61,
) -> Curves:
    """Regrets of all methods at many budgets, up to the largest of `BUDGETS`; see `regrets`."""
    budgets = along_the_way(points)
    losses = regrets(comparison, references, budgets.tolist(), seconds)
    percent = normalised(losses, comparison, references)
    ends = [interval(bootstrap_means(of_method)) for of_method in percent]
    return Curves(budgets, percent.mean(axis=(1, 2)), np.array(ends))


def summary(
    comparison: Comparison,
    references: Mapping[str, Reference],
    epsilon: float,
    budgets: Sequence[float] = BUDGETS,
) -> list[Row]:
    """For each method: what counts, over all tasks.

    Parameters
    ----------
    comparison, references
        The runs, and what they are held against.
    epsilon
        A recommendation counts as the best of what was tried if its true value is at most this
        much below it, in percent of the median random configuration's regret.
    budgets
        In evaluations at the target level.

    Returns
    -------
    list of dict
        Lists have an entry for each budget: `points` and `percent` (mean regret, seeds first and
        then tasks), `interval` (of the latter, 95 %), `rank` (mean over tasks and seeds),
        `claim_gap`, `claim_gap_absolute` and `claim_gap_percent` (claim minus true value, mean in
        points or percent; None without claims). `epsilon_best` is the share of runs whose final
        recommendation is as good as the best that was tried, `milliseconds` the optimiser's own
        CPU time per evaluation.
    """
    points = regrets(comparison, references, budgets)
    percent = normalised(points, comparison, references)
    ranks = [mean_ranks(percent[..., number]) for number in range(len(budgets))]
    rows = []
    for index, method in enumerate(comparison.methods):
        records = comparison.of_method(method)
        gaps = [_claim_gaps(records, budget) for budget in budgets]
        ends = interval(bootstrap_means(percent[index]))
        rows.append(
            {
                "method": method,
                "points": _rounded(points[index].mean(axis=(0, 1))),
                "percent": _rounded(percent[index].mean(axis=(0, 1))),
                "interval": [_rounded(pair) for pair in ends.T],
                "rank": _rounded([of_budget[index] for of_budget in ranks]),
                "claim_gap": [_mean(of_budget) for of_budget in gaps],
                "claim_gap_absolute": [_mean(np.abs(of_budget)) for of_budget in gaps],
                "claim_gap_percent": [
                    _mean(_claim_gaps(records, budget, references)) for budget in budgets
                ],
                "epsilon_best": _mean(
                    [_is_best_tried(record, references, epsilon) for record in records]
                ),
                "runs": len(records),
                "evaluations": _mean([sum(record.evaluations) for record in records]),
                "tried": _mean([record.tried for record in records]),
                "failures": sum(record.failures for record in records),
                "crashes": sum(record.crash is not None for record in records),
                "milliseconds": _mean(
                    [
                        1_000 * record.total_seconds / max(1, sum(record.evaluations))
                        for record in records
                    ]
                ),
            }
        )
    return rows


def _claim_gaps(
    records: Sequence[Record],
    budget: float,
    references: Mapping[str, Reference] | None = None,
) -> FloatArray:
    """In points, or with references in percent of the median random configuration's regret."""
    gaps = []
    for record in records:
        [last] = _last(np.array(record.cost), [budget])
        if last >= 0:
            claim, value = record.claim[last], record.value[last]
            if claim is not None and value is not None:
                unit = 1.0
                if references is not None:
                    best, median = references[record.problem]
                    unit = (best - median) / 100
                gaps.append((claim - value) / unit)
    return np.array(gaps)


def _is_best_tried(record: Record, references: Mapping[str, Reference], epsilon: float) -> bool:
    best, median = references[record.problem]
    if not record.value or record.value[-1] is None or record.best_tried is None:
        return False
    return record.best_tried - record.value[-1] <= epsilon / 100 * (best - median)


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), 4) for value in values]


def _mean(values: Sequence[float] | FloatArray) -> float | None:
    return round(float(np.mean(values)), 4) if len(values) else None


def duels(
    ours: str,
    percent: FloatArray,
    comparison: Comparison,
    budgets: Sequence[float] = BUDGETS,
    variants: Sequence[str] = (),
) -> list[Row]:
    """On how many tasks one method beats each other one, and by how much.

    On a task it wins or loses if Wilcoxon's signed-rank test over the seeds, which are the same for
    both, says that the regrets differ, at .05 adjusted by Holm's method for all tasks and opponents
    of that budget; otherwise it is a tie.

    Parameters
    ----------
    ours
        The method.
    percent
        Normalised regrets, of shape (methods, tasks, seeds, budgets).
    comparison
        The runs.
    budgets
        In evaluations at the target level.
    variants
        Methods that are no opponents, such as others of the same project.

    Returns
    -------
    list of dict
        For each opponent; lists have an entry for each budget: `wins`, `ties`, `losses`, and
        `better` (the probability that a run of ours is better than one of the opponent's on the
        same task, mean over tasks).
    """
    first = percent[comparison.methods.index(ours)]
    others = [name for name in comparison.methods if name not in (ours, *variants)]
    rows: dict[str, Row] = {
        name: {"method": ours, "opponent": name, "wins": [], "ties": [], "losses": [], "better": []}
        for name in others
    }
    tasks = range(len(comparison.tasks))
    for number in range(len(budgets)):
        seconds = {name: percent[comparison.methods.index(name)][..., number] for name in others}
        pairs = [(name, task) for name in others for task in tasks]
        tests = [paired_test(first[task, :, number], seconds[name][task]) for name, task in pairs]
        signs: dict[str, list[int]] = defaultdict(list)
        for (name, _), p, (_, larger) in zip(
            pairs, holm([p for p, _ in tests]), tests, strict=True
        ):
            signs[name].append(larger if p < 0.05 else 0)
        for name, row in rows.items():
            row["wins"].append(signs[name].count(-1))
            row["ties"].append(signs[name].count(0))
            row["losses"].append(signs[name].count(1))
            shares = [
                probability_of_less(first[task, :, number], seconds[name][task]) for task in tasks
            ]
            row["better"].append(_mean(shares))
    return list(rows.values())


def ratios(
    ours: str, others: Sequence[str], losses: FloatArray, comparison: Comparison
) -> list[Row]:
    """Our mean regret over the smallest mean regret of others, at each budget.

    Parameters
    ----------
    ours, others
        Names of methods.
    losses
        Regrets, of shape (methods, tasks, seeds, budgets), in a unit that all tasks share.
    comparison
        The runs.

    Returns
    -------
    list of dict
        For each budget: `best`, whose mean is the smallest, `ratio`, and its bootstrap `interval`
        (95 %, over paired seeds, `best` being held). None where they would divide by 0.
    """
    means = losses.mean(axis=(1, 2))
    index = {name: comparison.methods.index(name) for name in (ours, *others)}
    rows: list[Row] = []
    for number in range(losses.shape[-1]):
        best = min(others, key=lambda name: means[index[name], number])
        pair = losses[[index[ours], index[best]], :, :, number]
        resampled = bootstrap_means(np.moveaxis(pair, 0, -1))
        mean = pair.mean(axis=(1, 2))
        known = bool(mean[1] > 0 and resampled[:, 1].min() > 0)
        rows.append(
            {
                "best": best,
                "ratio": round(float(mean[0] / mean[1]), 4) if mean[1] > 0 else None,
                "interval": _rounded(interval(resampled[:, 0] / resampled[:, 1]))
                if known
                else None,
            }
        )
    return rows
