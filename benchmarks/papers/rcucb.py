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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.rcucb_baselines import LimitThompson, LimitUCB
from benchmarks.papers.rcucb_bound import regret_per_log
from benchmarks.papers.rcucb_instances import (
    LOCK_IN_LIMITS,
    LOCK_IN_PENALTY,
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    ArmStreams,
    CensoredInstance,
    independent,
    lock_in,
    low_censoring,
    many_arms,
    negatively_correlated,
    positively_correlated,
    published_limits,
)
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, html_page, numba_if_installed, progress, verdict, write
from mfhpo.censored import RCUCB, Charge
from mfhpo.knowledge.arrays import FloatArray

PUBLISHED_ROUNDS = 100_000
_CHECKPOINTS = 50
# Repetitions that are handed over at once.
_CHUNK = 5


@dataclass(frozen=True)
class Case:
    """An instance with its limits, and what is known of it.

    Parameters
    ----------
    instance, limits, penalty
        The problem.
    published
        Published shares of censored rounds, by method.
    reference
        Regret after 100,000 rounds in an independent implementation, by method.
    goal
        What the default's regret after 100,000 rounds must not exceed.
    """

    instance: Callable[[], CensoredInstance]
    limits: FloatArray
    penalty: Charge
    published: dict[str, float]
    reference: dict[str, float]
    goal: float | None = None


def _case(
    instance: Callable[[], CensoredInstance],
    limits: FloatArray,
    published: tuple[float, float, float] | None,
    reference: dict[str, float],
    goal: float | None = None,
) -> Case:
    shares = dict(zip(("published curves", "TS", "UCB"), published or (), strict=False))
    return Case(instance, limits, PUBLISHED_PENALTY, shares, reference, goal)


_GRID, _M_1, _GRID_20 = published_limits(), np.array([0.5, 0.9]), published_limits(20)


def _regrets(*figures: float) -> dict[str, float]:
    names = ("printed", "published curves", "UCB", "TS", "Bernstein", "KL")
    return dict(zip(names, figures, strict=False))


CASES = {
    "PosCorr": _case(
        positively_correlated,
        _GRID,
        (0.6399, 0.7516, 0.7993),
        _regrets(31691, 1581, 24865, 8071, 8900, 3700),
        4500,
    ),
    "NegCorr": _case(
        negatively_correlated,
        _GRID,
        (0.7700, 0.8510, 0.8894),
        _regrets(14966, 101, 14166, 3123, 8100, 2000),
        2400,
    ),
    "Indep": _case(
        independent,
        _GRID,
        (0.4462, 0.5749, 0.5455),
        _regrets(10339, 2221, 23192, 5885, 8200, 2300),
        2700,
    ),
    "PosCorr, M_1": _case(
        positively_correlated,
        _M_1,
        (0.5876, 0.5688, 0.5919),
        _regrets(34469, 1513, 13549, 5166),
    ),
    "NegCorr, M_1": _case(
        negatively_correlated,
        _M_1,
        (0.7266, 0.7081, 0.7246),
        _regrets(14549, 72, 3590, 1095),
    ),
    "Indep, M_1": _case(
        independent, _M_1, (0.4122, 0.4158, 0.4142), _regrets(10141, 2143, 7159, 4260)
    ),
    "PosCorr, grid 20": _case(
        positively_correlated,
        _GRID_20,
        (0.6126, 0.7383, 0.8157),
        _regrets(33150, 1630, 31576, 9654),
    ),
    "NegCorr, grid 20": _case(
        negatively_correlated,
        _GRID_20,
        (0.7477, 0.8396, 0.9185),
        _regrets(14723, 151, 20661, 3503),
    ),
    "Indep, grid 20": _case(
        independent, _GRID_20, (0.4282, 0.5639, 0.5870), _regrets(10208, 2307, 30729, 6662)
    ),
    "F.2, 20 arms": _case(
        partial(many_arms, 20), published_limits(5), None, _regrets(33.7e3, 2.1e3, 32.4e3, 9.9e3)
    ),
    "F.2, 50 arms": _case(
        partial(many_arms, 50), published_limits(5), None, _regrets(48.8e3, 4.9e3, 39.6e3, 16.4e3)
    ),
    "F.2, 80 arms": _case(
        partial(many_arms, 80), published_limits(5), None, _regrets(56.3e3, 7.0e3, 43.5e3, 22.3e3)
    ),
    "F.3": _case(
        low_censoring,
        published_limits(10, 0.6),
        None,
        _regrets(14646, 498, 19618, 1577, 2400, 560),
        700,
    ),
    "lock-in": Case(lock_in, np.array(LOCK_IN_LIMITS), LOCK_IN_PENALTY, {}, {}),
}

# The method that `RCUCB` uses if it is not told which.
DEFAULT = "KL+"
_COUNTED = "published curves"
# A method makes a policy from the number of arms, the limits, cost and penalty, and a seed.
Method = Callable[[int, FloatArray, Charge, Charge, int], RCUCB | LimitUCB | LimitThompson]


def _rcucb(**options: Any) -> Method:
    def make(n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge, seed: int) -> RCUCB:
        return RCUCB(n_arms, limits, cost=cost, penalty=penalty, **options)

    return make


def _ucb(n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge, seed: int) -> LimitUCB:
    return LimitUCB(n_arms, limits, cost=cost, penalty=penalty)


def _thompson(
    n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge, seed: int
) -> LimitThompson:
    return LimitThompson(n_arms, limits, cost=cost, penalty=penalty, seed=seed)


METHODS: dict[str, Method] = {
    DEFAULT: _rcucb(confidence="kl+"),
    "KL": _rcucb(confidence="kl"),
    "Bernstein": _rcucb(confidence="bernstein"),
    "printed": _rcucb(confidence="printed"),
    _COUNTED: _rcucb(confidence="published curves", survival="count"),
    "published curves, Kaplan-Meier": _rcucb(confidence="published curves"),
    "UCB": _ucb,
    "TS": _thompson,
}


@dataclass(frozen=True)
class Settings:
    """What the command was asked for."""

    repetitions: int = 100
    rounds: int = PUBLISHED_ROUNDS
    cases: Sequence[str] = tuple(CASES)
    methods: Sequence[str] = tuple(METHODS)
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True)
class Row:
    """What one method did on one instance: means over the repetitions, and their standard errors.

    `lower_bound` is the factor of log T below which no consistent method stays in the long run,
    times log T; `locked_in` counts runs (of "lock-in" only); `cpu_s` is for one repetition.
    `curve` is the mean regret at `at`, and `curve_se` its standard error.
    """

    case: str
    method: str
    repetitions: int
    rounds: int
    regret: float
    regret_se: float
    reference_regret: float | None
    lower_bound: float
    censored: float
    censored_se: float
    censored_at_optimum: float
    published_censored: float | None
    cpu_s: float
    locked_in: int | None
    at: list[int]
    curve: list[float]
    curve_se: list[float]


# Runs.


@cache
def _problem(name: str) -> tuple[CensoredInstance, FloatArray]:
    """The instance, and how much every pair is worse than the best one."""
    case = CASES[name]
    instance = case.instance()
    gains = instance.gains(case.limits, PUBLISHED_COST, case.penalty)
    return instance, gains.max() - gains


@cache
def _compile(method: str) -> None:
    """Play a little, so that what is compiled is compiled."""
    instance, _ = _problem("lock-in")
    policy = METHODS[method](1, np.array(LOCK_IN_LIMITS), PUBLISHED_COST, LOCK_IN_PENALTY, 0)
    policy.play(ArmStreams(instance, 0), 200)


def one_seed(seeds: Sequence[int]) -> int:
    """A seed made of several."""
    return int(np.random.SeedSequence(seeds).generate_state(1)[0])


def checkpoints(rounds: int) -> list[int]:
    """Rounds at which curves are drawn, at equal distances, the last one included."""
    return sorted({round(rounds * k / _CHECKPOINTS) for k in range(1, _CHECKPOINTS + 1)} - {0})


# Regret at the checkpoints, share of censored rounds, CPU seconds.
_Run = tuple[list[float], float, float]


def _run(task: tuple[str, str, int, int, Settings]) -> list[_Run]:
    """Some of the repetitions."""
    name, method, start, stop, settings = task
    instance, gaps = _problem(name)
    case = CASES[name]
    _compile(method)
    found = []
    for repetition in range(start, stop):
        # All methods have the same seeds.
        seeds = [settings.seed, list(CASES).index(name), repetition]
        streams = ArmStreams(instance, seeds)
        policy = METHODS[method](
            instance.n_arms, case.limits, PUBLISHED_COST, case.penalty, one_seed(seeds)
        )
        began = time.process_time()
        policy.play(streams, settings.rounds)
        seconds = time.process_time() - began
        history = policy.state_dict()
        places = np.searchsorted(case.limits, history["limits"])
        regret = np.cumsum(gaps[history["arms"], places])
        curve = regret[np.array(checkpoints(settings.rounds)) - 1].tolist()
        found.append((curve, policy.n_censored / policy.pulls, seconds))
    return found


def rows(settings: Settings) -> Iterator[Row]:
    """Run everything; each row as it is complete."""
    kinds = [(case, method) for case in settings.cases for method in settings.methods]
    starts = range(0, settings.repetitions, _CHUNK)
    tasks = [
        (case, method, start, min(start + _CHUNK, settings.repetitions), settings)
        for case, method in kinds
        for start in starts
    ]
    results = mapped(_run, tasks, settings.workers)
    for case, method in kinds:
        runs = [run for _ in starts for run in next(results)]
        yield _row(case, method, runs, settings.rounds)


@cache
def _bound(name: str) -> float:
    instance, _ = _problem(name)
    case = CASES[name]
    return regret_per_log(instance, case.limits, PUBLISHED_COST, case.penalty)


def _row(name: str, method: str, runs: Sequence[_Run], rounds: int) -> Row:
    case = CASES[name]
    instance, gaps = _problem(name)
    curves = np.array([curve for curve, _, _ in runs])
    shares = np.array([share for _, share, _ in runs])
    means, errors = curves.mean(axis=0), standard_error(curves)
    best_arm, best_limit = np.unravel_index(int(gaps.argmin()), gaps.shape)
    at = checkpoints(rounds)
    return Row(
        case=name,
        method=method,
        repetitions=len(runs),
        rounds=rounds,
        regret=_rounded(means[-1]),
        regret_se=_rounded(errors[-1]),
        reference_regret=case.reference.get(method) if rounds == PUBLISHED_ROUNDS else None,
        lower_bound=_rounded(_bound(name) * math.log(rounds)),
        censored=round(float(shares.mean()), 5),
        censored_se=round(float(standard_error(shares)), 5),
        censored_at_optimum=round(float(instance.survival(case.limits)[best_arm, best_limit]), 5),
        published_censored=case.published.get(method),
        cpu_s=round(float(np.mean([seconds for _, _, seconds in runs])), 4),
        locked_in=_locked_in(curves, at, float(gaps.max())) if name == "lock-in" else None,
        at=at,
        curve=[_rounded(value) for value in means],
        curve_se=[_rounded(value) for value in errors],
    )


def _locked_in(curves: FloatArray, at: Sequence[int], gap: float) -> int:
    half = len(at) // 2 - 1
    paid = curves[:, -1] - curves[:, half]
    return int((paid > 0.5 * gap * (at[-1] - at[half])).sum())


def standard_error(values: FloatArray) -> FloatArray:
    """Standard error of the mean over the first axis."""
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


# What must hold.

_SHARE_TOLERANCE = 0.002
_SECONDS = {"KL": 60.0, "KL+": 60.0}
_SECONDS_OTHERS = 20.0


def what_must_hold(found: Sequence[Row]) -> dict[str, bool]:
    """What must hold of the rows that there are; figures only after 100,000 rounds."""
    by_name = {(row.case, row.method): row for row in found}
    holds: dict[str, bool] = {}
    for name in CASES:
        ours = by_name.get((name, DEFAULT))
        others = [by_name[name, other] for other in ("UCB", "TS") if (name, other) in by_name]
        if ours and others and name != "lock-in":
            words = " and ".join(f"{row.method}'s {row.regret:,.0f}" for row in others)
            holds[f"{name}: regret of {DEFAULT} {ours.regret:,.0f} is below {words}"] = all(
                ours.regret < row.regret for row in others
            )
    for row in found:
        case = CASES[row.case]
        if row.method in (DEFAULT, _COUNTED) and row.locked_in is not None:
            words = f"{row.case}: {row.locked_in} of {row.repetitions} runs of {row.method}"
            if row.method == DEFAULT:
                holds[f"{words} lock in, none may"] = row.locked_in == 0
            else:
                holds[f"{words} lock in, which is what the instance is for"] = row.locked_in > 0
        if row.rounds != PUBLISHED_ROUNDS:
            continue
        if row.method == DEFAULT and case.goal is not None:
            holds[
                f"{row.case}: regret of {DEFAULT} {row.regret:,.0f} is at most {case.goal:,.0f}"
            ] = row.regret <= case.goal
        if row.method == _COUNTED and row.case.startswith("Indep"):
            published = case.published[_COUNTED]
            holds[
                f"{row.case}: {row.censored:.4f} censored with the published curves' form is "
                f"{published} ± {_SHARE_TOLERANCE}"
            ] = abs(row.censored - published) <= _SHARE_TOLERANCE
        if row.case == "PosCorr" and row.method not in ("UCB", "TS") and numba_if_installed():
            allowed = _SECONDS.get(row.method, _SECONDS_OTHERS)
            holds[
                f"{row.case}: 100 repetitions of {row.method} take {100 * row.cpu_s:.1f} s CPU, at "
                f"most {allowed:.0f}"
            ] = 100 * row.cpu_s <= allowed
    return holds


# What is written.

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
    n_arms = _problem(name)[0].n_arms
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
