"""What the records of a comparison say: figures, tables, pictures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.hpo.figures import Panel, curves_figure, overview, ranking_figure, styles_of
from benchmarks.hpo.identity import distribution_of
from benchmarks.hpo.methods import HEADLINE
from benchmarks.hpo.record import Record
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.scores import (
    BUDGETS,
    Comparison,
    Curves,
    curves,
    duels,
    known_best,
    normalised,
    ratios,
    regrets,
    summary,
)
from benchmarks.hpo.statistics import Ranking, friedman, ranking
from benchmarks.hpo.tasks import ACCURACIES, grouped, is_kept_for_judging

Row: TypeAlias = dict[str, Any]

ALL = "all tasks"
_PEERS = Path(__file__).parents[1] / "peers"


@dataclass(frozen=True)
class Report:
    """A comparison, and what it is held against.

    Parameters
    ----------
    comparison
        The runs.
    references
        Best known and median random value of each task.
    seconds
        What an evaluation at the target level takes, for tasks of which that is known.
    ours
        Names of this project's methods.
    epsilon
        See `summary`.
    unit
        Of the budgets, in words.
    """

    comparison: Comparison
    references: Mapping[str, Reference]
    seconds: Mapping[str, float]
    ours: tuple[str, ...]
    epsilon: float = 1.0
    unit: str = "cost in full evaluations"

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        references: Mapping[str, Reference],
        seconds: Mapping[str, float],
        ours: Sequence[str],
        epsilon: float = 1.0,
        unit: str = unit,
        seeds: Sequence[int] = (),
    ) -> Report:
        """Compare what is comparable; the best value known is raised by what runs have found.

        Methods that have not played all of `seeds` are left out if others have.

        Raises
        ------
        ValueError
            If there are no records that can be compared.
        """
        comparison = Comparison.of(records, list(references), seeds)
        if not comparison.methods:
            raise ValueError("records hold no seed that all methods have played on all tasks.")
        known = known_best(records, references)
        present = tuple(name for name in ours if name in comparison.methods)
        if seeds and not present and not comparison.left_out.keys().isdisjoint(ours):
            raise ValueError("our own methods lack runs that others have; play them by run.")
        return cls(comparison, known, seconds, present, epsilon, unit)

    @property
    def headline(self) -> str | None:
        """The method of ours that counts: HEADLINE, or if it was not played the first that was."""
        return HEADLINE if HEADLINE in self.ours else next(iter(self.ours), None)

    @property
    def groups(self) -> dict[str, Comparison]:
        """Its parts by kind of task, after the whole of it."""
        parts = grouped(self.comparison.tasks)
        whole = {ALL: self.comparison}
        return whole | {name: self.comparison.of_tasks(tasks) for name, tasks in parts.items()}

    def rankings(self, part: Comparison) -> list[Ranking]:
        """Of the methods at each budget, a block being a task and a seed."""
        percent = self._percent(part)
        flat = percent.reshape(len(part.methods), -1, len(BUDGETS))
        return [ranking(flat[..., number]) for number in range(len(BUDGETS))]

    def _percent(self, part: Comparison) -> Any:
        return normalised(regrets(part, self.references), part, self.references)

    def _duels(self, ours: str, part: Comparison) -> list[Row]:
        return duels(ours, self._percent(part), part, variants=self.ours)

    def figures(self) -> Row:
        """All of it as plain values."""
        return {
            "budgets": list(BUDGETS),
            "unit": "budgets: full evaluations; points: of the value; percent: of the regret of "
            "the median random configuration, which also stands for no recommendation",
            "tasks": {
                task: {"best": round(best, 4), "median": round(median, 4)}
                for task, (best, median) in self.references.items()
                if task in self.comparison.tasks
            },
            "seeds": list(self.comparison.seeds),
            "left_out": dict(self.comparison.left_out),
            "identities": {
                method: sorted({one.identity for one in self.comparison.of_method(method)})
                for method in self.comparison.methods
            },
            "ours": list(self.ours),
            "headline": self.headline,
            "epsilon": self.epsilon,
            "groups": {name: self._group(name, part) for name, part in self.groups.items()},
        }

    def _group(self, name: str, part: Comparison) -> Row:
        points = regrets(part, self.references)
        percent = normalised(points, part, self.references)
        comparable = points if name in ACCURACIES else percent
        peers = [method for method in part.methods if method not in self.ours]
        optuna = [method for method in peers if method.startswith("optuna ")]
        return {
            "tasks": list(part.tasks),
            "methods": summary(part, self.references, self.epsilon),
            "points_by_task": {
                task: dict(
                    zip(part.methods, points[:, index].mean(axis=1).round(4).tolist(), strict=True)
                )
                for index, task in enumerate(part.tasks)
            },
            "rankings": [
                {
                    "budget": budget,
                    "friedman": found.friedman,
                    "friedman_of_task_means": friedman(percent[..., number].mean(axis=2)),
                    "order": [part.methods[index] for index in found.order],
                    "alike": [
                        [part.methods[found.order[place]] for place in range(first, last + 1)]
                        for first, last in found.cliques
                    ],
                }
                for number, (budget, found) in enumerate(
                    zip(BUDGETS, self.rankings(part), strict=True)
                )
            ],
            "duels": [row for ours in self.ours for row in self._duels(ours, part)],
            **{
                key: {ours: ratios(ours, others, comparable, part) for ours in self.ours}
                for key, others in (("over_best_peer", peers), ("over_best_optuna", optuna))
                if others
            },
        }

    def pictures(self) -> dict[str, Any]:
        """Plotly figures by their headings."""
        found = {}
        styles = styles_of(self._by_rank(), self.ours)
        groups = list(self.groups.items())
        for name, part in groups[1:] if len(groups) == 2 else groups:  # one kind is all
            panel = Panel(name, part.methods, curves(part, self.references))
            found[f"{name}: regret along the way"] = curves_figure(panel, styles, self.unit)
            if set(part.tasks) <= set(self.seconds):
                timed = Panel(
                    name, part.methods, curves(part, self.references, seconds=self.seconds)
                )
                found[f"{name}: the same with the optimisers' own time counted"] = curves_figure(
                    timed, styles, "cost and the optimiser's CPU time, in full evaluations"
                )
            blocks = len(part.tasks) * len(part.seeds)
            for budget, of_budget in zip(BUDGETS, self.rankings(part), strict=True):
                heading = f"{name}: mean ranks at budget {budget:g} ({blocks} runs each)"
                found[heading] = ranking_figure(part.methods, of_budget)
        return found

    def picture(self) -> str:
        """The curves of the two kinds of surrogates, or of what there is, as SVG.

        Of our methods it shows the headline alone.
        """
        parts = dict(list(self.groups.items())[1:])
        surrogates = {name: parts[name] for name in ("LCBench", "rbv2_xgboost") if name in parts}
        variants = {name for name in self.ours if name != self.headline}
        shown = [name for name in self.comparison.methods if name not in variants]
        panels = []
        for name, part in (surrogates or parts).items():
            found = curves(part, self.references)
            rows = [part.methods.index(method) for method in shown]
            found = Curves(found.budgets, found.means[rows], found.ends[rows])
            panels.append(Panel(f"{name}, {_counted(part.tasks, 'task')}", shown, found))
        caption = (
            "Regret of the recommended configuration, in % of the median random one's: mean over "
            f"{_same(self.comparison.seeds)} for all methods, with 95 % bands"
        )
        ranked = [name for name in self._by_rank() if name in shown]
        return overview(panels, styles_of(ranked, self.ours), caption)

    def _by_rank(self) -> list[str]:
        ranks = np.mean([found.ranks for found in self.rankings(self.comparison)], axis=0)
        return [self.comparison.methods[index] for index in np.argsort(ranks, kind="stable")]

    def markdown(self) -> str:
        """The table of methods, best mean rank first; bold is the best at a budget."""
        groups = {name: part for name, part in self.groups.items() if name != ALL}
        rows = {
            name: {row["method"]: row for row in summary(part, self.references, self.epsilon)}
            for name, part in self.groups.items()
        }
        budgets = " / ".join(f"{budget:g}" for budget in BUDGETS)
        units = {name: "points" if name in ACCURACIES else "percent" for name in groups}
        header = [
            "method",
            *(f"{name}: regret in {units[name]} at {budgets}" for name in groups),
            "mean rank",
            "claim gap",
            "epsilon-best",
            "ms per evaluation",
        ]
        lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        for method in self._by_rank():
            whole = rows[ALL][method]
            gap = whole["claim_gap_percent"][-1]
            cells = [f"**{method}**" if method in self.ours else method]
            cells += [_cell(rows[name], method, units[name], 2) for name in groups]
            cells.append(_cell(rows[ALL], method, "rank", 1))
            cells.append("none" if gap is None else f"{gap:+.1f} %")
            cells.append(f"{100 * whole['epsilon_best']:.0f} %")
            cells.append(f"{whole['milliseconds']:.1f}")
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def markdown_of_duels(self, ours: str) -> str:
        """The table of one of our methods against each peer's, by tasks won, tied and lost."""
        found = {row["opponent"]: row for row in self._duels(ours, self.comparison)}
        header = [f"{ours} against", *(f"budget {budget:g}" for budget in BUDGETS)]
        lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        for name in self._by_rank():
            if name in found:
                row = found[name]
                results = zip(row["wins"], row["ties"], row["losses"], row["better"], strict=True)
                cells = [
                    f"{wins} / {ties} / {losses}, {better:.2f}"
                    for wins, ties, losses, better in results
                ]
                lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def notes(self) -> str:
        """What the tables do not say: how to read them, what is missing, failures, our losses."""
        comparison = self.comparison
        lines = [
            f"{_counted(comparison.tasks, 'task')}, {_counted(comparison.methods, 'method')}, "
            f"{_same(comparison.seeds)} for all methods; noise is a function of seed and "
            "configuration.",
            "Regret: how far the recommended configuration's true value at the target level is "
            "below the best known one, mean over seeds and tasks; the median random "
            "configuration's before there is a recommendation. Points are of accuracy in percent; "
            "percent are of the median random configuration's regret. Budgets: full evaluations. "
            "Mean rank: over tasks and seeds.",
            f"At budget {BUDGETS[-1]:g}: claim gap, the value that is promised less the true one, "
            f"in percent; epsilon-best, the share of runs within {self.epsilon:g} % of the best "
            "that was tried.",
        ]
        if self.ours:
            lines += [
                "Won / tied / lost: tasks, by Wilcoxon's signed-rank test over the seeds at .05, "
                "adjusted by Holm's method; then the probability that a run of ours is better.",
                f"{self._developed_on()} The peers were not tuned. Where we lose is judged by "
                f"{self.headline} alone.",
            ]
        lines += [
            f"{name} at budgets below {BUDGETS[-1]:g} is a run with budget {BUDGETS[-1]:g} that "
            "has certified nothing yet."
            for name in self.ours
            if name.endswith("+ certificate")
        ]
        lines += [
            f"Left out, with {runs} runs: {name}." for name, runs in comparison.left_out.items()
        ]
        for method in comparison.methods:
            counts = Counter(one.identity or "unknown" for one in comparison.of_method(method))
            if len(counts) > 1:
                said = ", ".join(f"{runs} of {name}" for name, runs in sorted(counts.items()))
                lines.append(f"{method}: its runs are of {len(counts)} versions: {said}.")
        for row in summary(comparison, self.references, self.epsilon):
            if row["failures"] or row["crashes"]:
                lines.append(
                    f"{row['method']}: {row['crashes']} of {row['runs']} runs crashed, "
                    f"{row['failures']} evaluations failed."
                )
        for name, part in self.groups.items():
            lines += [*self._over_optuna(name, part), *self._lost(name, part)]
        return "\n".join(lines)

    def _developed_on(self) -> str:
        kept = sum(map(is_kept_for_judging, self.comparison.tasks))
        if kept == len(self.comparison.tasks):
            return "Our methods were developed on other tasks; these were kept to judge them."
        if kept:
            return f"Our methods were developed on other tasks than {kept} of these."
        return "Our methods were developed on these tasks."

    def _over_optuna(self, name: str, part: Comparison) -> list[str]:
        """Our mean regret over that of the best configuration of Optuna, in words."""
        optuna = [method for method in part.methods if method.startswith("optuna ")]
        losses = regrets(part, self.references) if name in ACCURACIES else self._percent(part)
        lines = []
        for ours in self.ours if optuna else ():
            said = [
                f"{row['ratio']:.2f} ({row['interval'][0]:.2f} to {row['interval'][1]:.2f})"
                if row["interval"]
                else "none"
                for row in ratios(ours, optuna, losses, part)
            ]
            lines.append(f"{name}: regret of {ours} over the best of Optuna's: {', '.join(said)}.")
        return lines

    def _lost(self, name: str, part: Comparison) -> list[str]:
        """Where a peer's mean regret is below that of our headline, in percent."""
        if self.headline is None:
            return []
        means = dict(zip(part.methods, self._percent(part).mean(axis=(1, 2)), strict=True))
        lines = []
        for number, budget in enumerate(BUDGETS):
            own = float(means[self.headline][number])
            ahead = sorted(
                (float(mean[number]), method)
                for method, mean in means.items()
                if method not in self.ours and mean[number] < own
            )
            if ahead:
                said = ", ".join(f"{method} ({mean:.1f} %)" for mean, method in ahead)
                lines.append(
                    f"We lose on {name} at budget {budget:g}: {self.headline} has {own:.1f} %, "
                    f"behind {said}."
                )
        return lines


def _same(seeds: Sequence[int]) -> str:
    return f"the same {_counted(seeds, 'seed')}"


def _counted(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _cell(rows: Mapping[str, Row], method: str, key: str, digits: int) -> str:
    least = np.min([row[key] for row in rows.values()], axis=0)
    parts = []
    for value, best in zip(rows[method][key], least, strict=True):
        text = f"{value:.{digits}f}"
        parts.append(f"**{text}**" if value <= best else text)
    return " / ".join(parts)


def pinned(folder: Path = _PEERS / "requirements") -> dict[str, str]:
    """The version of each peer that has an environment of its own, such as "smac==2.4.1"."""
    versions = {}
    for file in sorted(folder.glob("*.txt")):
        name = distribution_of(file.stem)
        text = file.read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(name)}==[\w.+]+", text, re.MULTILINE | re.IGNORECASE)
        if found is not None:
            versions[file.stem] = found.group()
    return versions
