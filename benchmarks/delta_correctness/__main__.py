"""How often a certificate is wrong, against the delta that it promises.

    python -m benchmarks.delta_correctness --instances 2000 --workers 2 --output results.json

Every policy races on random instances: 2 to 20 arms, 1 to 4 fidelities, Gaussian or Bernoulli
values, biases within the declared bounds and, on every other instance, at them, against the best
arm. Pulls are told in order, or out of order: several are under way, one in ten is lost, one in ten
is evaluated and told twice. Or they take the longer, the poorer their values are, and are put in
order as samplers and searchers do it (`mfhpo.experiment.ledger`). The certificates of shortlists
compare the arms at the target alone, where the biases have no part.

A race is wrong when its certified arm is not within epsilon of the best. With epsilon = 0 it is
also wrong when the best arm was eliminated, certified or not, so that one instance in four can have
a gap too small to certify: there an elimination at a biased fidelity is as likely as it can be.
The last row is a control, whose radius is too small on purpose: its share must exceed delta.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from scipy.stats import beta

from benchmarks.delta_correctness.conditions import CONDITIONS, Condition
from benchmarks.delta_correctness.races import run
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write


@dataclass(frozen=True)
class Row:
    """How the races under one condition ended.

    `upper` is the one-sided 95 % Clopper-Pearson bound on the probability of a wrong answer;
    `certified` is the share of certified races, `pulls` the mean number of pulls, `cpu_s` the mean
    CPU seconds of a race.
    """

    condition: Condition
    races: int
    wrong: int
    share: float
    upper: float
    certified: float
    pulls: float
    cpu_s: float


def _row(condition: Condition, parts: Sequence[tuple[int, int, int, float]], races: int) -> Row:
    wrong = sum(part[0] for part in parts)
    upper = 1.0 if wrong == races else float(beta.ppf(0.95, wrong + 1, races - wrong))
    return Row(
        condition=condition,
        races=races,
        wrong=wrong,
        share=wrong / races,
        upper=upper,
        certified=sum(part[1] for part in parts) / races,
        pulls=sum(part[2] for part in parts) / races,
        cpu_s=sum(part[3] for part in parts) / races,
    )


def check(
    conditions: Sequence[Condition] = CONDITIONS,
    *,
    instances: int,
    delta: float = 0.1,
    seed: int = 0,
    workers: int = 1,
) -> Iterator[Row]:
    """Race on random instances; yield the row of each condition as it is complete."""
    size = max(1, min(100, math.ceil(instances / (4 * workers))))
    starts = range(0, instances, size)
    tasks = [
        (condition, start, min(start + size, instances), delta, seed)
        for condition in conditions
        for start in starts
    ]
    results = mapped(run, tasks, workers)
    for condition in conditions:
        yield _row(condition, list(islice(results, len(starts))), instances)


def _line(row: Row) -> str:
    condition = row.condition
    name = condition.knowledge if condition.shrink == 1.0 else f"{condition.shrink:g} x mixture"
    return (
        f"{condition.variant:<16} {name:<20} {'epsilon' if condition.tolerant else 'best':<8} "
        f"{condition.told:<13} {row.wrong:>5} of "
        f"{row.races:<6} {100 * row.share:>6.2f} % {100 * row.upper:>8.2f} % "
        f"{100 * row.certified:>8.1f} % {row.pulls:>7.0f} {1000 * row.cpu_s:>7.1f}"
    )


_HEADER = (
    f"{'policy':<16} {'radius':<20} {'answer':<8} {'told':<13} {'wrong':>5}    {'':<6} "
    f"{'share':>8} {'95% upper':>10} {'certified':>10} {'pulls':>7} {'CPU ms':>7}"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check from the command line; the exit status says whether delta was kept."""
    started = time.perf_counter()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.delta_correctness", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--instances", type=int, default=2000, help="per row (default: 2000)")
    parser.add_argument("--delta", type=float, default=0.1, help="default: 0.1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, help="also write the JSON to this file")
    options = parser.parse_args(arguments)
    if options.instances < 1 or options.workers < 1:
        parser.error("--instances and --workers must be at least 1.")

    rows = []
    if not options.json:
        print(_HEADER, flush=True)
    for row in check(
        instances=options.instances,
        delta=options.delta,
        seed=options.seed,
        workers=options.workers,
    ):
        rows.append(row)
        seconds = time.perf_counter() - started
        progress(f"{len(rows)} of {len(CONDITIONS)} rows, {seconds:.0f} s")
        if not options.json:
            print(_line(row), flush=True)
    kept = all(row.upper <= options.delta for row in rows if row.condition.shrink == 1.0)
    powerful = all(row.share > options.delta for row in rows if row.condition.shrink < 1.0)
    command = [f"--{name}={getattr(options, name)}" for name in ("instances", "delta", "seed")]
    content = as_json(
        provenance("benchmarks.delta_correctness", command)
        | {
            "delta": options.delta,
            "seed": options.seed,
            "seconds": round(time.perf_counter() - started, 1),
            "delta_kept": kept,
            "control_exceeds_delta": powerful,
            "rows": [asdict(row) for row in rows],
        }
    )
    if options.json:
        print(content, end="")
    else:
        print(
            f"delta = {options.delta:g}: every bound but the control's is "
            f"{'at most' if kept else 'NOT at most'} delta; the control "
            f"{'exceeds it' if powerful else 'does NOT exceed it'}."
        )
    if options.output:
        write(options.output, content)
    return 0 if kept and powerful else 1


if __name__ == "__main__":
    sys.exit(main())
