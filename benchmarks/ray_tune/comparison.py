"""What a certificate costs, and what the answer of whoever gives none is worth."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.parallel import mapped
from benchmarks.ray_tune.methods import DELTA, METHODS, Answer, Race
from benchmarks.ray_tune.tables import table
from mfhpo.knowledge.arrays import FloatArray

Row = dict[str, Any]

# Configurations of a task, of which each race draws its own; ASHA has never got through so many.
_POOL = 8_000


@dataclass(frozen=True)
class Setting:
    """One race: where, how noisy, and how many arms."""

    task: str
    sigma: float
    arms: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """How good an answer is.

    Parameters
    ----------
    method
        Who gave it.
    task, sigma, seed
        In which race.
    cost, makespan
        What it took, in trainings of all epochs.
    regret
        How far it is below the best arm after the last epoch, in percent; below 0 if it is better
        than all of them, which a configuration from beyond them can be.
    gap
        What was claimed of it less the truth, in percent.
    certified
        Whether it came with a certificate.
    wrong
        Whether the certificate is wrong.
    """

    method: str
    task: str
    sigma: float
    seed: int
    cost: float
    makespan: float
    regret: float
    gap: float
    certified: bool
    wrong: bool


def judged(method: str, setting: Setting, race: Race, answer: Answer) -> Outcome:
    """Hold an answer against the table."""
    truth = float(race.means[answer.configuration])
    compared = range(race.arms) if answer.compared is None else answer.compared
    best_compared = float(race.means[list(compared)].max())
    return Outcome(
        method=method,
        task=setting.task,
        sigma=setting.sigma,
        seed=setting.seed,
        cost=answer.cost,
        makespan=answer.makespan,
        regret=float(race.means[: race.arms].max()) - truth,
        gap=answer.claim - truth,
        certified=answer.certified,
        wrong=answer.certified and best_compared - truth > race.epsilon,
    )


def _outcomes(methods: Sequence[str], data: Path | None, setting: Setting) -> list[Outcome]:
    pool = _pool(setting.task, data)
    values = pool[np.random.default_rng(setting.seed).permutation(len(pool))]
    race = Race(values, setting.arms, setting.sigma, epsilon=setting.sigma, seed=setting.seed)
    return [judged(name, setting, race, METHODS[name](race)) for name in methods]


@cache
def _pool(task: str, data: Path | None) -> FloatArray:
    return table(task, _POOL, 0, data)


def compare(
    methods: Sequence[str], settings: Sequence[Setting], data: Path | None, workers: int
) -> Iterator[list[Outcome]]:
    """Run all methods in all races; the outcomes of one race at a time."""
    return mapped(partial(_outcomes, methods, data), settings, workers)


def summary(outcomes: Sequence[Outcome]) -> list[Row]:
    """For each noise and method over all tasks, and for each task: medians and what is wrong."""
    rows = []
    sigmas = sorted({outcome.sigma for outcome in outcomes})
    tasks = list(dict.fromkeys(outcome.task for outcome in outcomes))
    methods = list(dict.fromkeys(outcome.method for outcome in outcomes))
    for sigma in sigmas:
        for task in (None, *tasks):
            for method in methods:
                chosen = [
                    outcome
                    for outcome in outcomes
                    if (outcome.sigma, outcome.method) == (sigma, method)
                    and task in (None, outcome.task)
                ]
                rows.append({"sigma": sigma, "task": task, "method": method, **_figures(chosen)})
    return rows


def _figures(outcomes: Sequence[Outcome]) -> Row:
    columns = {
        name: np.array([asdict(outcome)[name] for outcome in outcomes])
        for name in ("cost", "makespan", "regret", "gap", "certified", "wrong", "sigma")
    }
    quartiles = np.quantile(columns["cost"], [0.25, 0.75])
    return {
        "races": len(outcomes),
        "cost": _rounded(np.median(columns["cost"])),
        "cost_quartiles": [_rounded(value) for value in quartiles],
        "makespan": _rounded(np.median(columns["makespan"])),
        "regret": _rounded(columns["regret"].mean()),
        "regret_90": _rounded(np.quantile(columns["regret"], 0.9)),
        "regret_largest": _rounded(columns["regret"].max()),
        "beyond_epsilon": int((columns["regret"] > columns["sigma"]).sum()),
        "gap": _rounded(columns["gap"].mean()),
        "gap_absolute": _rounded(np.abs(columns["gap"]).mean()),
        "certified": int(columns["certified"].sum()),
        "wrong": int(columns["wrong"].sum()),
    }


def _rounded(value: Any) -> float:
    return round(float(value), 4)


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """What the figures must show, whichever way the comparison goes."""
    result = {}
    over_tasks = [row for row in rows if row["task"] is None and row["certified"]]
    for sigma in sorted({row["sigma"] for row in over_tasks}):
        # A method whose certificates keep their promise has more wrong ones once in a thousand.
        failing = [
            row["method"]
            for row in over_tasks
            if row["sigma"] == sigma and row["wrong"] > binom.ppf(0.999, row["certified"], DELTA)
        ]
        words = f"sigma {sigma:g}: no more wrong certificates than delta={DELTA:g} allows"
        result[f"{words}; but {', '.join(failing)}" if failing else words] = not failing
    return result


_HEADER = (
    f"{'method':35}{'cost':>8}{'(quartiles)':>18}{'span':>7}{'regret':>9}{'90 %':>7}{'largest':>9}"
    f"{'> eps':>7}{'gap':>7}{'|gap|':>7}{'certified':>11}{'wrong':>7}"
)


def table_of(rows: Sequence[Row]) -> str:
    """The rows over all tasks as text; costs in trainings of all epochs, the rest in percent."""
    lines = []
    over_tasks = [row for row in rows if row["task"] is None]
    for sigma in sorted({row["sigma"] for row in over_tasks}):
        chosen = [row for row in over_tasks if row["sigma"] == sigma]
        lines += [f"sigma {sigma:g}, {chosen[0]['races']} races", _HEADER]
        for row in chosen:
            low, high = row["cost_quartiles"]
            lines.append(
                f"{row['method']:35}{row['cost']:>8.1f}{f'({low:.1f} to {high:.1f})':>18}"
                f"{row['makespan']:>7.2f}{row['regret']:>9.2f}{row['regret_90']:>7.2f}"
                f"{row['regret_largest']:>9.2f}{row['beyond_epsilon']:>7}{row['gap']:>7.2f}"
                f"{row['gap_absolute']:>7.2f}{row['certified']:>11}{row['wrong']:>7}"
            )
        lines.append("")
    return "\n".join(lines)


def picture(rows: Sequence[Row]) -> Any:
    """What answers cost, and how far they are from the best arm; a row of panels for each noise."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    over_tasks = [row for row in rows if row["task"] is None]
    sigmas = sorted({row["sigma"] for row in over_tasks})
    panels = {
        "cost": "cost in trainings of all epochs, median",
        "regret": "regret in %, mean",
        "gap_absolute": "claim off the truth in %, mean",
    }
    figure = make_subplots(
        rows=len(sigmas),
        cols=len(panels),
        shared_yaxes=True,
        subplot_titles=[f"sigma {sigma:g} %: {name}" for sigma in sigmas for name in panels],
    )
    for row_number, sigma in enumerate(sigmas, 1):
        chosen = [row for row in over_tasks if row["sigma"] == sigma]
        for column, (figures, title) in enumerate(panels.items(), 1):
            figure.add_trace(
                go.Bar(
                    y=[row["method"] for row in chosen],
                    x=[row[figures] for row in chosen],
                    text=[f"{row[figures]:.3g}" for row in chosen],
                    orientation="h",
                    marker_color=["#d55e00" if row["certified"] else "#0072b2" for row in chosen],
                    showlegend=False,
                ),
                row=row_number,
                col=column,
            )
            figure.update_xaxes(title_text=title, row=row_number, col=column)
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(
        template="plotly_white",
        height=560 * len(sigmas),
        title="Orange: with certificates; blue: without any",
    )
    return figure
