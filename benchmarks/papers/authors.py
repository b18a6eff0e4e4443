"""The authors' programs of two papers beside ours, on the same instances: cost and time.

    git clone https://github.com/riccardopoiani/mf-bai PROGRAMS/mf-bai
    git clone https://github.com/riccardopoiani/adv-mf-bai PROGRAMS/adv-mf-bai
    cp -n PROGRAMS/mf-bai/utils/math.py PROGRAMS/adv-mf-bai/utils/
    python -m benchmarks.papers.authors --programs PROGRAMS --python PYTHON

PYTHON is one in which the programs run: with numpy, pyyaml, joblib, scipy, matplotlib, pandas,
seaborn and cvxpy. Instances are read from the programs' own configurations, so that both sides have
the same. Theirs are run as their README says, on one process; what they write about cost and right
answers is read. Seconds are CPU time of a race; theirs include the start of the program. A program
that is not in the folder is left out, and named. The file that is written holds all rows so far,
whenever it is interrupted; an earlier file is replaced.
"""

import argparse
import math
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from benchmarks.data.instances import instance_of, read_yaml
from benchmarks.papers.iise import policy_of
from benchmarks.papers.mf_grad import ALGORITHMS as OF_2024
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from benchmarks.simulation.blocks import run_rounds
from benchmarks.simulation.instances import GaussianInstance
from benchmarks.simulation.runner import run

_MFE_FRACTION = 0.1  # of the bias, as on the published synthetic instances


@dataclass(frozen=True)
class Race:
    """One algorithm on one instance, as a program of the authors has it.

    Parameters
    ----------
    program
        Folder of the clone.
    instance, algorithm
        In our words.
    delta
        Error probability, the paper's.
    theirs
        Their name of the algorithm.
    configurations
        Files of the instance; the first is given to their program.
    options
        Others of their command line.
    """

    program: str
    instance: str
    algorithm: str
    delta: float
    theirs: str
    configurations: tuple[str, ...]
    options: tuple[str, ...] = ()


def _synthetic(number: int, *kinds: str) -> tuple[str, ...]:
    folder = "configs/simulation/ablation"
    return tuple(f"{folder}/setting_{number}_Gaussian_{kind}.yml" for kind in kinds)


RACES = (
    *(
        Race("mf-bai", f"synthetic_{letter}", algorithm, 1e-3, theirs, configurations, options)
        for number, letter in ((1, "a"), (2, "b"))
        for algorithm, theirs, configurations, options in (
            ("SE", "SuccessiveElimination", _synthetic(number, "maxbound"), ()),
            ("IISE", "MFSuccessiveEliminationMaxBound", _synthetic(number, "maxbound"), ()),
            (
                "IISE-gamma",
                "MFSuccessiveEliminationOrder",
                _synthetic(number, "order", "maxbound"),
                (),
            ),
            (
                "MFE",
                "MFSuccessiveEliminationMaxBoundDiscardAll",
                _synthetic(number, "maxbound"),
                ("--discard-all-th", str(_MFE_FRACTION)),
            ),
        )
    ),
    *(
        Race("adv-mf-bai", f"bai_{size}", algorithm, 1e-2, theirs, (file,), options)
        for size, file in (("5x2", "configs/cfg5x2.yml"), ("4x5", "configs/cfg4x5.yml"))
        for algorithm, theirs, options in (
            ("IISE", "IISE", ()),
            ("MF-GRAD, published", "MF-GRAD", ("--algo-cfg", "configs/grad/grad_cfg_2.yml")),
        )
    ),
)
_INSTANCES = tuple(dict.fromkeys(race.instance for race in RACES))
_ALGORITHMS = tuple(dict.fromkeys(race.algorithm for race in RACES))


@dataclass(frozen=True)
class Figures:
    """Mean cost with the half-width of its 95 % interval, right answers, CPU seconds of a race."""

    cost: float
    ci95: float
    right_percent: float
    seconds: float


def theirs(race: Race, programs: Path, python: Path, runs: int) -> Figures:
    """Run the authors' program.

    Raises
    ------
    OSError
        If it fails; the message is the last line that it says.
    """
    with tempfile.TemporaryDirectory() as out:
        folder, file = {
            "mf-bai": ("--dump-dir", "config.yml"),
            "adv-mf-bai": ("--results-dir", "run_specs.yml"),
        }[race.program]
        command = [
            *(str(python), "run.py", "--algo", race.theirs, "--env-cfg", race.configurations[0]),
            *(folder, out, "--delta", str(race.delta), "--n-jobs", "1", "--n-runs", str(runs)),
            *race.options,
        ]
        before = _seconds_of_children()
        done = subprocess.run(
            command, cwd=programs / race.program, capture_output=True, text=True, check=False
        )
        seconds = (_seconds_of_children() - before) / runs
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            raise OSError(f"{race.program}, {race.theirs}: {said[-1]}")
        results = read_yaml(Path(out) / file)["results"]
    cost = results["cost_complexity"]
    # Theirs is 1.96 standard errors, with a variance that is divided by n, not by n - 1.
    half = float(cost["ci"]) / 1.96 * math.sqrt(runs / (runs - 1)) * _quantile(runs)
    return Figures(float(cost["mean"]), half, float(results["correctness"]), seconds)


def ours(race: Race, programs: Path, runs: int, seed: int) -> Figures:
    """Race on the same instance.

    In the program of 2024 the radius of IISE grows with the logarithm of the logarithm of all
    evaluations; ours is the default. All else follows the same rules.
    """
    found = instance_of(*(programs / race.program / file for file in race.configurations))
    instance = GaussianInstance(**found | {"variance": float(found["variance"])})
    costs, right = np.empty(runs), 0
    began = time.process_time()
    for number in range(runs):
        rng = np.random.default_rng([seed, RACES.index(race), number])
        if race.program == "mf-bai":
            elimination = policy_of(race.algorithm, instance, race.delta, _MFE_FRACTION)
            result = run_rounds(elimination, instance, rng)
        else:
            policy = OF_2024[race.algorithm](instance.problem("max"), race.delta)
            result = run(policy, instance, rng)
        costs[number] = result.cost
        right += result.arm == instance.best_arm
    seconds = (time.process_time() - began) / runs
    half = _quantile(runs) * float(costs.std(ddof=1)) / math.sqrt(runs)
    return Figures(float(costs.mean()), half, 100.0 * right / runs, seconds)


def _quantile(runs: int) -> float:
    """Standard errors in half of a 95 % interval of a mean."""
    return float(stdtrit(runs - 1, 0.975))


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_HEAD = (
    f"{'instance: algorithm':36}{'cost, theirs':>24}{'cost, ours':>24}"
    f"{'right, %':>14}{'s, theirs':>12}{'s, ours':>12}"
)


def _line(race: Race, of_authors: Figures, of_ours: Figures) -> str:
    costs = [f"{one.cost:.4g} ± {one.ci95:.2g}" for one in (of_authors, of_ours)]
    right = f"{of_authors.right_percent:.0f}, {of_ours.right_percent:.0f}"
    return (
        f"{race.instance + ': ' + race.algorithm:36}{costs[0]:>24}{costs[1]:>24}{right:>14}"
        f"{of_authors.seconds:>12.3f}{of_ours.seconds:>12.3f}"
    )


def _asked_for(options: argparse.Namespace) -> list[Race]:
    return [
        race
        for race in RACES
        if race.instance in options.instances and race.algorithm in options.algorithms
    ]


def _provenance(asked: Sequence[Race], options: argparse.Namespace) -> dict[str, object]:
    command = [
        "--programs=FOLDER",
        *("--instances", *dict.fromkeys(race.instance for race in asked)),
        *("--algorithms", *dict.fromkeys(shlex.quote(race.algorithm) for race in asked)),
        *(f"--runs={options.runs}", f"--seed={options.seed}"),
    ]
    return provenance("benchmarks.papers.authors", command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether any program was there, and none failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.authors", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--programs", type=Path, required=True, help="folder of the clones mf-bai and adv-mf-bai"
    )
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="that runs them (default: this)"
    )
    for name, values in (("instance", _INSTANCES), ("algorithm", _ALGORITHMS)):
        parser.add_argument(
            f"--{name}s", nargs="+", choices=values, default=values, help="default: all"
        )
    parser.add_argument("--runs", type=int, default=20, help="races of each (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of our races (default: 0)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    if options.runs < 2:
        parser.error(f"--runs must be at least 2, for an interval; got {options.runs}.")
    programs = options.programs.resolve()
    asked = _asked_for(options)
    there = {race.program: (programs / race.program / "run.py").is_file() for race in asked}
    for name in [name for name, found in there.items() if not found]:
        progress(f"{name} is left out: {programs / name / 'run.py'} is missing")
    rows, failed = [], not any(there.values())
    report = _provenance(asked, options)
    print(_HEAD, flush=True)
    for race in (race for race in asked if there[race.program]):
        try:
            of_authors = theirs(race, programs, options.python, options.runs)
        except OSError as error:
            failed = True
            progress(str(error))
            continue
        of_ours = ours(race, programs, options.runs, options.seed)
        print(_line(race, of_authors, of_ours), flush=True)
        named = {"program": race.program, "instance": race.instance, "algorithm": race.algorithm}
        rows.append(named | {"theirs": asdict(of_authors), "ours": asdict(of_ours)})
        if options.output:
            write(options.output, as_json(report | {"rows": rows}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
