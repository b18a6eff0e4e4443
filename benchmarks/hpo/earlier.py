"""The worth of earlier results and beliefs: regrets after few full evaluations.

    python -m benchmarks.hpo.earlier --judged --seeds 5 --output earlier.json

The eight sources of a task are studies of 60 trials by Optuna's TPE on other data sets of its
family, none of which judges any method. The same configurations are enqueued in a study of TPE,
which evaluates all at the target. "Reversed" sources take the worst of their trials for the best. A
belief is about all parameters: "right" is the best of 1,000 random configurations on the task
itself, and "wrong" the worst. Regret is in points of accuracy, of what would be handed over after
so many full evaluations, at whatever level it was seen. A ratio is to the search that knows
nothing, on the median task. Records are kept; a command that was stopped goes on where it was.
"""

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import TPESampler

from benchmarks.hpo.identity import identity_of
from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.play import play
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.families import tasks_of
from benchmarks.hpo.record import Record, append, file_of, read
from benchmarks.hpo.reference import Reference, reference
from benchmarks.hpo.scores import known_best
from benchmarks.hpo.space import Categorical, Configuration, ConfigurationSpace, Integer
from benchmarks.hpo.tasks import judged_tasks
from benchmarks.peers.optuna import suggest
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from mfhpo import Fidelity
from mfhpo.experiment import Assignment, Ended, Experiment, SearchSettings
from mfhpo.knowledge.earlier import first_configurations
from mfhpo.knowledge.space import Numeric, OneOf, Point, place_in_range
from mfhpo.search import DeclaredSearch, EarlierResults

BUDGETS = (3.0, 5.0, 10.0, 20.0, 50.0)
FAMILIES = ("lcbench", "rbv2_xgboost")
NOTHING_KNOWN = "search"
_LESS = ("search, reversed", "search, belief right", "search, belief wrong")
_LESS_BUDGET = 20.0  # of these, to save time
_SOURCES, _POOL, _TRIALS = 8, 16, 60
_RANDOM = 1_000
_VALUE = "accuracy"


class Space:
    """A space of a problem, as `mfhpo.experiment` searches it."""

    def __init__(self, space: ConfigurationSpace) -> None:
        self._space = space
        self.kinds = {name: _kind(one) for name, one in space.parameters.items()}

    def draw(self, point: Point | None, key: Sequence[int]) -> tuple[dict[str, Any], Point]:
        """Return the configuration at a point, the rest drawn, and its own point."""
        places = dict(
            zip(self.kinds, np.random.default_rng(key).random(len(self.kinds)), strict=True)
        )
        for name, place in (point or {}).items():
            kind = self.kinds[name]
            places[name] = (place + 0.5) / kind.n if isinstance(kind, OneOf) else place
        configuration = self._space.at(list(places.values()))
        return configuration, self.place(configuration)

    def place(self, values: Mapping[str, Any]) -> Point:
        """Return the point of some values."""
        parameters = self._space.parameters
        return {name: _place(parameters[name], value) for name, value in values.items()}


def _kind(parameter: Any) -> Numeric | OneOf:
    if isinstance(parameter, Categorical):
        return OneOf(len(parameter.choices))
    if isinstance(parameter, Integer):
        return Numeric.stepwise(parameter.at, lambda value: _place(parameter, value))
    return Numeric()


def _place(parameter: Any, value: Any) -> float:
    if isinstance(parameter, Categorical):
        return float(parameter.choices.index(value))
    half = 0.5 if isinstance(parameter, Integer) else 0.0
    place = place_in_range(value, parameter.low - half, parameter.high + half, parameter.log)
    return min(max(place, 0.0), 1.0)


# What is known beforehand.


@cache
def _study(task: str) -> tuple[tuple[Configuration, float], ...]:
    """Return the trials of an earlier study, with their noisy values."""
    problem, found = problem_named(task), []
    seed = number_of(task)

    def objective(trial: optuna.Trial) -> float:
        configuration = suggest(trial, problem.space)
        value = problem.objective_function(
            configuration, problem.fidelity.target, seed + trial.number
        ).value
        found.append((configuration, value))
        return value

    study = optuna.create_study(direction="maximize", sampler=TPESampler(seed=seed % 2**31))
    study.optimize(objective, n_trials=_TRIALS)
    return tuple(found)


def number_of(text: str) -> int:
    """Return a whole number below 2**31 that depends on a text alone."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)


def sources(task: str, seed: int, reverse: bool = False) -> list[EarlierResults]:
    """Return the results of eight earlier studies on other data sets, drawn by a seed."""
    family = task.partition(" ")[0]
    judged = {*judged_tasks()}
    names = sorted((f"{family} {one}" for one in tasks_of(family)), key=number_of)
    pool = [name for name in names if name not in judged | {task}][:_POOL]
    chosen = np.random.default_rng([seed, number_of(task)]).permutation(pool)[:_SOURCES]
    return [
        EarlierResults(
            [{**configuration, _VALUE: value} for configuration, value in _study(str(name))],
            value=_VALUE,
            direction="minimize" if reverse else "maximize",
        )
        for name in chosen
    ]


@cache
def _ranked_at_random(task: str) -> list[Configuration]:
    problem = problem_named(task)
    rng = np.random.default_rng(number_of(task))
    drawn = [problem.space.draw(rng) for _ in range(_RANDOM)]
    return sorted(drawn, key=lambda one: problem.true_value(one) or 0.0)


# Methods.


def search(meter: Meter, seed: int, **known: Any) -> None:
    """Run this project's search; it recommends where a budget ends."""
    problem, fidelity = meter.problem, meter.problem.fidelity
    levels = tuple(range(len(fidelity.levels)))
    costs = tuple(level / fidelity.target for level in fidelity.levels)
    declared = DeclaredSearch.of(
        Fidelity("level", levels=levels, costs=costs),
        certify_share=0.0,
        checkpoints=fidelity.continues,
        **known,
    )
    experiment = Experiment(
        SearchSettings(declared=declared, levels=levels, space=Space(problem.space), seed=seed)
    )
    waiting = [*BUDGETS]
    while True:
        work = experiment.next()
        assert isinstance(work, Assignment)
        price = meter.cost_of(work.configuration, work.level)
        while waiting and meter.cost + price > waiting[0] + 1e-9:
            waiting.pop(0)
            leader = experiment.runner.policy.search.leader()
            if leader is not None:
                meter.recommend(experiment.runner.configurations[leader], claim=None)
        begun = work.begun(str(experiment.n_begun), experiment.order)
        experiment.apply(begun)
        value = meter.evaluate(work.configuration, work.level)
        experiment.apply(Ended(id=begun.id, order=experiment.order, value=value))


def tpe(meter: Meter, seed: int, earlier: Sequence[Any] = ()) -> None:
    """Run Optuna's TPE at the target, with configurations enqueued."""
    study = optuna.create_study(direction="maximize", sampler=TPESampler(seed=seed))
    for configuration in first_configurations(earlier):
        study.enqueue_trial(configuration)
    best = -math.inf
    while True:
        trial = study.ask()
        configuration = suggest(trial, meter.problem.space)
        value = meter.evaluate(configuration, len(meter.problem.fidelity.levels) - 1)
        study.tell(trial, value)
        if value > best:
            best = value
            meter.recommend(configuration, claim=None)


def methods_of(task: str, seed: int) -> dict[str, Callable[[Meter, int], None]]:
    """Return the methods by name, with what they know about a task."""
    ranked, given, reverse = _ranked_at_random(task), sources(task, seed), sources(task, seed, True)
    return {
        NOTHING_KNOWN: search,
        "search, earlier": lambda meter, own: search(meter, own, earlier=given),
        "search, reversed": lambda meter, own: search(meter, own, earlier=reverse),
        "search, belief right": lambda meter, own: search(meter, own, beliefs=ranked[-1]),
        "search, belief wrong": lambda meter, own: search(meter, own, beliefs=ranked[0]),
        "TPE": tpe,
        "TPE, enqueued": lambda meter, own: tpe(meter, own, given),
    }


# What is played and reported.


def tasks_to_play(judged: bool, each: int) -> list[str]:
    """Return the first tasks of each family, of those that judge or of those for development."""
    named = judged_tasks() if judged else DEVELOPMENT_TASKS
    return [
        task
        for family in FAMILIES
        for task in [one for one in named if one.startswith(f"{family} ")][:each]
    ]


def played(tasks: Sequence[str], seeds: int, folder: Path) -> list[Record]:
    """Play what was not played yet by the present code, seed after seed; return all records."""
    identity, records = identity_of(OURS), []
    for seed in range(seeds):
        for task in tasks:
            problem = problem_named(task)
            for name, method in methods_of(task, seed).items():
                budget = _LESS_BUDGET if name in _LESS else BUDGETS[-1]
                file = file_of(name, task, folder)
                known = [one for one in read([file] if file.exists() else []) if one.seed == seed]
                record = next((one for one in known if one.identity == identity), None)
                if record is None:
                    record = play(name, method, problem, budget, seed, identity)
                    append(record, file)
                if record.crash:
                    raise RuntimeError(record.crash)
                records.append(record)
            progress(f"{task}, seed {seed}")
    return records


def table(records: Sequence[Record], references: Mapping[str, Reference]) -> list[dict[str, Any]]:
    """For each family and method, mean regrets by budget, and their ratios on the median task."""
    best = known_best(records, references)
    losses: dict[tuple[str, str], list[list[float]]] = {}
    for one in records:
        when = np.searchsorted(np.array(one.cost), np.array(BUDGETS) + 1e-9, side="right")
        values = [best[one.problem].median, *one.value]
        row = [best[one.problem].best - float(values[n] or 0.0) for n in when]
        losses.setdefault((one.method, one.problem), []).append(row)
    means = {key: np.mean(rows, axis=0) for key, rows in losses.items()}
    rows = []
    for family in FAMILIES:
        tasks = [task for task in references if task.startswith(f"{family} ")]
        for method in dict.fromkeys(one.method for one in records):
            last = _LESS_BUDGET if method in _LESS else BUDGETS[-1]
            n = sum(budget <= last for budget in BUDGETS)
            own = np.array([means[method, task] for task in tasks])[:, :n]
            usual = np.array([means[NOTHING_KNOWN, task] for task in tasks])[:, :n]
            ratios = np.median(own / np.maximum(usual, 1e-9), axis=0)
            rows.append(
                {
                    "family": family,
                    "method": method,
                    "regret": [round(float(one), 2) for one in own.mean(axis=0)],
                    "ratio": [round(float(one), 2) for one in ratios],
                }
            )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judged", action="store_true", help="tasks that judge, once per release")
    parser.add_argument("--tasks", type=int, default=4, help="of each family (default: 4)")
    parser.add_argument("--seeds", type=int, default=5, help="default: 5")
    parser.add_argument("--records", type=Path, default=Path("benchmarks/results/.earlier"))
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options.records.mkdir(parents=True, exist_ok=True)
    tasks = tasks_to_play(options.judged, options.tasks)
    records = played(tasks, options.seeds, options.records)
    rows = table(records, {task: reference(problem_named(task)) for task in tasks})
    for row in rows:
        print(row)
    if options.output:
        given = [*["--judged"] * options.judged, f"--tasks {options.tasks}"]
        given.append(f"--seeds {options.seeds}")
        report = provenance("benchmarks.hpo.earlier", given, "optuna")
        report |= {"seeds": options.seeds, "tasks": tasks, "budgets": list(BUDGETS)}
        report |= {"unit": "points", "table": rows}
        ours = [name for name in dict.fromkeys(one.method for one in records) if "TPE" not in name]
        identities = sorted({one.identity for one in records})
        report |= {"ours": ours, "identities": dict.fromkeys(ours, identities)}
        write(options.output, as_json(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
