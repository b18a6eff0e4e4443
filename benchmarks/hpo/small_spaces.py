"""Small spaces at few full evaluations: this search beside Optuna's Gaussian process.

    python -m benchmarks.hpo.small_spaces --output small_spaces.json

One or two parameters, and 10 and 20 full evaluations, where there is hardly time to learn what the
cheap levels say. Optuna's needs the environment that `make peer-optuna-gp` makes. Records are kept;
a command that was stopped goes on where it was. Regrets are in percent of that of the median random
configuration; the interval of their difference (ours less Optuna's) is a bootstrap's over seeds.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.hpo.methods import HEADLINE
from benchmarks.hpo.problems import problem_named
from benchmarks.hpo.record import read
from benchmarks.hpo.reference import reference
from benchmarks.hpo.report import pinned
from benchmarks.hpo.runs import Plan, environments, jobs, play_all
from benchmarks.hpo.scores import Comparison, normalised, regrets
from benchmarks.hpo.statistics import bootstrap_means, interval, probability_of_less
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write

TASKS = ("branin", "currin", "forrester", "svm digits table", "logistic_regression digits table")
_BUDGETS = (10.0, 20.0)
_OPTUNA = "optuna gp"


def table(comparison: Comparison) -> list[dict[str, Any]]:
    """For each task and budget, the mean regrets, their difference, and how often ours is less."""
    references = {task: reference(problem_named(task)) for task in comparison.tasks}
    losses = normalised(regrets(comparison, references, _BUDGETS), comparison, references)
    ours, optuna = (losses[comparison.methods.index(name)] for name in (HEADLINE, _OPTUNA))
    rows = []
    for place, task in enumerate(comparison.tasks):
        for number, budget in enumerate(_BUDGETS):
            mine, theirs = ours[place, :, number], optuna[place, :, number]
            ends = interval(bootstrap_means((mine - theirs)[None, :]))
            rows.append(
                {
                    "task": task,
                    "full evaluations": budget,
                    "ours": round(float(mine.mean()), 3),
                    _OPTUNA: round(float(theirs.mean()), 3),
                    "difference": [round(float(end), 3) for end in ends],
                    "ours is less": round(probability_of_less(mine, theirs), 2),
                }
            )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=30, help="default: 30")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--records", type=Path, default=Path("benchmarks/results/.small-spaces"))
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    found, missing = environments(["optuna_gp", "ours"])
    if missing:
        parser.error("; ".join(f"{peer} is missing: {reason}" for peer, reason in missing.items()))
    plan = Plan(TASKS, range(options.seeds), _BUDGETS[-1], options.records.resolve())
    methods = (HEADLINE, _OPTUNA)
    failed = play_all(list(jobs(plan, found, methods)), options.workers, progress)
    for line in failed:
        progress(line)
    records = read(sorted(plan.records.glob("*.jsonl")))
    chosen = [one for one in records if one.method in methods and one.seed in plan.seeds]
    comparison = Comparison.of(chosen, TASKS)
    rows = table(comparison)
    for row in rows:
        print(row)
    if options.output:
        report = provenance("benchmarks.hpo.small_spaces", [f"--seeds {options.seeds}"], "optuna")
        report |= {"peers": pinned(), "seeds": len(comparison.seeds), "unit": "percent"}
        identities = sorted({one.identity for one in comparison.of_method(HEADLINE)})
        report |= {"ours": [HEADLINE], "identities": {HEADLINE: identities}}
        write(options.output, as_json({**report, "table": rows}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
