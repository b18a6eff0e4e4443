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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, numba_if_installed, progress, write
from mfhpo import Bounded
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.regret import MFUCB, MFElimination
from mfhpo.simulation.instances import BernoulliInstance, GaussianInstance, Instance


@dataclass(frozen=True)
class Case:
    """One instance of Appendix C, and what an independent implementation found on it.

    `reference` is the mean of 3 to 5 runs of the regret of MF-UCB over that of UCB, by capital.
    """

    targets: Callable[[np.random.Generator], FloatArray]
    zeta: tuple[float, ...]
    costs: tuple[float, ...]
    sd: float | None
    capitals: tuple[float, float]
    reference: dict[float, float]


def _grid(low: float, high: float, count: int) -> Callable[[np.random.Generator], FloatArray]:
    return lambda _: np.linspace(low, high, count)


INSTANCES = {
    1: Case(
        _grid(1.0 / 501.0, 500.0 / 501.0, 500),
        (0.2, 0.1, 0.0),
        (1.0, 10.0, 1000.0),
        0.2,
        (1e5, 1e8),
        {5e5: 0.064, 1e6: 0.081, 1e7: 0.265, 1e8: 0.623},
    ),
    2: Case(
        lambda rng: rng.standard_normal(500),
        (1.0, 0.5, 0.2, 0.0),
        (1.0, 5.0, 20.0, 50.0),
        1.0,
        (1e4, 1e7),
        {1e5: 0.19, 1e6: 0.18, 1e7: 0.19},
    ),
    3: Case(
        _grid(0.1, 0.9, 200),
        (0.2, 0.0),
        (1.0, 10.0),
        None,
        (1e4, 5e6),
        {1e4: 0.56, 5e4: 0.45, 2e5: 0.73, 5e5: 0.99, 1e6: 1.08, 5e6: 1.07},
    ),
    4: Case(
        _grid(0.1, 0.9, 1000),
        (0.5, 0.2, 0.1, 0.05, 0.0),
        (1.0, 3.0, 10.0, 30.0, 100.0),
        None,
        (1e5, 1e7),
        {1e5: 0.62, 1e6: 0.44, 1e7: 0.39},
    ),
}
NUMBERS_OF_ARMS = (2, 10, 50)
_ELIMINATION_COSTS = (1.0, 4.0)
_FIXED_GAP = 0.2
# Capital of the plays that are timed, and of those of the naive rule, which is slow.
_TIMED = {1: (1e7, 2e5), 2: (1e7, 4e4), 3: (5e6, 2e5), 4: (1e7, 4e4)}


# Regret of MF-UCB over that of UCB.


@dataclass(frozen=True)
class Ratio:
    """Regrets (Eq. 1) at one capital: means over the runs, and the mean and spread of the ratio."""

    instance: int
    capital: float
    runs: int
    mf_ucb: float
    ucb: float
    ratio: float
    sd: float
    reference: float | None


def draw_instance(number: int, rng: np.random.Generator) -> Instance:
    """Draw one of the instances of Appendix C; see the module's docstring."""
    case = INSTANCES[number]
    targets = case.targets(rng)
    lower = [targets + zeta * rng.uniform(-1.0, 1.0, len(targets)) for zeta in case.zeta[:-1]]
    if case.sd is None:
        means = np.clip([*lower, targets], 0.0, 1.0)
        return BernoulliInstance(means, case.costs, xi=case.zeta)
    best = int(np.argmax(targets))
    for means, zeta in zip(lower, case.zeta, strict=False):
        means[best] = targets[best] - zeta
    return GaussianInstance([*lower, targets], case.costs, xi=case.zeta, variance=case.sd**2)


def target_alone(instance: Instance) -> Instance:
    """The instance without its cheap fidelities: MF-UCB is UCB there."""
    kind = BernoulliInstance if isinstance(instance, BernoulliInstance) else GaussianInstance
    return kind(instance.means[-1:], instance.costs[-1:], variance=instance.variance)


def regret_per_cost(policy: MFUCB | MFElimination, instance: Instance, capital: float) -> float:
    """Regret (Kandasamy et al. 2016, Eq. 1): a play earns its arm's target mean times its cost.

    Capital that is left over earns nothing. The oracle plays the best arm, at any fidelity.
    """
    targets = instance.means[-1]
    return float(capital * targets.max() - (policy.counts.astype(float) @ instance.costs) @ targets)


def regret_per_play(policy: MFUCB | MFElimination, instance: Instance, capital: float) -> float:
    """Regret (Wang et al. 2023, Eq. 9): a play earns its arm's target mean, whatever it cost.

    The oracle plays the best arm at the cheapest fidelity.
    """
    targets, plays = instance.means[-1], policy.counts.astype(float).sum(axis=1)
    return float(capital / instance.costs[0] * targets.max() - plays @ targets)


def _capitals(number: int, most: float) -> list[float]:
    """1, 2 and 5 times the powers of ten, in the range of the instance."""
    low, high = INSTANCES[number].capitals
    marks = [digit * 10.0**power for power in range(3, 10) for digit in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= min(high, most)]


def _regrets(task: tuple[int, int, int, tuple[float, ...]]) -> FloatArray:
    """Regrets of MF-UCB and of UCB in one run, shape (2, capitals)."""
    number, seed, run, capitals = task
    instance = draw_instance(number, np.random.default_rng([seed, number, run]))
    rows = []
    for place, each in enumerate((instance, target_alone(instance))):
        policy = MFUCB(each.problem())
        rng = np.random.default_rng([seed, number, run, place])
        row = []
        for capital in capitals:
            policy.play(partial(each.running_sums, rng), capital)
            row.append(regret_per_cost(policy, each, capital))
        rows.append(row)
    return np.array(rows)


def ratios(
    numbers: Sequence[int], runs: int, most: float, *, seed: int = 0, workers: int = 1
) -> Iterator[Ratio]:
    """Regret of MF-UCB over that of UCB, by instance and capital."""
    for number in numbers:
        capitals = tuple(_capitals(number, most))
        tasks = [(number, seed, run, capitals) for run in range(runs)]
        regrets = np.stack(list(mapped(_regrets, tasks, workers, _chunk(tasks, workers))))
        for place, capital in enumerate(capitals):
            ours, theirs = regrets[:, 0, place], regrets[:, 1, place]
            yield Ratio(
                instance=number,
                capital=capital,
                runs=runs,
                mf_ucb=float(ours.mean()),
                ucb=float(theirs.mean()),
                ratio=float((ours / theirs).mean()),
                sd=float((ours / theirs).std(ddof=1)),
                reference=INSTANCES[number].reference.get(capital),
            )


# How Algorithm 3's regret grows.


@dataclass(frozen=True)
class Exponent:
    """Regrets (Eq. 9) of Algorithm 3 with K arms, by budget.

    `worst` is the largest mean regret over the gaps, `exponent` the slope of its logarithm over
    that of the budget, `scaled` is worst / (K^(1/3) budget^(2/3)). `fixed` is the mean regret where
    the gap is .2, and `per_decade` what ten times the budget adds to it.
    """

    n_arms: int
    seeds: int
    budgets: list[float]
    worst: list[float]
    exponent: float
    scaled: list[float]
    fixed: list[float]
    per_decade: float


def _elimination_regret(task: tuple[int, int, float, float, int]) -> float:
    """Mean regret with one arm at .5 + gap and the others at .5."""
    seed, n_arms, budget, gap, seeds = task
    means = np.full((len(_ELIMINATION_COSTS), n_arms), 0.5)
    means[:, 0] += gap
    instance = BernoulliInstance(means, _ELIMINATION_COSTS)
    problem = instance.problem(kind=None, noise=Bounded(0.0, 1.0))
    rng = np.random.default_rng([seed, n_arms, round(math.log10(budget)), round(1e6 * gap)])
    total = 0.0
    for _ in range(seeds):
        policy = MFElimination(problem, budget=budget)
        policy.play(partial(instance.running_sums, rng), budget)
        total += regret_per_play(policy, instance, budget)
    return total / seeds


def exponents(
    numbers_of_arms: Sequence[int],
    budgets: Sequence[float],
    n_gaps: int,
    seeds: int,
    *,
    seed: int = 0,
    workers: int = 1,
) -> Iterator[Exponent]:
    """How Algorithm 3's regret grows with the budget, by number of arms."""
    gaps = [*np.geomspace(0.001, 0.5, n_gaps).tolist(), _FIXED_GAP]
    for n_arms in numbers_of_arms:
        tasks = [(seed, n_arms, budget, gap, seeds) for budget, gap in product(budgets, gaps)]
        regrets = np.array(
            list(mapped(_elimination_regret, tasks, workers, _chunk(tasks, workers)))
        )
        regrets = regrets.reshape(len(budgets), len(gaps))
        worst, fixed = regrets[:, :-1].max(axis=1), regrets[:, -1]
        logs = np.log10(budgets)
        yield Exponent(
            n_arms=n_arms,
            seeds=seeds,
            budgets=list(budgets),
            worst=worst.tolist(),
            exponent=float(np.polyfit(logs, np.log10(worst), 1)[0]),
            scaled=(worst / (n_arms ** (1 / 3) * np.array(budgets) ** (2 / 3))).tolist(),
            fixed=fixed.tolist(),
            per_decade=float(np.polyfit(logs, fixed, 1)[0]),
        )


# How long plays take.


@dataclass(frozen=True)
class Speed:
    """CPU seconds for a million plays: medians, scaled from `plays` plays.

    `same_plays` says whether it made the naive rule's plays, in their order.
    """

    instance: int
    method: str
    plays: int
    seconds: float
    same_plays: bool


def naive_plays(
    instance: Instance, rng: np.random.Generator, capital: float, rho: float = 2.0
) -> IntArray:
    """MF-UCB by its definition (Algorithm 1): every step looks at every arm and fidelity.

    Returns the plays, arm * M + fidelity. Draws as many values at once as `MFUCB.play` does, so
    that both see the same values.
    """
    n_arms, n_fidelities = instance.n_arms, instance.n_fidelities
    zeta, costs = instance.xi, instance.costs
    width = math.sqrt(instance.variance) * math.sqrt(2.0 * rho)
    gamma = zeta[:-1] * np.sqrt(costs[:-1] / costs[1:])
    counts = np.zeros((n_arms, n_fidelities), dtype=np.int64)
    centres = np.full((n_arms, n_fidelities), np.inf)
    slopes = np.zeros((n_arms, n_fidelities))
    drawn: dict[tuple[int, int], list[float]] = {}
    sums = np.zeros((n_arms, n_fidelities))
    plays: list[int] = []
    paid = 0.0
    while True:
        root = math.sqrt(math.log(len(plays) + 1))
        arm = int(np.argmax((centres + slopes * root).min(axis=1)))
        fidelity = n_fidelities - 1
        for m in range(n_fidelities - 1):
            if not counts[arm, m] or slopes[arm, m] * root >= gamma[m]:
                fidelity = m
                break
        if costs[fidelity] > capital - paid:
            return np.array(plays, dtype=np.int64)
        cell = (arm, fidelity)
        count = int(counts[cell])
        if not drawn.get(cell):
            totals = np.arange(count + 1, count + min(256, max(16, count)) + 1)
            following = instance.running_sums(
                rng, np.array([arm]), fidelity, count, sums[[arm], fidelity], totals
            )
            drawn[cell] = following[0, ::-1].tolist()
        sums[cell] = drawn[cell].pop()
        counts[cell] += 1
        centres[cell] = sums[cell] / counts[cell] + zeta[fidelity]
        slopes[cell] = width / math.sqrt(counts[cell])
        plays.append(arm * n_fidelities + fidelity)
        paid += float(costs[fidelity])


def _played(
    instance: Instance, rng: np.random.Generator, capital: float, *, compiled: bool
) -> IntArray:
    order: list[IntArray] = []
    source = partial(instance.running_sums, rng)
    MFUCB(instance.problem()).play(source, capital, compiled=compiled, order=order)
    return np.concatenate(order)


def speeds(numbers: Sequence[int], repeats: int, *, seed: int = 0) -> Iterator[Speed]:
    """CPU time of plays, by instance and method."""
    methods: dict[str, Callable[[Instance, np.random.Generator, float], IntArray]] = {
        "naive": naive_plays,
        "lazy": partial(_played, compiled=False),
    }
    if numba_if_installed():
        methods["lazy, compiled"] = partial(_played, compiled=True)
    for number in numbers:
        instance = draw_instance(number, np.random.default_rng([seed, number]))
        long, short = _TIMED[number]
        expected = naive_plays(instance, np.random.default_rng(seed), short)
        for name, method in methods.items():
            # What is compiled is compiled here.
            first = method(instance, np.random.default_rng(seed), short)
            capital = short if method is naive_plays else long
            seconds = []
            for _ in range(repeats):
                started = time.process_time()
                plays = len(method(instance, np.random.default_rng(seed), capital))
                seconds.append((time.process_time() - started) / plays * 1e6)
            same = bool(np.array_equal(first, expected))
            yield Speed(number, name, plays, float(np.median(seconds)), same)


def _chunk(tasks: Sequence[Any], workers: int) -> int:
    """Tasks to hand over at once: most are too short to be handed over alone."""
    return max(1, len(tasks) // (8 * workers))


# What is written.


def _figure(found: Sequence[Ratio], grown: Sequence[Exponent]) -> Any:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    numbers = sorted({row.instance for row in found})
    titles = [f"instance {number}: {_described(number)}" for number in numbers]
    titles += ["elimination: worst gap", f"elimination: gap {_FIXED_GAP:g}"]
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
