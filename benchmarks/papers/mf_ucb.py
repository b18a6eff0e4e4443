"""MF-UCB (The Multi-fidelity Multi-armed Bandit, NeurIPS 2016) and reward by elimination
(Multi-Fidelity Multi-Armed Bandits Revisited, NeurIPS 2023, Algorithm 3).

    python -m benchmarks.papers.mf_ucb --runs 20 --output results.json --figure results.html

Three questions:

- What is MF-UCB's regret over that of UCB, on the four instances of the first paper's Appendix C?
  It shows pictures only; beside our figures stand those of an independent implementation. UCB is
  the same policy on the target alone. Both are run on the same instance, drawn afresh in each run:
  lower means uniform within zeta of the target's; in the Gaussian instances those of the best arm
  at the lower end, which is our reading of "lower than the corresponding mean of a suboptimal arm".
  What is printed there as M = 500, 500, 200 and 1000 is K.
- With what power of the budget does Algorithm 3's worst regret grow (Theorem 4.8: 2/3), and how
  much does a decade of the budget add where the gap is fixed (Theorem 4.6: always the same)?
- How long do a million plays of MF-UCB take: when every step looks at all arms, when it looks at
  candidates only, and when that is compiled by numba? The plays are the same.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.mf_ucb_regret import (
    FIXED_GAP,
    INSTANCES,
    NUMBERS_OF_ARMS,
    Exponent,
    Ratio,
    exponents,
    ratios,
)
from benchmarks.papers.mf_ucb_speed import speeds
from benchmarks.provenance import provenance
from benchmarks.report import as_json, numba_if_installed, progress, write


def _figure(found: Sequence[Ratio], grown: Sequence[Exponent]) -> Any:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    numbers = sorted({row.instance for row in found})
    titles = [f"instance {number}: {_described(number)}" for number in numbers]
    titles += ["elimination: worst gap", f"elimination: gap {FIXED_GAP:g}"]
    columns = 3
    rows = math.ceil(len(titles) / columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=titles,
        horizontal_spacing=0.07,
        vertical_spacing=0.14,
    )
    places = [(place // columns + 1, place % columns + 1) for place in range(len(titles))]
    for number, (row, column) in zip(numbers, places, strict=False):
        mine = [each for each in found if each.instance == number]
        for name, colour in (("MF-UCB", "#d1495b"), ("UCB", "#30638e")):
            figure.add_trace(
                go.Scatter(
                    x=[each.capital for each in mine],
                    y=[float(f"{getattr(each, _KEYS[name]):.5g}") for each in mine],
                    name=name,
                    legendgroup=name,
                    showlegend=number == numbers[0],
                    mode="lines+markers",
                    line={"color": colour},
                ),
                row=row,
                col=column,
            )
        figure.update_xaxes(title="capital", type="log", row=row, col=column)
        figure.update_yaxes(title="regret (000, Eq. 1)", type="log", row=row, col=column)
    shades = ("#9ecae1", "#4292c6", "#08519c")
    for (row, column), key in zip(places[len(numbers) :], ("worst", "fixed"), strict=True):
        for each, colour in zip(grown, shades, strict=False):
            name = f"K = {each.n_arms}"
            if key == "worst":
                name += f": exponent {each.exponent:.3f}"
            figure.add_trace(
                go.Scatter(
                    x=each.budgets,
                    y=[float(f"{value:.5g}") for value in getattr(each, key)],
                    name=name,
                    showlegend=key == "worst",
                    mode="lines+markers",
                    line={"color": colour},
                ),
                row=row,
                col=column,
            )
        scale = "log" if key == "worst" else "linear"
        figure.update_xaxes(title="budget", type="log", row=row, col=column)
        figure.update_yaxes(title="regret (002, Eq. 9)", type=scale, row=row, col=column)
    figure.update_xaxes(tickformat="~s", exponentformat="power", dtick=1)
    figure.update_layout(template="plotly_white", height=380 * rows, font={"size": 12})
    return figure


_KEYS = {"MF-UCB": "mf_ucb", "UCB": "ucb"}


def _described(number: int) -> str:
    case = INSTANCES[number]
    n_arms = len(case.targets(np.random.default_rng(0)))
    noise = "Bernoulli" if case.sd is None else "Gaussian"
    costs = ", ".join(f"{cost:g}" for cost in case.costs)
    return f"{noise}, K = {n_arms}, costs {costs}"


def _ratio_line(row: Ratio) -> str:
    reference = "" if row.reference is None else f"{row.reference:.3f}"
    return (
        f"{row.instance:>8} {row.capital:>10.0e} {row.mf_ucb:>12.4g} {row.ucb:>12.4g} "
        f"{row.ratio:>8.3f} ± {row.sd:<6.3f} {reference:>10}"
    )


_RATIO_HEADER = (
    f"{'instance':>8} {'capital':>10} {'MF-UCB':>12} {'UCB':>12} {'ratio':>8} ± {'sd':<6} "
    f"{'reference':>10}"
)


def _exponent_line(row: Exponent) -> str:
    return (
        f"{row.n_arms:>8} {row.exponent:>10.3f} {min(row.scaled):>10.2f} to {max(row.scaled):<6.2f}"
        f" {row.per_decade:>12.4g}"
    )


_EXPONENT_HEADER = f"{'arms':>8} {'exponent':>10} {'scaled worst regret':>20} {'per decade':>12}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether the exponents are between .64 and .70."""
    started = time.perf_counter()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.mf_ucb",
        description="Regret of MF-UCB and of elimination for reward, and how fast they play.",
    )
    parser.add_argument("--runs", type=int, default=20, help="per instance (default: 20)")
    parser.add_argument(
        "--instances", type=int, nargs="+", choices=list(INSTANCES), default=list(INSTANCES)
    )
    parser.add_argument("--capital-max", type=float, default=1e8, help="default: 1e8")
    parser.add_argument("--gaps", type=int, default=30, help="of Algorithm 3 (default: 30)")
    parser.add_argument("--seeds", type=int, default=200, help="of Algorithm 3 (default: 200)")
    parser.add_argument("--budget-max", type=float, default=1e10, help="default: 1e10")
    parser.add_argument("--repeats", type=int, default=3, help="of what is timed (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--quick", action="store_true", help="a look at it, in about a minute")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    if options.quick:
        options.runs, options.capital_max, options.repeats = 3, 1e6, 1
        options.gaps, options.seeds, options.budget_max = 10, 20, 1e8
    if options.runs < 2:
        parser.error(f"--runs must be at least 2, for a spread; got {options.runs}.")
    if options.budget_max < 1e6:
        parser.error(f"--budget-max must be at least 1e6, for a slope; got {options.budget_max:g}.")
    for name in ("gaps", "seeds", "repeats", "workers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}.")

    print(_RATIO_HEADER, flush=True)
    found = []
    for ratio in ratios(
        options.instances,
        options.runs,
        options.capital_max,
        seed=options.seed,
        workers=options.workers,
    ):
        found.append(ratio)
        print(_ratio_line(ratio), flush=True)
    progress(f"ratios: {time.perf_counter() - started:.0f} s")

    print(f"\n{_EXPONENT_HEADER}", flush=True)
    grown = []
    budgets = [10.0**power for power in range(5, round(math.log10(options.budget_max)) + 1)]
    for exponent in exponents(
        NUMBERS_OF_ARMS,
        budgets,
        options.gaps,
        options.seeds,
        seed=options.seed,
        workers=options.workers,
    ):
        grown.append(exponent)
        print(_exponent_line(exponent), flush=True)
    progress(f"exponents: {time.perf_counter() - started:.0f} s")

    print(f"\n{'instance':>8} {'method':<16} {'s per 1e6':>10}   same plays", flush=True)
    timed = []
    for speed in speeds(options.instances, options.repeats, seed=options.seed):
        timed.append(speed)
        print(
            f"{speed.instance:>8} {speed.method:<16} {speed.seconds:>10.2f}   {speed.same_plays}",
            flush=True,
        )
    seconds = time.perf_counter() - started
    progress(f"all: {seconds:.0f} s")

    if options.output:
        names = ("runs", "capital_max", "gaps", "seeds", "budget_max", "repeats", "seed")
        command = [f"--{name.replace('_', '-')}={getattr(options, name):g}" for name in names]
        command.append(f"--instances {' '.join(map(str, options.instances))}")
        report = provenance("benchmarks.papers.mf_ucb", command, *numba_if_installed()) | {
            "seconds": round(seconds, 1),
            "ratios": [asdict(row) for row in found],
            "exponents": [asdict(row) for row in grown],
            "speeds": [asdict(row) for row in timed],
        }
        write(options.output, as_json(report))
    if options.figure:
        write(options.figure, _figure(found, grown).to_html(include_plotlyjs="cdn"))
    return 0 if all(0.64 <= row.exponent <= 0.70 for row in grown) else 1


if __name__ == "__main__":
    sys.exit(main())
