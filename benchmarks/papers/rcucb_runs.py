"""What the methods pay on the instances of the RCUCB paper, and what must hold of that."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.papers.rcucb_bound import regret_per_log
from benchmarks.papers.rcucb_cases import (
    CASES,
    COUNTED,
    DEFAULT,
    METHODS,
    PUBLISHED_ROUNDS,
    play,
    problem,
)
from benchmarks.papers.rcucb_instances import (
    LOCK_IN_LIMITS,
    LOCK_IN_PENALTY,
    PUBLISHED_COST,
    ArmStreams,
)
from benchmarks.parallel import mapped
from benchmarks.report import numba_if_installed
from mfhpo.knowledge.arrays import FloatArray

_CHECKPOINTS = 50
# Repetitions that are handed over at once.
_CHUNK = 5


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


@cache
def _compile(method: str) -> None:
    """Play a little, so that what is compiled is compiled."""
    instance, _ = problem("lock-in")
    policy = METHODS[method](1, np.array(LOCK_IN_LIMITS), PUBLISHED_COST, LOCK_IN_PENALTY, 0)
    play(policy, ArmStreams(instance, 0), 200)


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
    instance, gaps = problem(name)
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
        play(policy, streams, settings.rounds)
        seconds = time.process_time() - began
        arms, limits, *_ = policy.history.arrays()
        regret = np.cumsum(gaps[arms, np.searchsorted(case.limits, limits)])
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
    instance, _ = problem(name)
    case = CASES[name]
    return regret_per_log(instance, case.limits, PUBLISHED_COST, case.penalty)


def _row(name: str, method: str, runs: Sequence[_Run], rounds: int) -> Row:
    case = CASES[name]
    instance, gaps = problem(name)
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
        if row.method in (DEFAULT, COUNTED) and row.locked_in is not None:
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
        if row.method == COUNTED and row.case.startswith("Indep"):
            published = case.published[COUNTED]
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
