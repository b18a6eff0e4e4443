"""What long studies and many workers take."""

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.evidence.tables import distinct, percent, result, table

_OPTUNA = "RandomSampler"


def long_studies() -> str:
    """A process that goes on with a study of many trials: seconds, milliseconds and memory."""
    found = result("scale")["long"]
    rows = []
    for storage in distinct(found, "storage"):
        for size in sorted(distinct(found, "trials")):
            for row in found:
                if (row["storage"], row["trials"]) != (storage, size):
                    continue
                own, grown = row["own_cpu_ms"], row["mib_after"] - row["mib_before"]
                rows.append(
                    [
                        storage,
                        f"`{row['sampler']}`",
                        f"{size:,}",
                        f"{row['open_cpu_seconds'] + row['read_cpu_seconds']:.1f}",
                        f"{row['first_cpu_seconds']:.1f}",
                        f"{own[0]:.1f}",
                        f"{own[1]:.1f}",
                        f"{row['trial_wall_ms'][0]:.1f}",
                        f"{row['mib_after']:.0f}",
                        f"{1e3 * grown / size:.1f}",
                    ]
                )
    head = ["storage", "sampler", "trials", "reading, s", "first, s", "own, ms", "99 % below"]
    return table([*head, "whole trial, ms", "MiB", "MiB per 1,000"], rows, words=2)


def processes() -> str:
    """Trials per second of worker processes on PostgreSQL: medians."""
    found = result("scale")["processes"]
    rows = []
    for workers in sorted(distinct(found, "workers")):
        alone = _median(found, _OPTUNA, workers, "trials_per_second")
        for sampler in distinct(found, "sampler"):
            speed = _median(found, sampler, workers, "trials_per_second")
            rows.append(
                [
                    workers,
                    f"`{sampler}`",
                    f"{speed:.1f}",
                    percent(speed / alone),
                    f"{_median(found, sampler, workers, 'worker_cpu_ms'):.0f}",
                    f"{_median(found, sampler, workers, 'database_cpu_ms'):.0f}",
                    percent(_median(found, sampler, workers, "processor_busy")),
                ]
            )
    head = ["workers", "sampler", "trials per second", f"of `{_OPTUNA}`", "ms of a worker"]
    return table([*head, "ms of PostgreSQL", "processor had"], rows, words=2)


def _median(rows: list[dict[str, Any]], sampler: str, workers: int, name: str) -> float:
    found = (row[name] for row in rows if (row["sampler"], row["workers"]) == (sampler, workers))
    return float(statistics.median(found))


def clock() -> str:
    """How long workers wait for one driver, on a virtual clock."""
    found = result("scale")["clock"]
    rows = []
    for row in sorted(found, key=lambda row: row["workers"]):
        own, waiting = row["own_ms"], percent(row["waiting"], 2)
        name = f"`{row['sampler']}`"
        rows.append([row["workers"], name, f"{own[0]:.1f}", f"{own[1]:.1f}", waiting])
    return table(["workers", "sampler", "own, ms", "99 % below", "waiting"], rows, words=2)


FIGURES: dict[str, Callable[[], str]] = {
    "long studies": long_studies,
    "worker processes": processes,
    "workers on the clock": clock,
}
