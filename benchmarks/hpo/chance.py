"""How often the search's answer is as good as its model says.

    python -m benchmarks.hpo.chance --data FOLDER --output chance.json --figure chance.html

FOLDER holds lcbench/ and rbv2_xgboost/ of YAHPO Gym's surrogates (github.com/slds-lmu/yahpo_data).
Searches among 64 random configurations, on several budgets and with several tolerances, of tasks
for development and of those that judge methods. Normal noise of .5 on the accuracy in percent. Each
answer promises a chance to be within epsilon of the best configuration that came to the target
(`answer.chance`); the truth is known. Without a tolerance it is that of the answer. The Brier score
is the mean square of the difference.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.certainty_answers import Race
from benchmarks.hpo.certainty_budgets import FIRST_LIST, SIGMA, played
from benchmarks.hpo.certainty_pools import Bounds, kept_pool
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.hpo.tasks import grouped, judged_tasks
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, verdict, write

Row = dict[str, Any]

N_ARMS, BUDGETS, TOLERANCES = 64, (15.0, 30.0, 45.0), (0.25, 0.5, 1.0, None)
EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Between which promises are put together in the diagram."""

_ALLOWED = 0.05  # by how much promises may be off on average, in each family


@dataclass(frozen=True)
class Promise:
    """What an answer promised, and whether it was true."""

    task: str
    chance: float
    is_true: bool


def _promises(data: Path, job: tuple[str, int]) -> list[Promise]:
    task, seed = job
    pool = kept_pool(task, None, N_ARMS, seed, data)
    found = []
    for number, budget in enumerate(BUDGETS):
        for tolerance in TOLERANCES:
            race = Race(pool, SIGMA, SIGMA, Bounds(np.zeros(0), np.zeros(0)), seed)
            rng = np.random.default_rng([seed, number])
            search = played(race, budget, rng, epsilon=tolerance)
            answer, chance = search.recommend(), search.standing.chance()
            if chance is None or answer.arm is None or math.isnan(answer.epsilon):
                continue  # without a certificate nobody is told what its tolerance would be
            best = pool.means[-1, search.search.finished_arms()].max()
            off = best - pool.means[-1, answer.arm]
            found.append(Promise(task, chance, bool(off <= answer.epsilon)))
    return found


def rows_of(kind: str, promises: Sequence[Promise]) -> list[Row]:
    """Return mean promise, share that is true, Brier score and the diagram's bins, by family."""
    rows = []
    for family, tasks in grouped(dict.fromkeys(each.task for each in promises)).items():
        chosen = [each for each in promises if each.task in tasks]
        chances = np.array([each.chance for each in chosen])
        truths = np.array([each.is_true for each in chosen])
        bins = []
        for low, high in pairwise(EDGES):
            inside = (chances >= low) & ((chances < high) | (high == EDGES[-1]))
            if inside.any():
                means = (chances[inside].mean(), truths[inside].mean())
                bins.append([*(round(float(mean), 3) for mean in means), int(inside.sum())])
        rows.append(
            {
                "kind": kind,
                "tasks": family,
                "answers": len(chosen),
                "promised": round(float(chances.mean()), 3),
                "true": round(float(truths.mean()), 3),
                "brier": round(float(((chances - truths) ** 2).mean()), 3),
                "brier_of_constant": round(float(truths.mean() * (1.0 - truths.mean())), 3),
                "bins": bins,
            }
        )
    return rows


def picture(rows: Sequence[Row]) -> Any:
    """The reliability diagram: promised against true, a line for each family and kind."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_trace(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", name="as promised", line={"dash": "dot"})
    )
    for row in rows:
        promised, true, counts = zip(*row["bins"], strict=True)
        figure.add_trace(
            go.Scatter(
                x=promised,
                y=true,
                mode="lines+markers",
                name=f"{row['tasks']}, {row['kind']}",
                marker={"size": [4.0 + 2.0 * np.log2(count) for count in counts]},
                hovertext=[f"{count} answers" for count in counts],
            )
        )
    figure.update_layout(
        template="plotly_white",
        title="How often answers are as good as the search's model says",
        xaxis_title="promised chance",
        yaxis_title="share that is true",
    )
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    began = time.process_time()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo.chance", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="YAHPO's folder")
    parser.add_argument("--seeds", type=int, default=5, help="lists of each task (default: 5)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}.")
    check_surrogates(parser, options.data, ("lcbench", "rbv2_xgboost"))
    rows: list[Row] = []
    for kind, tasks in (
        ("development", DEVELOPMENT_TASKS),
        ("judged", judged_tasks(options.data)),
    ):
        seeds = range(FIRST_LIST, FIRST_LIST + options.seeds)
        jobs = [(task, seed) for seed in seeds for task in tasks]
        promises: list[Promise] = []
        for each in mapped(partial(_promises, options.data), jobs, options.workers):
            promises += each
        rows += rows_of(kind, promises)
        progress("\n".join(str(row) for row in rows if row["kind"] == kind))
    checked = {
        f"{row['tasks']}, {row['kind']}: promised {row['promised']:.1%}, true {row['true']:.1%}": (
            abs(row["promised"] - row["true"]) <= _ALLOWED
        )
        for row in rows
    }
    print(verdict(checked))
    if options.output is not None:
        command = ["--data", "DATA", "--seeds", str(options.seeds)]
        report = provenance("benchmarks.hpo.chance", command, "onnxruntime") | {
            "cpu_seconds": round(time.process_time() - began),
            "holds": checked,
            "rows": rows,
        }
        write(options.output, as_json(report))
    if options.figure is not None:
        write(options.figure, picture(rows).to_html(include_plotlyjs="cdn"))
    return 0 if all(checked.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
