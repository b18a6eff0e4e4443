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

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.hpo.certainty_answers import Outcome, Race
from benchmarks.hpo.certainty_biases import pool_figures
from benchmarks.hpo.certainty_contenders import CONTENDERS, play
from benchmarks.hpo.certainty_picture import picture
from benchmarks.hpo.certainty_pools import bounds_elsewhere, kept_pool
from benchmarks.hpo.certainty_settings import SETTINGS, Setting
from benchmarks.hpo.certainty_summary import Row, holds, in_words, markdown, summary
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, numba_if_installed, progress, verdict, write

# All settings but the first, and slow contenders, have this share of the seeds.
_LATER_SHARE = 3


@dataclass(frozen=True)
class _Job:
    """One pool, played by all."""

    setting: Setting
    task: str
    seed: int
    contenders: tuple[str, ...]


def _outcomes(arms: int, data: Path, job: _Job) -> list[Outcome]:
    setting = job.setting
    race = Race(
        kept_pool(job.task, setting.levels, arms, job.seed, data),
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
    check_surrogates(parser, options.data, ("lcbench", "rbv2_xgboost"))
    return options


if __name__ == "__main__":
    sys.exit(main())
