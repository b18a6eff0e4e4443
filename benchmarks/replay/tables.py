"""The figures of the papers' tables, from few runs.

Sixty runs take less than two minutes for Table 1 only: the other tables get 2 to 20. Left out are
Figure 1 of mf_mab, most of mf_grad on synthetic A, the speeds of mf_ucb, and power allocation with
its budget in nash. The forests' trainings are invented: recorded ones hold a machine's seconds.
"""

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.papers import iise, mf_grad, mf_mab, mf_ucb_regret, nash, rcucb, rcucb_forest
from benchmarks.papers.nash_applications import access, informed_power

# What differs from run to run, or only puts figures into words.
_NO_FIGURES = {"command", "commit", "cpu_s", "date", "fingerprints", "holds", "machine"}
_NO_FIGURES |= {"seconds", "versions"}


def _written(main: Callable[[Sequence[str]], int], options: str, data: Path) -> Any:
    """The figures that a command writes."""
    said = io.StringIO()
    with TemporaryDirectory() as folder, redirect_stdout(said), redirect_stderr(said):
        file = Path(folder) / "figures.json"
        try:
            main([*options.format(data=data / "iise").split(), "--output", str(file)])
        except SystemExit as error:
            raise ValueError(said.getvalue()) from error
        return _figures(json.loads(file.read_text(encoding="utf-8")))


def _figures(report: Any) -> Any:
    if isinstance(report, dict):
        return {name: _figures(own) for name, own in report.items() if name not in _NO_FIGURES}
    return [_figures(row) for row in report] if isinstance(report, list) else report


def _reward(data: Path) -> Any:
    ratios = mf_ucb_regret.ratios(list(mf_ucb_regret.INSTANCES), runs=20, most=1e6)
    budgets = [1e5, 1e6, 1e7, 1e8]
    exponents = mf_ucb_regret.exponents(mf_ucb_regret.NUMBERS_OF_ARMS, budgets, n_gaps=10, seeds=60)
    return [[asdict(row) for row in ratios], [asdict(row) for row in exponents]]


def _forests(data: Path) -> Any:
    rng = np.random.default_rng(0)
    seconds = np.geomspace(0.01, 0.2, rcucb_forest.N_CONFIGURATIONS) * rng.gamma(20.0, size=(6, 1))
    table = rcucb_forest.ForestTable(rng.uniform(0.7, 0.9, seconds.T.shape), seconds.T)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "table.npz"
        rcucb_forest.save(table, file)
        return _written(rcucb_forest.main, f"--repetitions 4 --workers 1 --table {file}", data)


def _applications(data: Path) -> Any:
    return _figures([access(0), informed_power((0, 36_000.0))])


_COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "rcucb": (rcucb.main, "--repetitions 2 --workers 1"),
    "mf_mab": (mf_mab.main, "--parts table3 --runs 10 --workers 1"),
    "mf_grad": (
        mf_grad.main,
        "--data {data} --runs 20 --workers 1 --instances bai_5x2 bai_4x5 forever synthetic_a_top20",
    ),
    "mf_grad, 2,000 arms": (
        mf_grad.main,
        "--data {data} --runs 500 --workers 1 --instances synthetic_a --algorithms IISE SE",
    ),
    "iise": (iise.main, "--data {data} --runs 60"),
    "nash": (nash.main, "--games 3 --applications 0 --workers 1"),
}
TABLES: dict[str, Callable[[Path], Any]] = {
    **{f"table {name}": partial(_written, *command) for name, command in _COMMANDS.items()},
    "table mf_ucb": _reward,
    "table rcucb_forest": _forests,
    "table nash, applications": _applications,
}
"""By name, what plays a run, given the folder of the data."""
