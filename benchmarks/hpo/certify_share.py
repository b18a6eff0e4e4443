"""The gain of a larger share for the certificate, and its price for the search.

    python -m benchmarks.hpo.certify_share --seeds 3 --output certify_share.json

Each search by the model is played once, without a certificate. Where a share of the budget would be
left, its finalists are noted, and certified on fresh noise by what `SearchSampler` runs, several
times. Tasks are the surrogates for development with normal noise (.5 and 2 points of accuracy), and
recorded trainings of scikit-learn's models on random splits, whose noise is large beside what there
is to gain. The gain is by how much the winner is truly better than the median random configuration.
An interval is worth quoting if its half-width is at most half of that. Regrets are in percent of
the median random configuration's. Differences are to the default share, by paired runs.

Searches are kept in --records; a command that was stopped goes on where it was.
"""

import argparse
import json
import shlex
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.hpo.certificate_races import Play, kind_of
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.problems.table import TableProblem
from benchmarks.hpo.reference import reference
from benchmarks.hpo.space import same_configuration
from benchmarks.hpo.tasks import development_task
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from mfhpo.problem import Observation
from mfhpo.search import BudgetedSearch, HalvingSearch, ModelSearch, SearchSpace

Record: TypeAlias = dict[str, Any]

SIGMAS = (0.5, 2.0)
_MODELS = ("random_forest", "gradient_boosting", "mlp")
_DATA = ("breast_cancer", "wine", "clusters", "corners", "wide", "digits")
RECORDED = tuple(f"{model} {data} table" for model in _MODELS for data in _DATA)
"""Tables of enough configurations for 100 full evaluations."""

BUDGETS = (50.0, 100.0)
"""The first search of each task is played for all of them, others for the first one."""

SHARES = (0.1, 0.15, 0.2)
MORE_FINALISTS = 4
"""Beside as many as `SearchSampler` takes."""

_RECORDS = Path("benchmarks/results/.certify-share.jsonl")
_TOP = 8  # finalists that are noted
_REPEATS = 5  # of each certificate
_QUOTABLE = 0.5  # of the gain


class TablePlay(Play):
    """A search of a table, whose costs are those of the mean configuration."""

    def __init__(self, problem: TableProblem, seed: int, budget: float) -> None:
        # `Play` declares another kind of problem; what it asks of one, a table answers too.
        self.problem, self.seed, self.budget = problem, seed, budget  # type: ignore[assignment]
        search = ModelSearch(problem.mean_costs, continues=problem.fidelity.continues, seed=seed)
        kinds = {name: kind_of(given) for name, given in problem.space.parameters.items()}
        search.space = SearchSpace(kinds)
        self.race = BudgetedSearch(search, budget=budget, certify_share=0.0)
        self.configurations, self.told, self.replicates = [], [], {}
        self._repeats = 0


def searched(task: str, sigma: float | None, seed: int) -> Record:
    """Play a search; note by what was spent the values that its finalists have at the target.

    These are the true value, to which noise comes, or all that was recorded.
    """
    problem, budgets = problem_named(task, sigma=sigma), _budgets_of(seed)
    if isinstance(problem, TableProblem):
        play: Play = TablePlay(problem, seed, budgets[-1])
        true = problem.table.values[:, -1].mean(axis=1)
        best, median = problem.best_value, float(np.median(true))
    else:
        assert isinstance(problem, NoisyProblem)
        play = Play(problem, seed, budgets[-1], 0.0)
        best, median = reference(problem)
    race, finalists = play.race, {}
    left = sorted({_spent(budget, share) for budget in budgets for share in SHARES})
    while left:
        pulls = race.ask()
        cost = race.budget.cost + race.budget.price_of(pulls[0]) if pulls else np.inf
        while left and cost > left[0] + 1e-9:
            arms = race.search.contenders(_TOP)
            finalists[f"{left.pop(0):g}"] = [_values_of(play, arm) for arm in arms]
        if left:
            play._evaluate(pulls[0])
    known = {"task": task, "sigma": sigma, "seed": seed, "best": best, "median": median}
    return known | {"finalists": finalists}


def _budgets_of(seed: int) -> tuple[float, ...]:
    return BUDGETS[:1] if seed else BUDGETS


def _spent(budget: float, share: float) -> float:
    return round(budget * (1.0 - share), 6)


def _values_of(play: Play, arm: int) -> list[float]:
    problem = play.problem
    if not isinstance(problem, TableProblem):
        return [play.truth(arm)]
    row = problem._rows[same_configuration(play.configurations[arm])]
    return [float(value) for value in problem.table.values[row, -1]]


def certified(
    values: Sequence[Sequence[float]],
    sigma: float,
    budget: float,
    share: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[float, float, bool]:
    """Return the winner's true value, its interval's half-width, and whether it is certified.

    For `n` of 0 there are as many finalists as the sampler takes.
    """
    race = BudgetedSearch(HalvingSearch((0.1, 1.0)), budget=budget, certify_share=share)
    race.budget.cost = _spent(budget, share)
    chosen = [np.array(each) for each in values[: n or race.budget.largest_shortlist(_TOP)]]
    race.agree(range(len(chosen)))
    while pulls := race.ask():
        [pull] = pulls
        value = rng.choice(chosen[pull.arm]) + sigma * rng.standard_normal()
        race.tell(pull, Observation(float(value)))
    certificate = race.certificate()
    if certificate is None or certificate.winner is None:
        return float(chosen[0].mean()), np.inf, False
    low, high = certificate.interval
    return float(chosen[certificate.winner].mean()), (high - low) / 2.0, certificate.certified


def outcomes(record: Record) -> Iterator[Record]:
    """Yield what the finalists of one search come to, by budget, share and their number."""
    best, median, sigma = record["best"], record["median"], record["sigma"] or 0.0
    name = f"{record['task']} {sigma}".encode()
    for budget in _budgets_of(record["seed"]):
        for share in SHARES:
            finalists = record["finalists"][f"{_spent(budget, share):g}"]
            for n in (0, MORE_FINALISTS):
                for repeat in range(_REPEATS):
                    rng = np.random.default_rng([zlib.crc32(name), record["seed"], repeat])
                    value, half, sure = certified(finalists, sigma, budget, share, n, rng)
                    gain = value - median
                    yield {
                        "tasks": f"noise {sigma:g}" if sigma else "recorded",
                        "case": (budget, share, n),
                        "regret": 100.0 * (best - value) / (best - median),
                        "ratio": half / gain if gain > 0.0 else np.inf,
                        "certified": sure,
                    }


def rows_of(records: Sequence[Record]) -> list[Record]:
    """Return a row for each kind of tasks, budget, share and number of finalists."""
    found = [outcome for record in records for outcome in outcomes(record)]
    rows = []
    for kind in sorted({one["tasks"] for one in found}):
        of_kind = sorted((one for one in found if one["tasks"] == kind), key=_case)
        cases = {case: list(those) for case, those in groupby(of_kind, key=_case)}
        for (budget, share, n), those in cases.items():
            usual = cases[budget, SHARES[0], 0]
            more = [one["regret"] - two["regret"] for one, two in zip(those, usual, strict=True)]
            of_searches = np.array(more).reshape(-1, _REPEATS).mean(axis=1)
            ratios = np.array([one["ratio"] for one in those])
            ratio = float(np.quantile(ratios, 0.5, method="lower"))
            error = float(of_searches.std(ddof=1)) / len(of_searches) ** 0.5
            rows.append(
                {
                    "tasks": kind,
                    "budget": budget,
                    "share": share,
                    "finalists": n or "usual",
                    "searches": len(of_searches),
                    "half-width over gain": round(ratio, 3) if np.isfinite(ratio) else None,
                    "quotable": round(float((ratios <= _QUOTABLE).mean()), 3),
                    "certified": round(float(np.mean([one["certified"] for one in those])), 3),
                    "regret": round(float(np.mean([one["regret"] for one in those])), 2),
                    "more regret": round(float(of_searches.mean()), 2),
                    "standard error": round(error, 2),
                }
            )
    return rows


def _case(outcome: Record) -> tuple[float, float, int]:
    case: tuple[float, float, int] = outcome["case"]
    return case


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=2, help="searches of each task (default: 2)")
    parser.add_argument("--tasks", nargs="+", type=development_task, metavar="TASK", help="of them")
    parser.add_argument("--records", type=Path, default=_RECORDS, help="file of the searches")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    tasks: list[tuple[str, float | None]] = [(task, None) for task in RECORDED]
    tasks += [(task, sigma) for task in DEVELOPMENT_TASKS for sigma in SIGMAS]
    chosen = [(task, sigma) for task, sigma in tasks if task in (options.tasks or dict(tasks))]
    wanted = [(task, sigma, seed) for seed in range(options.seeds) for task, sigma in chosen]
    lines = options.records.read_text().splitlines() if options.records.exists() else []
    known = {(one["task"], one["sigma"], one["seed"]): one for one in map(json.loads, lines)}
    for key in wanted:
        if key not in known:
            known[key] = searched(*key)
            with options.records.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[key]) + "\n")
            progress(f"{len(known)} of {len(wanted)} searches: {key}")
    rows = rows_of([known[key] for key in wanted])
    for row in rows:
        print(row)
    if options.output:
        given = [f"--seeds {options.seeds}"]
        given += [shlex.join(["--tasks", *options.tasks])] if options.tasks else []
        report = provenance("benchmarks.hpo.certify_share", given, "onnxruntime")
        write(options.output, as_json(report | {"quotable": _QUOTABLE, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
