"""What it costs to be sure of the best of 200 random configurations, and when fidelities help.

    python -m benchmarks.hpo.certainty --data FOLDER --output certainty.json --figure certainty.html

FOLDER holds lcbench/ and rbv2_xgboost/ of YAHPO Gym's surrogates (github.com/slds-lmu/yahpo_data).
In each race there are 200 fresh random configurations of one of 12 tasks and normal noise of
standard deviation sigma on the accuracy, which is in percent. Costs are in full evaluations. A race
ends when the choice is within epsilon of the best configuration of the pool, wrong with probability
at most .05, or has paid 20,000 (then it counts as unfinished). With epsilon = 0 nearly equal
configurations are never told apart. Two tolerances are tried: one standard deviation, below which
another seed makes more difference than another configuration; and one percent of accuracy, which
means the same to a user whatever the noise.

Bias bounds are "known" (the smallest that hold for the pool), "declared" (what the other tasks of
the same kind show, see `bounds_elsewhere`; they may not hold, and are audited), or "estimated" by
the policies' own pilot. IISE, MF-LUCB and MF-GRAD have max bounds, IISE-gamma and MFTopTwo order
bounds. sigma is declared. On LCBench trainings are kept and continued, whoever trains, so that
halving and the policies pay by the same rule; the policies choose as if each pull was paid from its
first epoch. On rbv2_xgboost a share of the data is trained from scratch. MF-GRAD follows MFTopTwo's
rule while more than 32 configurations are left; it takes part in the first setting only.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.hpo.certainty_races import (
    CONTENDERS,
    DELTA,
    Outcome,
    Pool,
    Race,
    bounds_elsewhere,
    draw_pool,
    play,
)
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.tasks import grouped
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, numba_if_installed, progress, verdict, write

__all__ = [
    "SETTINGS",
    "Setting",
    "holds",
    "in_words",
    "main",
    "markdown",
    "picture",
    "pool_figures",
    "summary",
]

Row = dict[str, Any]

_BASELINE = "SE, target only"
# All settings but the first, and slow contenders, have this share of the seeds.
_LATER_SHARE = 3


@dataclass(frozen=True)
class Setting:
    """Noise, tolerance and levels of some races.

    Parameters
    ----------
    sigma, epsilon
        In percent of accuracy.
    levels
        Levels of the fidelity; None for each problem's default.
    """

    sigma: float
    epsilon: float
    levels: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """In words."""
        levels = ""
        if self.levels is not None:
            levels = f", epochs {' '.join(f'{level:g}' for level in self.levels)}"
        return f"sigma {self.sigma:g}, epsilon {self.epsilon:g}{levels}"

    def tasks(self) -> list[str]:
        """The tasks that have these levels."""
        return [
            task for task in DEVELOPMENT_TASKS if self.levels is None or task.startswith("lcbench ")
        ]


SETTINGS = (
    Setting(0.5, 0.5),
    Setting(0.5, 0.5, (1.0, 3.0, 9.0, 27.0, 52.0)),
    Setting(0.5, 1.0),
    Setting(2.0, 2.0),
    Setting(2.0, 1.0),
)
"""The first one is the one that the others are variations of."""


@dataclass(frozen=True)
class _Job:
    """One pool, played by all."""

    setting: Setting
    task: str
    seed: int
    contenders: tuple[str, ...]


@cache
def _pool(task: str, levels: tuple[float, ...] | None, arms: int, seed: int, data: Path) -> Pool:
    return draw_pool(task, levels, arms, seed, data)


def _outcomes(arms: int, data: Path, job: _Job) -> list[Outcome]:
    setting = job.setting
    race = Race(
        _pool(job.task, setting.levels, arms, job.seed, data),
        setting.sigma,
        setting.epsilon,
        bounds_elsewhere(job.task, setting.levels, data),
        job.seed,
    )
    return [play(name, race) for name in job.contenders]


def _jobs(number: int, seeds: int, first_seed: int) -> list[_Job]:
    """What is to be played in a setting."""
    setting = SETTINGS[number]
    fewer = max(1, seeds // _LATER_SHARE)
    return [
        _Job(
            setting,
            task,
            first_seed + run,
            tuple(
                name
                for name, contender in CONTENDERS.items()
                if not contender.slow or (number == 0 and run < fewer)
            ),
        )
        for run in range(seeds if number == 0 else fewer)
        for task in setting.tasks()
    ]


def summary(setting: Setting, races: Sequence[Sequence[Outcome]]) -> list[Row]:
    """For each kind of tasks and each contender: what was paid, and what is wrong.

    Parameters
    ----------
    setting
        The setting of the races.
    races
        The outcomes of one race at a time.
    """
    rows = []
    for group, tasks in grouped(dict.fromkeys(race[0].task for race in races)).items():
        inside = [race for race in races if race[0].task in tasks]
        for name in CONTENDERS:
            pairs = [
                (outcome, next(other for other in race if other.contender == _BASELINE))
                for race in inside
                for outcome in race
                if outcome.contender == name
            ]
            if pairs:
                row = {"setting": setting.name, "tasks": group, "contender": name}
                rows.append(row | _figures(setting, pairs))
    return rows


def _figures(setting: Setting, pairs: Sequence[tuple[Outcome, Outcome]]) -> Row:
    outcomes = [outcome for outcome, _ in pairs]
    costs = np.array([outcome.cost for outcome in outcomes])
    ratios = costs / np.array([baseline.cost for _, baseline in pairs])
    regrets = np.array([outcome.regret for outcome in outcomes])
    scratch = [outcome.from_scratch for outcome in outcomes if outcome.from_scratch is not None]
    by_task = {
        task: [
            _rounded(np.median([o.cost for o in outcomes if o.task == task])),
            _rounded(np.mean([o.regret for o in outcomes if o.task == task])),
        ]
        for task in dict.fromkeys(outcome.task for outcome in outcomes)
    }
    return {
        "races": len(pairs),
        "cost": _rounded(np.median(costs)),
        "cost_quartiles": [_rounded(value) for value in np.quantile(costs, [0.25, 0.75])],
        "cost_from_scratch": _rounded(np.median(scratch)) if scratch else None,
        "over_se": _rounded(np.median(ratios)),
        "over_se_quartiles": [_rounded(value) for value in np.quantile(ratios, [0.25, 0.75])],
        "cheaper_than_se": int((ratios < 1.0).sum()),
        "regret": _rounded(regrets.mean()),
        "regret_largest": _rounded(regrets.max()),
        "beyond_epsilon": int((regrets > setting.epsilon).sum()),
        "certified": sum(outcome.certified for outcome in outcomes),
        "wrong": sum(outcome.wrong for outcome in outcomes),
        "unfinished": sum(outcome.unfinished for outcome in outcomes),
        "widened": sum(outcome.widened for outcome in outcomes),
        "median_cost_and_mean_regret_by_task": by_task,
    }


def _rounded(value: Any) -> float:
    return round(float(value), 3)


def pool_figures(setting: Setting, arms: int, seeds: Sequence[int], data: Path) -> list[Row]:
    """How biased the levels of each task are, and what bounds could do at best.

    "out by max bounds" is the share of the pool whose mean at a level plus the smallest max bound
    that holds is below the best mean at the target: what LUCB's rule could let go there without any
    noise. "out by order bounds" is the share that is behind the best at the level by more than the
    smallest order bound that holds: what IISE-gamma could let go. Medians over pools.
    """
    rows = []
    for task in setting.tasks():
        pools = [_pool(task, setting.levels, arms, seed, data) for seed in seeds]
        declared = bounds_elsewhere(task, setting.levels, data)
        found: dict[str, list[Any]] = {}
        for pool in pools:
            means, best = pool.means, pool.means[-1].max()
            biases = means - means[-1]
            xi, gamma = np.abs(biases).max(axis=1), np.ptp(biases, axis=1)
            behind = means.max(axis=1, keepdims=True) - means
            for name, value in {
                "xi": xi,
                "gamma": gamma,
                "out_by_max_bounds": (means + xi[:, None] < best).mean(axis=1),
                "out_by_order_bounds": (behind > gamma[:, None]).mean(axis=1),
                "within_epsilon": (best - means[-1] <= setting.epsilon).sum(),
            }.items():
                found.setdefault(name, []).append(value)
        hold = [declared.hold(pool.means) for pool in pools]
        rows.append(
            {
                "setting": setting.name,
                "task": task,
                **{
                    name: np.median(value, axis=0).round(3).tolist()
                    for name, value in found.items()
                },
                "declared_xi": declared.xi.round(2).tolist(),
                "declared_gamma": declared.gamma.round(2).tolist(),
                "pools": len(pools),
                "declared_xi_holds": sum(by_max for by_max, _ in hold),
                "declared_gamma_holds": sum(by_order for _, by_order in hold),
            }
        )
    return rows


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """What the figures must show, whichever way the comparison goes."""
    result = {}
    for source, words in (("known", "bounds that hold"), ("none", "no bounds at all")):
        chosen = [row for row in rows if CONTENDERS[row["contender"]].source == source]
        # A policy that keeps its promise has more wrong certificates once in ten thousand rows.
        failing = [
            f"{row['contender']} ({row['setting']}, {row['tasks']})"
            for row in chosen
            if row["wrong"] > binom.ppf(0.9999, row["certified"], DELTA)
        ]
        told = f"with {words}, no more wrong certificates than delta={DELTA:g} allows"
        result[f"{told}; but {', '.join(failing)}" if failing else told] = not failing
    return result


def markdown(rows: Sequence[Row], setting: str) -> str:
    """The rows of a setting as a table in Markdown."""
    chosen = [row for row in rows if row["setting"] == setting]
    groups = list(dict.fromkeys(row["tasks"] for row in chosen))
    at = {(row["contender"], row["tasks"]): row for row in chosen}
    header = ["who"]
    for group in groups:
        header += [f"{group}: cost (quartiles)", "/ SE", "regret, largest", "> epsilon", "wrong"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for name in dict.fromkeys(row["contender"] for row in chosen):
        cells = [name]
        for group in groups:
            cells += _cells(at[name, group]) if (name, group) in at else [""] * 5
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    low, high = row["cost_quartiles"]
    late = f", {row['unfinished']} unfinished" if row["unfinished"] else ""
    return [
        f"{row['cost']:.0f} ({low:.0f} to {high:.0f}){late}",
        f"{row['over_se']:.2f}",
        f"{row['regret']:.2f}, {row['regret_largest']:.1f}",
        f"{100.0 * row['beyond_epsilon'] / row['races']:.0f} %",
        f"{row['wrong']} of {row['certified']}" if row["certified"] else "",
    ]


def in_words(rows: Sequence[Row]) -> str:
    """When fidelities with bounds pay: sentences for each setting and kind of tasks.

    Who is cheaper is decided by the median of the ratios to SE's cost on the same pool.
    """
    lines = []
    for setting, group in dict.fromkeys((row["setting"], row["tasks"]) for row in rows):
        chosen = {
            row["contender"]: row
            for row in rows
            if (row["setting"], row["tasks"]) == (setting, group)
        }
        alone = min(
            (row for name, row in chosen.items() if name.endswith("target only")),
            key=lambda row: float(row["over_se"]),
        )
        parts = [
            f"{setting}, {group}: at the target level alone "
            f"{alone['contender'].partition(',')[0]} is cheapest, {_price(alone)}, "
            f"SE pays {chosen[_BASELINE]['cost']:.0f}"
        ]
        for source in ("known", "declared", "estimated"):
            cheaper = [
                f"{CONTENDERS[name].rule} {_price(row)}"
                for name, row in chosen.items()
                if CONTENDERS[name].source == source and row["over_se"] < alone["over_se"]
            ]
            parts.append(f"cheaper with bounds {source}: {', '.join(cheaper) or 'nobody'}")
        halving = chosen["successive halving"]
        parts.append(
            f"halving pays {halving['cost']:.0f} and is {halving['regret']:.1f} percent off on "
            f"average, {halving['regret_largest']:.1f} at worst"
        )
        lines.append("; ".join(parts) + ".")
    return "\n".join(lines)


def _price(row: Row) -> str:
    wrong = f", {row['wrong']} of {row['certified']} wrong" if row["wrong"] else ""
    return f"{row['over_se']:.2f} of SE's cost ({row['cost']:.0f}{wrong})"


_COLOURS = {
    "halving": "#000000",
    "shortlist": "#009e73",
    "once": "#999999",
    "SE": "#0072b2",
    "IISE": "#56b4e9",
    "IISE-gamma": "#cc79a7",
    "MF-LUCB": "#d55e00",
    "MF-GRAD": "#e69f00",
    "MFTopTwo": "#8b4513",
}
_SYMBOLS = {"none": "circle", "known": "star", "declared": "diamond", "estimated": "x"}


def picture(rows: Sequence[Row]) -> Any:
    """Cost against regret; a row of panels for each setting, a column for each kind of tasks."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    settings = list(dict.fromkeys(row["setting"] for row in rows))
    groups = list(dict.fromkeys(row["tasks"] for row in rows))
    figure = make_subplots(
        rows=len(settings),
        cols=len(groups),
        subplot_titles=[
            f"{group}: {setting}"
            if any((row["setting"], row["tasks"]) == (setting, group) for row in rows)
            else ""
            for setting in settings
            for group in groups
        ],
        vertical_spacing=0.25 / len(settings),
    )
    shown: set[str] = set()
    for row in rows:
        contender = CONTENDERS[row["contender"]]
        figure.add_trace(
            go.Scatter(
                x=[row["cost"]],
                y=[row["regret"]],
                error_x={
                    "array": [row["cost_quartiles"][1] - row["cost"]],
                    "arrayminus": [row["cost"] - row["cost_quartiles"][0]],
                    "thickness": 1,
                },
                name=row["contender"],
                legendgroup=row["contender"],
                showlegend=row["contender"] not in shown,
                mode="markers",
                marker={
                    "color": _COLOURS[contender.rule],
                    "symbol": _SYMBOLS[contender.source],
                    "size": 10,
                },
                hovertext=f"largest regret {row['regret_largest']:g}, {row['wrong']} wrong of "
                f"{row['certified']} certificates",
            ),
            row=settings.index(row["setting"]) + 1,
            col=groups.index(row["tasks"]) + 1,
        )
        shown.add(row["contender"])
    figure.update_xaxes(type="log", title_text="cost in full evaluations: median, quartiles")
    figure.update_yaxes(title_text="regret in %, mean", rangemode="tozero")
    figure.update_layout(
        template="plotly_white",
        height=420 * len(settings),
        title="The best of 200 random configurations: what answers cost, and how far off they are",
    )
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    began = time.process_time()
    options = _options(arguments)
    rows: list[Row] = []
    pools: list[Row] = []
    for number in options.settings:
        setting = SETTINGS[number]
        jobs = _jobs(number, options.seeds, options.seed)
        races = list(
            mapped(partial(_outcomes, options.arms, options.data), jobs, workers=options.workers)
        )
        rows += summary(setting, races)
        if number < 2:  # the others have the same pools
            seeds = sorted({job.seed for job in jobs})
            pools += pool_figures(setting, options.arms, seeds, options.data)
        progress(f"{setting.name}: {len(jobs)} races, {time.process_time() - began:.0f} s in all")
        print(f"\n{setting.name}\n\n{markdown(rows, setting.name)}", flush=True)
    checked = holds(rows)
    print(f"\n{in_words(rows)}\n\n{verdict(checked)}", flush=True)
    if options.output:
        command = [
            "--data=FOLDER",
            *(f"--{name}={getattr(options, name)}" for name in ("arms", "seeds", "seed")),
            *([] if options.settings == list(range(len(SETTINGS))) else
              ["--settings", *map(str, options.settings)]),
        ]  # fmt: skip
        packages = ["onnxruntime", *numba_if_installed()]
        report = provenance("benchmarks.hpo.certainty", command, *packages) | {
            "unit": "costs in full evaluations, the rest in percent of accuracy",
            "cpu_seconds": round(time.process_time() - began),
            "holds": checked,
            "pools": pools,
            "rows": rows,
        }
        write(options.output, as_json(report))
    if options.figure:
        write(options.figure, picture(rows).to_html(include_plotlyjs="cdn"))
    return 0 if all(checked.values()) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo.certainty", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="YAHPO's folder")
    parser.add_argument("--arms", type=int, default=200, help="configurations (default: 200)")
    parser.add_argument(
        "--seeds",
        type=int,
        default=10,
        help="pools of each task in the first setting; a third of it elsewhere (default: 10)",
    )
    parser.add_argument(
        "--settings",
        type=int,
        nargs="+",
        choices=range(len(SETTINGS)),
        default=list(range(len(SETTINGS))),
        metavar="NUMBER",
        help="; ".join(f"{number}: {setting.name}" for number, setting in enumerate(SETTINGS)),
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    for name, least in (("arms", 2), ("seeds", 1), ("seed", 0), ("workers", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}, got {getattr(options, name)}.")
    for name in ("lcbench", "rbv2_xgboost"):
        file = options.data / name / "model.onnx"
        if not file.is_file():
            parser.error(f"{file} is missing: --data must be the folder of the surrogates.")
    return options


if __name__ == "__main__":
    sys.exit(main())
