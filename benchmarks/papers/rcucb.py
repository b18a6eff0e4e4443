"""RCUCB: the tables and figures of Multi-Armed Bandits with Censored Consumption of Resources
(Machine Learning 2023, Sections 5.1 and F), with the bounds that were printed, those that were run,
and ours.

    python -m benchmarks.papers.rcucb --output rcucb.json --figure rcucb.html

In every round an arm and a limit are chosen; the reward is seen, and earned, if the arm takes no
longer. Regret is against always choosing the best pair. The instances, grids and charges are those
that give the published probabilities of being censored (see `benchmarks.papers.rcucb_instances`),
where these can be had from the printed parameters; on PosCorr they cannot.

- "KL+" is the default of `mfhpo.censored.RCUCB`. "KL" is wider where a pair was played often, and
  "Bernstein" everywhere.
- "printed" is the confidence length of the paper. Its figures were not made with it, but with
  "published curves": without the term of the penalty, which leaves no valid bound, and counting
  a censored pull as one that exceeds all longer limits too. "published curves, Kaplan-Meier" is
  the same without that count.
- UCB and TS are those of Appendix E.1.

"lock-in" is not of the paper: one arm on which that count cannot recover from a wrong estimate. A
run is locked in if in its second half it pays more than half of what always playing the wrong limit
would.

All methods meet the same luck: an arm's k-th pull yields the same whoever pulls it. CPU seconds are
those of the process, draws included, with the loops compiled before. The lower bound is what no
consistent method stays below in the long run (see `benchmarks.papers.rcucb_bound`); after few
rounds regret may well be smaller.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.papers.rcucb_cases import CASES, DEFAULT, METHODS, PUBLISHED_ROUNDS, problem
from benchmarks.papers.rcucb_runs import Row, Settings, rows, what_must_hold
from benchmarks.provenance import provenance
from benchmarks.report import as_json, html_page, numba_if_installed, progress, verdict, write

COLOURS = dict(
    zip(
        METHODS,
        ("#d1495b", "#edae49", "#8d6a9f", "#7f7f7f", "#30638e", "#66a1c9", "#2a9d8f", "#1b4332"),
        strict=True,
    )
)
_HEADER = (
    f"{'instance':<17} {'method':<31} {'runs':>4} {'regret':>9} ± {'se':<6} {'reference':>9} "
    f"{'bound':>7} {'censored':>8} ± {'se':<6} {'optimum':>7} {'published':>9} {'CPU s':>7}"
)


def _line(row: Row) -> str:
    reference = "" if row.reference_regret is None else f"{row.reference_regret:,.0f}"
    published = "" if row.published_censored is None else f"{row.published_censored:.4f}"
    locked = "" if row.locked_in is None else f"  locked in: {row.locked_in}"
    return (
        f"{row.case:<17} {row.method:<31} {row.repetitions:>4} {row.regret:>9,.0f} ± "
        f"{row.regret_se:<6,.0f} {reference:>9} {row.lower_bound:>7,.0f} {row.censored:>8.4f} ± "
        f"{row.censored_se:<6.4f} {row.censored_at_optimum:>7.4f} {published:>9} "
        f"{row.cpu_s:>7.3f}{locked}"
    )


def _picture(found: Sequence[Row]) -> Any:
    """Mean regret over the rounds, with its standard error as a band, and the lower bound."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for row in found:
        colour = COLOURS[row.method]
        low = [mean - error for mean, error in zip(row.curve, row.curve_se, strict=True)]
        high = [mean + error for mean, error in zip(row.curve, row.curve_se, strict=True)]
        figure.add_trace(
            go.Scatter(
                x=[*row.at, *reversed(row.at)],
                y=[float(f"{max(value, 1e-3):.4g}") for value in [*high, *reversed(low)]],
                fill="toself",
                fillcolor=colour,
                opacity=0.25,
                line={"width": 0},
                hoverinfo="skip",
                legendgroup=row.method,
                showlegend=False,
            )
        )
        figure.add_trace(
            go.Scatter(
                x=row.at,
                y=[float(f"{max(value, 1e-3):.4g}") for value in row.curve],
                name=row.method,
                legendgroup=row.method,
                line={"color": colour, "width": 3 if row.method == DEFAULT else 1.5},
            )
        )
    first = found[0]
    if first.lower_bound > 0.0:
        factor = first.lower_bound / math.log(first.rounds)
        figure.add_trace(
            go.Scatter(
                x=first.at,
                y=[float(f"{factor * math.log(at):.4g}") for at in first.at],
                name="lower bound",
                line={"color": "black", "dash": "dot"},
            )
        )
    figure.update_xaxes(title="round", tickformat="~s")
    figure.update_yaxes(title="mean regret", type="log", exponentformat="power")
    figure.update_layout(template="plotly_white", height=420, font={"size": 12})
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether everything holds."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.rcucb",
        description="Regret and censoring of RCUCB, UCB and TS on the paper's instances.",
    )
    parser.add_argument("--repetitions", type=int, default=100, help="default: 100")
    parser.add_argument("--rounds", type=int, default=PUBLISHED_ROUNDS, help="default: 100000")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(CASES),
        default=list(CASES),
        metavar="INSTANCE",
        help=f"some of: {'; '.join(CASES)}",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(METHODS),
        default=list(METHODS),
        metavar="METHOD",
        help=f"some of: {'; '.join(METHODS)}",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    least = {"repetitions": 2, "rounds": 2, "workers": 1, "seed": 0}
    for name, number in least.items():
        given = getattr(options, name)
        if given < number:
            parser.error(f"--{name} must be at least {number}, got {given}.")
    settings = Settings(
        repetitions=options.repetitions,
        rounds=options.rounds,
        cases=tuple(options.only),
        methods=tuple(options.methods),
        seed=options.seed,
        workers=options.workers,
    )

    print(_HEADER, flush=True)
    found = []
    for row in rows(settings):
        found.append(row)
        print(_line(row), flush=True)
        if row.method == settings.methods[-1]:
            progress(f"{row.case}: {time.perf_counter() - began:.0f} s")
    holds = what_must_hold(found)
    print(f"\n{verdict(holds)}", flush=True)

    if options.output:
        write(options.output, as_json(_report(settings, found, holds, time.perf_counter() - began)))
    if options.figure:
        pictures = {
            _heading(name): _picture([row for row in found if row.case == name])
            for name in settings.cases
        }
        write(options.figure, html_page("RCUCB: regret over time", pictures))
    return 0 if all(holds.values()) else 1


def _heading(name: str) -> str:
    limits = CASES[name].limits
    n_arms = problem(name)[0].n_arms
    return f"{name}: {n_arms} arm{'s' * (n_arms > 1)}, {len(limits)} limits to {limits[-1]:g}"


def _report(
    settings: Settings, found: Sequence[Row], holds: dict[str, bool], seconds: float
) -> dict[str, Any]:
    """What is written to the file."""
    command = [f"--{name}={getattr(settings, name)}" for name in ("repetitions", "rounds", "seed")]
    for option, chosen, everything in (
        ("--only", settings.cases, CASES),
        ("--methods", settings.methods, METHODS),
    ):
        if list(chosen) != list(everything):
            command.append(f"{option} {' '.join(map(repr, chosen))}")
    return provenance("benchmarks.papers.rcucb", command, *numba_if_installed()) | {
        "seconds": round(seconds, 1),
        "holds": holds,
        "rows": [without_curves(row) for row in found],
    }


def without_curves(row: Any) -> dict[str, Any]:
    """A row as a dictionary, without its curves, which are in the picture."""
    return {name: value for name, value in asdict(row).items() if name not in _CURVES}


_CURVES = ("at", "curve", "curve_se")


if __name__ == "__main__":
    sys.exit(main())
