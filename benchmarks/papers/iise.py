"""Table 1 of Multi-Fidelity Best-Arm Identification (NeurIPS 2022): what SE, IISE, IISE-gamma and
MFE cost.

    python -m benchmarks.papers.iise --data FOLDER --runs 100 --json

FOLDER holds the published instances: synthetic_a.npz, synthetic_b.npz, yahtzee.npz. The algorithms
run as published: radius sqrt(2 v ln(4 t^2 / d) / t), no audit of the bias bounds, no preselection
of fidelities. A figure is the mean of the per-run ratios to independent SE runs, in percent; each
run has ten SE runs of its own, which leaves what is estimated and makes the estimate steadier.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.data.folder import HOW
from benchmarks.provenance import provenance
from benchmarks.report import progress
from benchmarks.simulation.blocks import run_rounds
from benchmarks.simulation.instances import GaussianInstance, Instance
from mfhpo.identification.elimination import IISE, LevelByLevel
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import HoeffdingRadius
from mfhpo.racing.race import Race

# The paper's instances.

# Yahtzee's noise: its standard deviation, beyond what it is cut off, and from which size on a sum
# of it is drawn at once instead of one by one.
_SD, _CUT, _LARGE_SUM = 0.05, 0.08, 32
# Moments of a standard normal variable within [-c, c], by partial integration.
_C = _CUT / _SD
_LOW = float(ndtr(-_C))
_SPAN = float(ndtr(_C)) - _LOW
_EDGE = math.exp(-_C * _C / 2.0) / math.sqrt(2.0 * math.pi) * 2.0 / _SPAN
_SECOND = 1.0 - _C * _EDGE
_SCALE = _SD * math.sqrt(_SECOND)
_EXCESS_KURTOSIS = (3.0 * _SECOND - _C**3 * _EDGE) / _SECOND**2 - 3.0


class TruncatedNormalInstance(Instance):
    """The mean plus normal noise of standard deviation .05 that is cut off beyond .08 (Yahtzee).

    Sums of fewer than 32 observations are drawn exactly. Larger ones are drawn as a normal variable
    with the sum's mean, variance and kurtosis (the first Cornish-Fisher term; the noise has no
    skewness): the distribution function is wrong by less than 1e-5.
    """

    def _increments(
        self, rng: np.random.Generator, arms: IntArray, fidelity: int, sizes: IntArray
    ) -> FloatArray:
        large = sizes >= _LARGE_SUM
        result = np.empty((len(arms), len(sizes)))
        means = self.means[fidelity, arms][:, None]
        if not large.all():
            small = sizes[~large]
            values = rng.random((len(arms), int(small.sum())))
            values *= _SPAN
            values += _LOW
            ndtri(values, out=values)
            values *= _SD
            values += means
            starts = np.concatenate(([0], np.cumsum(small)[:-1]))
            result[:, ~large] = np.add.reduceat(values, starts, axis=1)
        if large.any():
            counts = sizes[large]
            normal = rng.standard_normal((len(arms), len(counts)))
            normal += _EXCESS_KURTOSIS / (24.0 * counts) * (normal**3 - 3.0 * normal)
            result[:, large] = means * counts + _SCALE * np.sqrt(counts) * normal
        return result


def synthetic_a(rng: np.random.Generator, n_arms: int = 2000) -> GaussianInstance:
    """A fresh draw of the recipe of Synthetic A (Section 7 and appendix E).

    The published figures belong to one such draw (see `load_instance`): the costs follow the gap
    between the two best arms, which differs a lot from draw to draw.
    """
    return _synthetic(
        rng,
        n_arms,
        costs=(1.0, 10.0, 100.0, 1000.0),
        shifts=(1.0, 0.2, 0.01, 0.0),
        gamma=(0.3, 0.05, 0.001, 0.0),
    )


def synthetic_b(rng: np.random.Generator, n_arms: int = 1000) -> GaussianInstance:
    """A fresh draw of the recipe of Synthetic B; see `synthetic_a`."""
    return _synthetic(
        rng,
        n_arms,
        costs=(16.0, 64.0, 256.0, 1024.0, 4096.0),
        shifts=(1.0, 0.4, 0.1, 0.01, 0.0),
        gamma=(0.3, 0.1, 0.01, 0.001, 0.0),
    )


def _synthetic(
    rng: np.random.Generator,
    n_arms: int,
    costs: Sequence[float],
    shifts: Sequence[float],
    gamma: Sequence[float],
) -> GaussianInstance:
    """Lower means are the target's minus a shift, plus U(-gamma/2, gamma/2)."""
    targets = rng.standard_normal(n_arms)
    half = np.array(gamma)[:, None] / 2.0
    spread = half * rng.uniform(-1.0, 1.0, (len(costs), n_arms))
    means = targets - np.array(shifts)[:, None] + spread
    return GaussianInstance(
        means, costs, xi=np.array(shifts) + half[:, 0], gamma=gamma, variance=1.0
    )


def load_instance(
    path: Path, noise: Literal["gaussian", "truncated normal"] = "gaussian"
) -> GaussianInstance | TruncatedNormalInstance:
    """Read one of the instances that were published by Poiani et al. in 2022 and 2024.

    The file is a NumPy archive of means (M, K), costs (M,), variance, and perhaps xi and gamma
    (M,). Raises FileNotFoundError, which says where the files come from.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing, an instance of 'Multi-Fidelity Best-Arm Identification' (NeurIPS "
            f"2022) or its follow-up of 2024 that is not shipped: {HOW}."
        )
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    kind = GaussianInstance if noise == "gaussian" else TruncatedNormalInstance
    return kind(**arrays | {"variance": float(arrays["variance"])})


# The table.


@dataclass(frozen=True)
class Case:
    """One column of the table."""

    noise: Literal["gaussian", "truncated normal"]
    recipe: Callable[[np.random.Generator], Instance] | None
    mfe_fraction: float
    published: dict[str, tuple[float, float]]


INSTANCES = {
    "synthetic_a": Case(
        "gaussian",
        synthetic_a,
        0.1,
        {"IISE": (11.47, 0.31), "IISE-gamma": (2.53, 0.06), "MFE": (212.43, 3.89)},
    ),
    "synthetic_b": Case(
        "gaussian",
        synthetic_b,
        0.1,
        {"IISE": (27.06, 0.77), "IISE-gamma": (6.39, 0.17), "MFE": (3330.27, 62.59)},
    ),
    "yahtzee": Case(
        "truncated normal",
        None,
        0.005,
        {"IISE": (0.53, 0.01), "IISE-gamma": (0.001, 0.01), "MFE": (342.75, 0.69)},
    ),
}
ALGORITHMS = ("SE", "IISE", "IISE-gamma", "MFE")
_SE_RUNS_PER_RUN = 10


@dataclass(frozen=True)
class Figure:
    """What was measured of one algorithm on one instance.

    `percent` and `ci95` (half-width) are about the cost over SE's (SE's own are 100 and 0),
    `errors` counts runs with a wrong arm, `cpu_s` is the mean CPU time of a run.
    """

    percent: float
    ci95: float
    errors: int
    cpu_s: float


def published(instance: str, algorithm: str) -> tuple[float, float] | None:
    """Percent and 95 % half-width in the paper's Table 1, if it is there."""
    return INSTANCES[instance].published.get(algorithm)


def fresh_instance(name: str, seed: int) -> Instance:
    """Draw an instance from the paper's recipe."""
    recipe = INSTANCES[name].recipe
    if recipe is None:
        raise ValueError(
            f"{name} cannot be drawn from a recipe: its means come from simulated games; give the "
            f"folder with the published {name}.npz (--data)."
        )
    return recipe(np.random.default_rng([seed, list(INSTANCES).index(name)]))


def measure(
    instance: Instance,
    runs: int,
    *,
    delta: float = 1e-3,
    mfe_fraction: float = 0.1,
    resolution: float = 1e-3,
    seed: Sequence[int] = (0,),
    algorithms: Sequence[str] = ALGORITHMS,
) -> dict[str, Figure]:
    """Run the algorithms on an instance; SE is always run, for all others are relative to it."""

    def race(algorithm: str, count: int) -> tuple[FloatArray, int, float]:
        """Costs, number of wrong arms, and mean CPU time of some runs."""
        costs = np.empty(count)
        errors = 0
        started = time.process_time()
        for number in range(count):
            policy = policy_of(algorithm, instance, delta, mfe_fraction)
            rng = np.random.default_rng([*seed, ALGORITHMS.index(algorithm), number])
            result = run_rounds(policy, instance, rng, resolution=resolution)
            costs[number] = result.cost
            errors += result.arm != instance.best_arm
        return costs, errors, (time.process_time() - started) / count

    baseline, errors, cpu = race("SE", runs * _SE_RUNS_PER_RUN)
    progress(f"  SE: mean cost {baseline.mean():.4g}, {cpu:.3f} s per run")
    figures = {"SE": Figure(100.0, 0.0, errors, cpu)}
    share_of_one = (1.0 / baseline).reshape(runs, _SE_RUNS_PER_RUN).mean(axis=1)
    for algorithm in algorithms:
        if algorithm == "SE":
            continue
        costs, errors, cpu = race(algorithm, runs)
        percents = 100.0 * costs * share_of_one
        half = 1.96 * float(percents.std(ddof=1)) / math.sqrt(runs)
        figures[algorithm] = Figure(float(percents.mean()), half, errors, cpu)
        progress(f"  {algorithm}: mean cost {costs.mean():.4g}, {cpu:.3f} s per run")
    return figures


def policy_of(algorithm: str, instance: Instance, delta: float, mfe_fraction: float) -> Race:
    """One of `ALGORITHMS` as the paper has it."""
    problem = instance.problem("order" if algorithm == "IISE-gamma" else "max")
    radius = HoeffdingRadius(math.sqrt(instance.variance))
    if algorithm == "SE":
        return IISE(problem, variant="se", delta=delta, radius=radius)
    fraction = mfe_fraction if algorithm == "MFE" else None
    rule = LevelByLevel(problem, preselect=False, fraction=fraction)
    return Race(problem, rule, delta=delta, radius=radius, audit=False)


def _table(results: dict[str, dict[str, Figure]]) -> str:
    lines = [f"{'percent of the cost of SE':28}{'measured':>20}{'published':>20}  errors   CPU s"]
    for name, figures in results.items():
        for algorithm, figure in figures.items():
            paper = published(name, algorithm)
            lines.append(
                f"{name + ': ' + algorithm:28}{_interval(figure.percent, figure.ci95):>20}"
                f"{_interval(*paper) if paper else '':>20}{figure.errors:>8}{figure.cpu_s:>8.3f}"
            )
    return "\n".join(lines)


def _interval(value: float, half: float) -> str:
    digits = 2 if value >= 1.0 else 4
    return f"{value:.{digits}f} ± {half:.{digits}f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.iise",
        description="Table 1 of 'Multi-Fidelity Best-Arm Identification' (NeurIPS 2022).",
    )
    parser.add_argument("--data", type=Path, help="folder of the published instances (*.npz)")
    parser.add_argument("--runs", type=int, default=100, help="races per algorithm (default 100)")
    parser.add_argument(
        "--instances",
        nargs="+",
        choices=list(INSTANCES),
        help="which instances (default: all that there are)",
    )
    parser.add_argument(
        "--delta", type=float, default=1e-3, help="error probability (default .001)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--resolution",
        type=float,
        default=1e-3,
        help="check the rule at steps of this share of the rounds (default .001, 0: every round)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    if options.runs < 2:
        parser.error(f"--runs must be at least 2, for an interval; got {options.runs}.")
    names = options.instances or [
        name for name, case in INSTANCES.items() if options.data or case.recipe
    ]
    if not options.data:
        progress(
            "No --data: the instances are drawn afresh from the paper's recipe. The percentages "
            "vary with the gap between the two best arms, from draw to draw by a factor of ten "
            "and more, and the published ones belong to the published instances. Yahtzee has no "
            "recipe, it needs the published file."
        )
    results: dict[str, dict[str, Figure]] = {}
    try:
        for name in names:
            case = INSTANCES[name]
            instance: Instance
            if options.data:
                instance = load_instance(options.data / f"{name}.npz", case.noise)
            else:
                instance = fresh_instance(name, options.seed)
            target = np.sort(instance.means[-1])
            progress(f"{name}: {instance.n_arms} arms, top gap {target[-1] - target[-2]:.4g}")
            results[name] = measure(
                instance,
                options.runs,
                delta=options.delta,
                mfe_fraction=case.mfe_fraction,
                resolution=options.resolution,
                seed=(options.seed, list(INSTANCES).index(name)),
            )
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))
    text = json.dumps(
        {
            name: {algorithm: asdict(figure) for algorithm, figure in figures.items()}
            for name, figures in results.items()
        },
        indent=2,
    )
    if options.output:
        command = [f"--{name}={getattr(options, name)}" for name in ("runs", "delta", "seed")]
        report = provenance("benchmarks.papers.iise", ["--data=FOLDER", *command])
        report["results"] = json.loads(text)
        options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(text if options.json else _table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
