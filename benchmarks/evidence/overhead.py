"""What samplers, schedulers and time limits take for themselves."""

from collections.abc import Callable

from benchmarks.evidence.tables import distinct, only, result, table


def samplers() -> str:
    """Own time of the samplers per trial."""
    found = result("overhead")
    rows = [
        [f"`{name}`", *(f"{of[str(size)]['own']:.2f}" for size in found["sizes"])]
        for name, of in found["samplers"].items()
    ]
    return table(["ms per trial", *(f"at {size:,} trials" for size in found["sizes"])], rows)


def sqlite() -> str:
    """Time of a trial in a study on SQLite."""
    found = result("overhead")["sqlite_wall_ms"]
    return table(["", "ms per trial"], [[f"`{name}`", f"{ms:.0f}"] for name, ms in found.items()])


def imports() -> str:
    """What importing us adds to `import optuna`."""
    found = result("import_time")["seconds"].items()
    return table(["", "seconds"], [[f"`{code}`", f"{value:.2f}"] for code, value in found])


def schedulers() -> str:
    """Own time of schedulers in Ray Tune."""
    found = result("ray_tune")["overhead"]["rows"]
    sizes = distinct(found, "trials")
    rows = []
    for name in distinct(found, "scheduler"):
        cells = [only(found, scheduler=name, trials=size)["ms_per_result"] for size in sizes]
        rows.append([f"`{name}`", *(f"{cell:.2f}" for cell in cells)])
    return table(["ms per result", *(f"{size:,} trials" for size in sizes)], rows)


def time_limits() -> str:
    """What enforcing a limit takes."""
    found = result("time_limit")
    words = {
        "overhead": "overhead of a trial",
        "first_trial": "first trial, by start method",
        "late": "over after its limit",
    }
    rows = []
    for part, what in words.items():
        for which, row in found[part].items():
            cells = [row["median"], row["percentile_90"], row["largest"]]
            rows.append([what, which, *(f"{cell:.1f}" for cell in cells)])
    return table(["milliseconds", "", "median", "90 % below", "largest"], rows, words=2)


FIGURES: dict[str, Callable[[], str]] = {
    "samplers' time": samplers,
    "SQLite's time": sqlite,
    "import times": imports,
    "schedulers' time": schedulers,
    "time limits": time_limits,
}
