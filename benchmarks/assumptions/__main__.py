"""How often certificates are wrong when what they suppose does not hold.

    python -m benchmarks.assumptions --races 500 --workers 2 --output assumptions.json

Each policy and each certificate of shortlists races in each scenario that it can run
(`benchmarks.assumptions.scenarios`). A certificate is wrong when its arm is not within epsilon of
the best of all arms. A claim fails when the text says more than is so of the arms that it says were
compared. An interval is missed when one that is printed does not contain its mean. The best stays
unless it was eliminated or left for its failures. A fact is false when the text miscounts
evaluations, failures or the arms compared: that must never happen.

What `--only` and `--by` do not choose keeps its rows in the file, each with the commit that it was
measured with.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.assumptions.contestants import CONTESTANTS, MOST_RACES, run, takes_part
from benchmarks.assumptions.outcome import Outcome
from benchmarks.assumptions.scenarios import SCENARIOS
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import progress

_COLUMNS = (
    "scenario",
    "by",
    "races",
    "certified",
    "wrong % [95 %]",
    "claim fails %",
    "false facts",
    "interval missed % [95 %]",
    "best stays %",
    "noticed %",
    "evaluations, median",
)
_HEAD = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"


def _limits(k: int, n: int) -> tuple[float, float]:
    """95 % limits of Clopper and Pearson, in percent."""
    low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
    return 100.0 * low, 100.0 * high


def _row(
    scenario: str, contestant: str, delta: float, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    n = len(outcomes)
    wrong = sum(outcome.wrong for outcome in outcomes)
    low, high = _limits(wrong, n)
    missed = sum(outcome.missed for outcome in outcomes)
    missed_low, missed_high = _limits(missed, n)
    return {
        "scenario": scenario,
        "by": contestant,
        "races": n,
        "delta": delta,
        "certified": sum(outcome.certified for outcome in outcomes),
        "wrong": wrong,
        "wrong_low_percent": round(low, 2),
        "wrong_high_percent": round(high, 2),
        "claim_fails": sum(outcome.claim_fails for outcome in outcomes),
        "false_facts": sum(bool(outcome.false_facts) for outcome in outcomes),
        "missed": missed,
        "missed_low_percent": round(missed_low, 2),
        "missed_high_percent": round(missed_high, 2),
        "stays": sum(outcome.stays for outcome in outcomes),
        "noticed": sum(outcome.noticed for outcome in outcomes),
        "median_evaluations": float(np.median([outcome.evaluations for outcome in outcomes])),
    }


def _line(row: dict[str, Any]) -> str:
    """A row of the table, with a dash for what earlier versions did not measure."""

    def share(name: str, digits: int = 1) -> str:
        return f"{100.0 * row[name] / row['races']:.{digits}f}" if name in row else "-"

    missed = share("missed")
    if "missed_low_percent" in row:
        missed += f" [{row['missed_low_percent']}, {row['missed_high_percent']}]"
    return (
        f"| {row['scenario']} | {row['by']} | {row['races']} | {row['certified']} | "
        f"{share('wrong')} [{row['wrong_low_percent']}, {row['wrong_high_percent']}] | "
        f"{share('claim_fails')} | {row['false_facts']} | {missed} | "
        f"{share('stays', 0)} | {share('noticed', 0)} | {row['median_evaluations']:.0f} |"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--races", type=int, default=500, help="races of each kind (default: 500)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--only", nargs="+", help="scenarios whose names contain one of these")
    parser.add_argument("--by", nargs="+", choices=CONTESTANTS, metavar="NAME", help="contestants")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON, and .md beside it")
    parser.add_argument(
        "--resume", action="store_true", help="keep the rows that the present code has written"
    )
    options = parser.parse_args(arguments)
    command = [f"--races {options.races}"]
    for name, values in (("only", options.only), ("by", options.by)):
        command += [shlex.join([f"--{name}", *values])] if values else []
    report = provenance("benchmarks.assumptions", command) | {"delta": 0.05}
    keys = [(scenario, by) for scenario in SCENARIOS for by in CONTESTANTS]
    keys = [(scenario, by) for scenario, by in keys if takes_part(by, scenario)]
    table = _earlier(options.output, report)
    rows = []
    for scenario, by in keys:
        is_named = any(words in scenario.name for words in options.only or [""])
        if not is_named or by not in (options.by or CONTESTANTS):
            continue
        row = table.get((scenario.name, by), {"fingerprints": {}})
        races = min(options.races, MOST_RACES.get(by, options.races))
        if not options.resume or "fingerprints" in row or row["races"] != races:
            tasks = [(scenario.name, by, seed) for seed in range(races)]
            outcomes = list(mapped(run, tasks, options.workers, chunksize=5))
            row = table[scenario.name, by] = _row(scenario.name, by, scenario.delta, outcomes)
        rows.append(row)
        progress(_line(row))
        if options.output:
            there = [(scenario.name, by) for scenario, by in keys]
            known = [table[key] for key in there if key in table]
            _write(options.output, report | {"rows": known})
    print("\n".join([_HEAD, *map(_line, rows)]))
    return 0


def _earlier(file: Path | None, report: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a file; those that other code has measured have no fingerprints."""
    if file is None or not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    is_other = found.get("fingerprints") != report["fingerprints"]
    of_other: dict[str, Any] = {"fingerprints": {}} if is_other else {}
    rows = ({"commit": found.get("commit"), **row, **of_other} for row in found["rows"])
    return {(row["scenario"], row["by"]): row for row in rows}


def _write(file: Path, report: dict[str, Any]) -> None:
    """Write the report, whole or not at all, and its table."""
    table = "\n".join([_HEAD, *map(_line, report["rows"])])
    for path, text in ((file, json.dumps(report, indent=1)), (file.with_suffix(".md"), table)):
        new = path.with_suffix(path.suffix + ".new")
        new.write_text(text + "\n", encoding="utf-8")
        new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
