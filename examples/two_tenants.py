"""Two tenants share this machine, and each looks after itself. What will they settle on?

The trainer grows LightGBM models, several at once, each on a sample of so many rows. The server
answers requests with a support vector machine, in several threads, each answering so many at once.
Both run at the same time, each in a process of its own, and are measured for some seconds: that is
the fidelity. Each gets the logarithm of its throughput, less a price for its threads. (So 0.1 is
worth 10% of its throughput. A tree on four times the rows counts twice, and an answer counts less
the longer it takes.)

Who starts another thread gets a larger share of the cores, at the other's expense. So both start
more than they would if they had agreed, and both are worse off: a dilemma, whose equilibrium is not
on the Pareto front. `NashSampler` looks for it. Beside it stands what Optuna's `best_trials` offers
instead, and what each tenant would gain there by deviating, by the model and measured again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from mfhpo.games.dissatisfaction import Estimate
from mfhpo_optuna import NashSampler, plot_dissatisfaction, plot_equilibrium

PLAYERS = {"trainer": ["models", "rows"], "server": ["threads", "batch"]}
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PRICE = 0.2 / CORES  # of a thread
MOST_THREADS = 6 * CORES
MOST_ROWS = 16384
TREES = 50  # of a model
PATIENCE = 0.05  # seconds; an answer that takes so long counts 1 / e
SHOWN = 8  # trials of the Pareto front

# What the tenants do, each in a process of its own.

Job = Callable[[float], float]
"""Works until a time, and returns how much it got done."""


def trainer() -> Callable[[int, int], tuple[int, Job]]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((MOST_ROWS, 20))
    y = x[:, 0] * x[:, 1] + np.sin(3.0 * x[:, 2]) + rng.standard_normal(MOST_ROWS)
    settings = {"objective": "regression", "max_bin": 63, "min_data_in_leaf": 3}
    settings |= {"num_threads": 1, "verbose": -1}

    def prepared(models: int, rows: int) -> tuple[int, Job]:
        def grow(until: float) -> float:
            grown = 0
            while True:
                sample = np.random.default_rng().integers(MOST_ROWS, size=rows)
                data = lightgbm.Dataset(x[sample], y[sample], params=settings)
                model = lightgbm.Booster(settings, data)
                for _ in range(TREES):
                    if time.perf_counter() > until and grown:
                        return grown * math.sqrt(rows)
                    model.update()
                    grown += 1

        return models, grow

    return prepared


def server() -> Callable[[int, int], tuple[int, Job]]:
    pixels, digit = load_digits(return_X_y=True)
    model = SVC().fit(pixels, digit)

    def prepared(threads: int, batch: int) -> tuple[int, Job]:
        def answer(until: float) -> float:
            worth = 0.0
            while (asked := time.perf_counter()) < until or not worth:
                model.predict(pixels[:batch])
                worth += batch * math.exp(-(time.perf_counter() - asked) / PATIENCE)
            return worth

        return threads, answer

    return prepared


def tenant(move_in: Callable[[], Callable[..., tuple[int, Job]]], orders: Connection) -> None:
    """Measure the throughput of a job, per second, as often as ordered."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the landlord's, who ends the process
    prepared = move_in()
    # Without the other end, when the landlord is gone: this process ends as well.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            n_threads, work = prepared(**orders.recv())
            with ThreadPoolExecutor(n_threads) as threads:
                orders.send("ready")
                seconds = orders.recv()
                began = time.perf_counter()
                done = sum(threads.map(work, [began + seconds] * n_threads))
                orders.send(done / (time.perf_counter() - began))


@contextlib.contextmanager
def tenants() -> Iterator[list[Connection]]:
    """Both processes, for as long as the block lasts and however it is left."""
    context = multiprocessing.get_context("spawn")
    processes, ends = [], []
    try:
        for move_in in (trainer, server):
            end, other = context.Pipe()
            process = context.Process(target=tenant, args=(move_in, other), daemon=True)
            process.start()
            other.close()
            processes.append(process)
            ends.append(end)
        yield ends
    finally:
        for process in processes:
            process.kill()
            process.join()


def measure(ends: list[Connection], params: Mapping[str, Any], seconds: float) -> list[float]:
    """Both tenants' utilities, while they run side by side."""
    for end, own in zip(ends, PLAYERS.values(), strict=True):
        end.send({name: params[name] for name in own})
    for end in ends:
        end.recv()  # both are ready
    for end in ends:
        end.send(seconds)
    rates = [end.recv() for end in ends]
    threads = [params["models"], params["threads"]]
    return [math.log(rate) - PRICE * n for rate, n in zip(rates, threads, strict=True)]


# Why not the Pareto front?


class Believed:
    """What the sampler's model says of profiles other than the one that it recommends."""

    def __init__(self, study: optuna.Study, sampler: NashSampler) -> None:
        self._game = sampler.replay(study, lambda game: lambda trial, query, values: None)

    def deviations(self, params: Mapping[str, Any]) -> list[tuple[float, dict[str, Any]]]:
        """What each player would gain by its best deviation from a profile, and where that is."""
        space, policy = self._game.space, self._game.policy
        if policy is None:
            return []
        actions, target = policy.actions, len(policy.costs) - 1
        places = {name: space.place(name, params[name]) or 0.0 for name in actions.parameters}
        here = actions.space.place(places, np.random.default_rng(0))[None, :]
        found = []
        for player, model in enumerate(policy.models):
            there = policy.beliefs.best_response(here, player, Estimate.MEAN)
            moved = model.mean(actions.features(np.concatenate((here, there))), target)
            gain = max(float(moved[1] - moved[0]), 0.0)
            at = there[0] if gain else here[0]
            found.append((gain, space.params(actions.space.at(at))))
        return found


def text(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={params[name]}" for names in PLAYERS.values() for name in names)


def show_front(study: optuna.Study, believed: Believed) -> Mapping[str, Any]:
    """Print the Pareto front, and return the profile on it that is best for both together."""
    front = sorted(study.best_trials, key=lambda trial: -sum(trial.values))
    rows = [(trial, [gain for gain, _ in believed.deviations(trial.params)]) for trial in front]
    print(f"\nOptuna's Pareto front has {len(rows)} trials. By the model, from there would gain:")
    for trial, gains in rows[:SHOWN]:
        would_gain = "  ".join(
            f"{who} {gain:4.2f}" for who, gain in zip(PLAYERS, gains, strict=True)
        )
        print(
            f"  {would_gain}  at {text(trial.params)} (trial {trial.number}, measured for "
            f"{trial.params['seconds']:g} s)"
        )
    if len(rows) > SHOWN:
        print(f"  and {len(rows) - SHOWN} more")
    return front[0].params


def check(what: str, params: Mapping[str, Any], believed: Believed, rounds: int, run: Any) -> None:
    """Measure a profile and what each player would change, in turn, and print the gains."""
    deviations = believed.deviations(params)
    stay, gains = [], []
    for _ in range(rounds):
        here = run(params)
        stay.append(here)
        gains.append(
            [run(there)[player] - here[player] for player, (_, there) in enumerate(deviations)]
        )
    print(f"\n{what}, measured again {rounds} times: {text(params)}")
    for player, (name, own) in enumerate(PLAYERS.items()):
        promised, there = deviations[player]
        gained = [row[player] for row in gains]
        error = np.std(gained, ddof=1) / math.sqrt(rounds) if rounds > 1 else math.inf
        moves = ", ".join(f"{name}={there[name]}" for name in own)
        print(
            f"  {name:8} has {np.mean([row[player] for row in stay]):5.2f}, and gains "
            f"{np.mean(gained):5.2f} ± {error:.2f} by {moves} ({promised:.2f} by the model)"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds of measurement (default: 60)"
    )
    parser.add_argument(
        "--longest", type=float, default=2.0, help="seconds of the longest one (default: 2)"
    )
    parser.add_argument("--storage", help="SQLite file to go on from, such as tenants.db")
    parser.add_argument("--output", default="two_tenants.html", help="default: two_tenants.html")
    parser.add_argument(
        "--rounds", type=int, default=5, help="in which gains are measured again (default: 5)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    options = parser.parse_args(arguments)

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the sampler's line of progress is enough
    sampler = NashSampler(
        PLAYERS,
        fidelity="seconds",  # one run serves both players
        averaging=True,  # a longer measurement is the same one, with less noise
        budget=options.budget,
        seed=options.seed,
    )
    study = optuna.create_study(
        study_name="two tenants",
        storage=f"sqlite:///{options.storage}" if options.storage else None,
        load_if_exists=True,
        directions=["maximize", "maximize"],
        sampler=sampler,
    )
    lengths = [options.longest / shorter for shorter in (8, 4, 2, 1)]

    with tenants() as ends:

        def objective(trial: optuna.Trial) -> list[float]:
            params = {
                "models": trial.suggest_int("models", 1, MOST_THREADS, log=True),
                "rows": trial.suggest_int("rows", 256, MOST_ROWS, log=True),
                "threads": trial.suggest_int("threads", 1, MOST_THREADS, log=True),
                "batch": trial.suggest_int("batch", 1, 256, log=True),
            }
            return measure(ends, params, trial.suggest_categorical("seconds", lengths))

        study.optimize(objective)  # stops by itself
        answer = sampler.equilibrium(study)
        print(f"{CORES} cores; a thread costs {PRICE:.3g}\n\n{answer}")

        believed = Believed(study, sampler)
        agreed = show_front(study, believed)

        if options.rounds:

            def run(params: Mapping[str, Any]) -> list[float]:
                return measure(ends, params, options.longest)

            check("The equilibrium", answer.params, believed, options.rounds, run)
            check("The front's best for both together", agreed, believed, options.rounds, run)

    if importlib.util.find_spec("plotly") is not None:
        figures = [plot_equilibrium(study), plot_dissatisfaction(study)]
        parts = [
            figure.to_html(full_html=False, include_plotlyjs=i == 0)
            for i, figure in enumerate(figures)
        ]
        Path(options.output).write_text("\n".join(parts), encoding="utf-8")
        print(f"\n{options.output} shows how it went; open it in a browser.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
