"""How often the best of given configurations is missed on a budget, and what the answer claims.

    python -m benchmarks.hpo.certainty_budgets --data FOLDER --output certainty_budgets.json

FOLDER holds lcbench/ and rbv2_xgboost/ of YAHPO Gym's surrogates (github.com/slds-lmu/yahpo_data).
Lists of 64 and of 200 random configurations of 12 tasks, normal noise of standard deviation .5 on
the accuracy in percent, tolerance .5. All evaluations are paid, in full evaluations. An answer is
off if the best configuration of the list is better by more than the tolerance. A claim about
finalists is false if the best of these is. The model is `mfhpo.search.BudgetedSearch` as the
samplers run it with ``candidates=``, "halving" the same with configurations that are only named.
Both know neither noise nor bias. On LCBench trainings are kept and continued, but for those of
finalists, which begin anew.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import binomtest

from benchmarks.hpo.certainty_answers import Answer, Outcome, Race, judged
from benchmarks.hpo.certainty_halving import halve, hyperband
from benchmarks.hpo.certainty_pools import Bounds, kept_pool
from benchmarks.hpo.certainty_races import DELTA
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.hpo.tasks import grouped
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, verdict, write
from mfhpo import Fidelity, Observation
from mfhpo.search import BudgetedSearch, DeclaredSearch

Row = dict[str, Any]

SIGMA = EPSILON = 0.5
BUDGETS = {64: (15, 30, 45), 200: (30, 60)}
"""Number of configurations, and budgets in full evaluations."""

_HALVING, _HYPERBAND = "successive halving", "Hyperband"

"""The chance by the model at which a search is stopped."""

FIRST_LIST = 100
"""Of each task; the search was developed on earlier ones."""

Play: TypeAlias = Callable[[Race, np.random.Generator], Answer]


def played(
    race: Race,
    budget: float,
    rng: np.random.Generator,
    *,
    epsilon: float | None = EPSILON,
    named: bool = False,
) -> BudgetedSearch:
    """Search among the pool's configurations, then certify the finalists, as a user would."""
    pool = race.pool
    levels = list(range(1, len(pool.costs) + 1))
    candidates = [{"name": f"{arm}"} for arm in range(pool.n_arms)]
    declared = DeclaredSearch.of(
        Fidelity("level", levels=levels, costs=pool.costs.tolist()),
        budget=budget,
        checkpoints=pool.continues,
        epsilon=epsilon,
        delta=DELTA,
        candidates=candidates if named else pool.configurations,
    )
    search = declared.race(levels, seed=race.seed, sign=1.0)
    while pulls := search.ask():
        [pull] = pulls
        value = pool.means[pull.fidelity, pull.arm] + race.sigma * rng.standard_normal()
        search.tell(pull, Observation(float(value)))
    return search


def _on_a_budget(budget: float, named: bool, race: Race, rng: np.random.Generator) -> Answer:
    search = played(race, budget, rng, named=named)
    answer = search.recommend()
    assert answer.arm is not None
    return Answer(answer.arm, search.cost, answer.certified, search.shortlist or None)


def _halving(race: Race, rng: np.random.Generator) -> Answer:
    found = halve(race.pool, range(race.pool.n_arms), 0, race.sigma, rng)
    return Answer(found.order[0], found.cost)


def _hyperband(race: Race, rng: np.random.Generator) -> Answer:
    return hyperband(race.pool, race.sigma, rng)


def _at_cost_of(other: Play, race: Race, rng: np.random.Generator) -> Answer:
    return _on_a_budget(other(race, rng).cost, False, race, rng)


def contenders(n_arms: int) -> dict[str, Play]:
    """Return whoever answers, by name."""
    found: dict[str, Play] = {}
    for budget in BUDGETS[n_arms]:
        found[f"model, {budget} trainings"] = partial(_on_a_budget, float(budget), False)
        found[f"names only, {budget} trainings"] = partial(_on_a_budget, float(budget), True)
    for name, other in ((_HALVING, _halving), (_HYPERBAND, _hyperband)):
        found[name] = other
        found[f"model at the cost of {name}"] = partial(_at_cost_of, other)
    return found


def _outcomes(data: Path, job: tuple[int, str, int]) -> list[Outcome]:
    n_arms, task, seed = job
    pool = kept_pool(task, None, n_arms, seed, data)
    race = Race(pool, SIGMA, EPSILON, Bounds(np.zeros(0), np.zeros(0)), seed)
    outcomes = []
    for name, answer in contenders(n_arms).items():
        rng = np.random.default_rng([seed, zlib.crc32(f"{name} {task}".encode())])
        outcomes.append(judged(name, race, answer(race, rng)))
    return outcomes


def rows_of(n_arms: int, outcomes: Sequence[Outcome]) -> list[Row]:
    """Return cost, share that is off and claims, by kind of tasks and contender."""
    rows = []
    for group, tasks in grouped(dict.fromkeys(each.task for each in outcomes)).items():
        for name in dict.fromkeys(each.contender for each in outcomes):
            chosen = [each for each in outcomes if each.contender == name and each.task in tasks]
            off = sum(each.regret > EPSILON for each in chosen)
            interval = binomtest(off, len(chosen)).proportion_ci(method="wilson")
            rows.append(
                {
                    "configurations": n_arms,
                    "tasks": group,
                    "contender": name,
                    "lists": len(chosen),
                    "cost": round(float(np.median([each.cost for each in chosen])), 1),
                    "off": off,
                    "off_interval": [round(float(interval.low), 3), round(float(interval.high), 3)],
                    "regret": round(float(np.mean([each.regret for each in chosen])), 3),
                    "certified": sum(each.certified for each in chosen),
                    "wrong": sum(each.wrong for each in chosen),
                }
            )
    return rows


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """Return what must hold, and whether it does."""
    claims, wrong = (sum(row[key] for row in rows) for key in ("certified", "wrong"))
    return {f"claims about finalists: {wrong} of {claims} false": wrong <= DELTA * claims}


def at_equal_cost(rows: Sequence[Row]) -> dict[str, bool]:
    """Return whether the model is off less often than halving and Hyperband at their cost."""
    found = {}
    for row in rows:
        if row["contender"] in (_HALVING, _HYPERBAND):
            ours = next(
                other
                for other in rows
                if other["contender"] == f"model at the cost of {row['contender']}"
                and all(other[key] == row[key] for key in ("configurations", "tasks"))
            )
            where = f"{row['configurations']} candidates, {row['tasks']}"
            words = f"{where}: off less often than {row['contender']} at the same cost"
            found[words] = ours["off"] < row["off"]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    began = time.process_time()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo.certainty_budgets",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--data", type=Path, required=True, help="YAHPO's folder")
    parser.add_argument("--seeds", type=int, default=30, help="lists of each task (default: 30)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args(arguments)
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}.")
    check_surrogates(parser, options.data, ("lcbench", "rbv2_xgboost"))
    rows: list[Row] = []
    for n_arms in BUDGETS:
        tasks = DEVELOPMENT_TASKS
        seeds = range(FIRST_LIST, FIRST_LIST + options.seeds)
        jobs = [(n_arms, task, seed) for seed in seeds for task in tasks]
        outcomes: list[Outcome] = []
        for each in mapped(partial(_outcomes, options.data), jobs, options.workers):
            outcomes += each
        rows += rows_of(n_arms, outcomes)
        for row in rows:
            if row["configurations"] == n_arms:
                progress(str(row))
    checked, compared = holds(rows), at_equal_cost(rows)
    print(verdict(checked | compared))
    if options.output is not None:
        command = ["--data", "DATA", "--seeds", str(options.seeds)]
        report = provenance("benchmarks.hpo.certainty_budgets", command, "onnxruntime") | {
            "unit": "costs in full evaluations, regret in percent of accuracy",
            "cpu_seconds": round(time.process_time() - began),
            "holds": checked,
            "at_equal_cost": compared,
            "rows": rows,
        }
        write(options.output, as_json(report))
    return 0 if all(checked.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
