"""What a certificate costs, against the least that it can cost: MF-GRAD and the other policies.

    python -m benchmarks.papers.mf_grad --data FOLDER --output mf_grad.json --figure mf_grad.html

FOLDER holds the published instances: bai_5x2.npz, bai_4x5.npz, synthetic_a.npz, forever.npz. The
bounds are Theorem 1 of the IISE paper (2022) and C* ln(1 / (2.4 delta)) of the MF-GRAD paper
(2024), which is tight. No audit of the bias bounds, as in the papers. On synthetic A, and on its 20
best arms, pulls are repeated up to `--resolution` of their number before a policy is asked again,
and races of IISE and SE are checked at steps of 0.1 %.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.data.folder import HOW
from benchmarks.papers.iise import load_instance
from benchmarks.papers.mf_grad_bound import tight_cost_lower_bound
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, verdict, write
from benchmarks.simulation.blocks import run_lucb, run_repeats, run_rounds
from benchmarks.simulation.instances import GaussianInstance, Instance
from benchmarks.simulation.runner import RunResult, run
from mfhpo.certification.choice import recommend_policy
from mfhpo.identification.bounds import cost_lower_bound
from mfhpo.identification.elimination import IISE, LevelByLevel
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.problem import Problem
from mfhpo.racing.race import Race

Row = dict[str, Any]
Figures = tuple[float, bool, bool, float]


def _default(problem: Problem, delta: float) -> Race:
    policy = recommend_policy(problem).make(problem, delta=delta, audit=False)
    assert isinstance(policy, Race)
    return policy


ALGORITHMS: dict[str, Callable[[Problem, float], Race]] = {
    "default": _default,
    "MF-GRAD": lambda problem, delta: MFGrad(problem, delta=delta, audit=False),
    "MF-GRAD, published": lambda problem, delta: MFGrad(
        problem, delta=delta, audit=False, learning_rate=0.25, stop="published"
    ),
    "IISE": lambda problem, delta: IISE(problem, delta=delta, audit=False),
    "SE": lambda problem, delta: IISE(problem, variant="se", delta=delta),
    "LUCB, EXPLORE-A": lambda problem, delta: MFLUCB(
        problem, explore="A", delta=delta, audit=False
    ),
    "LUCB, EXPLORE-B": lambda problem, delta: MFLUCB(
        problem, explore="B", delta=delta, audit=False
    ),
    "LUCB, EXPLORE-C": lambda problem, delta: MFLUCB(
        problem, explore="C", delta=delta, audit=False
    ),
}


@dataclass(frozen=True)
class Case:
    """Races on one instance.

    `share` is the part of the runs asked for that is spent on it, `slow` the algorithms that are
    left out, and `large` says that pulls are repeated. `target` is what the default policy's cost
    over C* is to stay below, at delta .001.
    """

    instance: str
    delta: float
    share: float = 1.0
    large: bool = False
    left_out: Sequence[str] = ()
    target: float | None = None


CASES = (
    Case("bai_5x2", 0.01),
    Case("bai_4x5", 0.01),
    Case("bai_5x2", 0.001, target=4.0, left_out=("MF-GRAD, published",)),
    Case("bai_4x5", 0.001, target=6.0, left_out=("MF-GRAD, published",)),
    Case("forever", 0.1, share=0.1, large=True, left_out=("MF-GRAD, published",)),
    Case("synthetic_a_top20", 0.001, 0.04, large=True, left_out=("MF-GRAD, published",)),
    Case(
        "synthetic_a",
        0.001,
        0.02,
        large=True,
        left_out=("MF-GRAD", "MF-GRAD, published", "LUCB, EXPLORE-A", "LUCB, EXPLORE-B"),
        target=8.0,
    ),
)

# A race that is not over by then counts as one that never ends.
_MOST_PULLS = {False: 200_000, True: 100_000_000}


@cache
def instance_of(name: str, data: Path) -> Instance:
    """A published instance, or the 20 best arms of one."""
    if not name.endswith("_top20"):
        return load_instance(data / f"{name}.npz")
    whole = load_instance(data / f"{name.removesuffix('_top20')}.npz")
    best = np.sort(np.argsort(-whole.means[-1])[:20])
    return GaussianInstance(
        whole.means[:, best], whole.costs, xi=whole.xi, variance=float(whole.variance)
    )


@cache
def _bounds(name: str, data: Path, delta: float) -> tuple[float, float]:
    instance = instance_of(name, data)
    problem = instance.problem("max")
    return (
        cost_lower_bound(problem, delta, means=instance.means),
        tight_cost_lower_bound(problem, delta, means=instance.means).cost,
    )


def _race(
    case: Case, algorithm: str, data: Path, resolution: float, rng: np.random.Generator
) -> RunResult:
    instance = instance_of(case.instance, data)
    policy = ALGORITHMS[algorithm](instance.problem("max"), case.delta)
    most = _MOST_PULLS[case.large]
    if isinstance(policy.rule, LevelByLevel):
        return run_rounds(policy, instance, rng, max_pulls=most)
    if isinstance(policy, MFLUCB):
        return run_lucb(policy, instance, rng, max_pulls=most)
    if case.large:
        return run_repeats(policy, instance, rng, resolution=resolution, max_pulls=most)
    return run(policy, instance, rng, max_pulls=most)


def _run(
    task: tuple[int, str, Path, float, int, int, int],
) -> list[tuple[float, bool, bool, float]]:
    """Cost, certified, wrong and CPU seconds of some races."""
    number, algorithm, data, resolution, seed, start, stop = task
    case = CASES[number]
    best = instance_of(case.instance, data).best_arm
    if algorithm.startswith("LUCB"):  # the compiler's time is not that of a race
        policy = ALGORITHMS[algorithm](instance_of(case.instance, data).problem("max"), 0.5)
        assert isinstance(policy, MFLUCB)
        run_lucb(policy, instance_of(case.instance, data), np.random.default_rng(0), max_pulls=100)
    found = []
    for repeat in range(start, stop):
        rng = np.random.default_rng([seed, number, list(ALGORITHMS).index(algorithm), repeat])
        began = time.process_time()
        result = _race(case, algorithm, data, resolution, rng)
        seconds = time.process_time() - began
        found.append((result.cost, result.certified, result.arm != best, seconds))
    return found


def measure(case: Case, algorithm: str, figures: Sequence[Figures], data: Path) -> Row:
    """The row of a table."""
    costs = np.array([figure[0] for figure in figures])
    spread = float(costs.std(ddof=1)) if len(costs) > 1 else math.nan
    old, tight = _bounds(case.instance, data, case.delta)
    return {
        "instance": case.instance,
        "delta": case.delta,
        "algorithm": algorithm,
        "runs": len(figures),
        "cost": float(f"{costs.mean():.5g}"),
        "ci95": float(f"{1.96 * spread / math.sqrt(len(costs)):.3g}"),
        "over_theorem_1": round(float(costs.mean()) / old, 2),
        "over_tight": round(float(costs.mean()) / tight, 2),
        "errors": sum(figure[1] and figure[2] for figure in figures),
        "unfinished": sum(not figure[1] for figure in figures),
        "cpu_s": round(median(figure[3] for figure in figures), 4),
    }


def _holds(rows: Sequence[Row]) -> dict[str, bool]:
    """What must hold, of the rows that there are."""
    at = {(row["instance"], row["delta"], row["algorithm"]): row for row in rows}
    holds = {"every race ends with a certificate": not any(row["unfinished"] for row in rows)}
    # At most delta in expectation; two standard deviations are chance.
    holds["no more errors than delta allows"] = all(
        row["errors"] <= row["runs"] * row["delta"] + 2.0 * math.sqrt(row["runs"] * row["delta"])
        for row in rows
    )
    for instance, most in (("bai_5x2", 600.0), ("bai_4x5", 95.0)):
        if row := at.get((instance, 0.01, "MF-GRAD")):
            holds[f"MF-GRAD costs at most {most:.0f} on {instance}"] = row["cost"] <= most
    for case in CASES:
        row = at.get((case.instance, case.delta, "default"))
        if row and case.target is not None:
            words = f"the default costs at most {case.target:g} times C* on {case.instance}"
            holds[words] = row["over_tight"] <= case.target
    top20 = {name: row for (instance, _, name), row in at.items() if instance.endswith("_top20")}
    if {"default", "IISE", "MF-GRAD"} <= set(top20):
        better = min(top20["IISE"]["cost"], top20["MF-GRAD"]["cost"])
        holds["the default costs at most 1.2 times the better of IISE and MF-GRAD on the 20"] = (
            top20["default"]["cost"] <= 1.2 * better
        )
    return holds


_HEADER = (
    f"{'instance':<18} {'delta':>6} {'algorithm':<19} {'runs':>4} {'cost':>11} {'95 %':>9} "
    f"{'/ Thm 1':>8} {'/ C*':>7} {'errors':>6} {'CPU s':>8}"
)


def _line(row: Row) -> str:
    ending = f"   {row['unfinished']} never ended" if row["unfinished"] else ""
    return (
        f"{row['instance']:<18} {row['delta']:>6g} {row['algorithm']:<19} {row['runs']:>4} "
        f"{row['cost']:>11.6g} {row['ci95']:>9.3g} {row['over_theorem_1']:>8.2f} "
        f"{row['over_tight']:>7.2f} {row['errors']:>6} {row['cpu_s']:>8.4f}{ending}"
    )


def _picture(rows: Sequence[Row]) -> Any:
    """Costs over the tight bound, a panel for each instance and delta."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    panels = list(dict.fromkeys((row["instance"], row["delta"]) for row in rows))
    figure = make_subplots(
        rows=1,
        cols=len(panels),
        subplot_titles=[f"{instance}<br>delta {delta:g}" for instance, delta in panels],
        shared_yaxes=True,
    )
    for column, panel in enumerate(panels, 1):
        chosen = [row for row in rows if (row["instance"], row["delta"]) == panel]
        figure.add_trace(
            go.Bar(
                y=[row["algorithm"] for row in chosen],
                x=[row["over_tight"] for row in chosen],
                orientation="h",
                text=[f"{row['over_tight']:.3g}" for row in chosen],
                marker_color=[
                    "#d55e00" if row["algorithm"] == "default" else "#0072b2" for row in chosen
                ],
                showlegend=False,
            ),
            row=1,
            col=column,
        )
        figure.update_xaxes(type="log", row=1, col=column)
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(
        template="plotly_white", height=420, title="Cost of a certificate over its lower bound C*"
    )
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    started = time.perf_counter()
    names = list(dict.fromkeys(case.instance for case in CASES))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.mf_grad", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the instances (*.npz)")
    parser.add_argument("--instances", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument(
        "--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="NAME"
    )
    parser.add_argument("--runs", type=int, default=500, help="races of each (default: 500)")
    parser.add_argument("--resolution", type=float, default=0.02, help="default: 0.02")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    if options.runs < 2 or options.workers < 1:
        parser.error("--runs must be at least 2 and --workers at least 1.")
    for name in options.instances:
        file = options.data / f"{name.removesuffix('_top20')}.npz"
        if not file.is_file():
            parser.error(f"{file} is missing: --data must be the folder of the instances; {HOW}.")

    plan = []
    for number, case in enumerate(CASES):
        runs = max(2, round(case.share * options.runs))
        for algorithm in options.algorithms:
            if case.instance in options.instances and algorithm not in case.left_out:
                plan.append((number, case, algorithm, runs))
    rows = []
    print(_HEADER, flush=True)
    with ProcessPoolExecutor(options.workers) as pool:
        futures = []
        for number, case, algorithm, runs in plan:
            step = 1 if case.large else 25
            tasks = [
                (number, algorithm, options.data, options.resolution, options.seed, start,
                 min(start + step, runs))
                for start in range(0, runs, step)
            ]  # fmt: skip
            futures.append((case, algorithm, [pool.submit(_run, task) for task in tasks]))
        for case, algorithm, parts in futures:
            figures = [figure for part in parts for figure in part.result()]
            rows.append(measure(case, algorithm, figures, options.data))
            print(_line(rows[-1]), flush=True)
    holds = _holds(rows)
    print(verdict(holds), flush=True)
    seconds = round(time.perf_counter() - started, 1)
    progress(f"{seconds:.0f} s")
    if options.output:
        command = [f"--{name}={getattr(options, name)}" for name in ("runs", "resolution", "seed")]
        report = provenance("benchmarks.papers.mf_grad", ["--data=FOLDER", *command], "numba") | {
            "seconds": seconds,
            "holds": holds,
            "rows": rows,
        }
        write(options.output, as_json(report))
    if options.figure:
        write(options.figure, _picture(rows).to_html(include_plotlyjs="cdn"))
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
