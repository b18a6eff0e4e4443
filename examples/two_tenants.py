"""Two tenants share this machine, and each looks after itself. What will they settle on?

The trainer grows LightGBM models, several at once, each on a sample of so many rows. The server
answers requests with a support vector machine, in several threads, each answering so many at once.
Both run side by side, each in a process of its own, and are measured for some seconds: that is the
fidelity. Each gets the logarithm of its throughput, so that 0.1 more is worth about 10% of it, less
a price for its threads. (A tree on four times the rows counts twice, a late answer less.)

Who starts another thread gets a larger share of the cores, at the other's expense. So both start
more of them than they would if they had agreed, and both are worse off: a dilemma, and its
equilibrium, which `NashSampler` looks for, is not on the Pareto front. Beside it stands what
Optuna's `best_trials` offers instead, and what each tenant would gain there by deviating, first by
the model, and then measured again.
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import optuna
from optuna.trial import FrozenTrial
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from mfhpo.games import Deviation
from mfhpo_optuna import NashSampler, plot_dissatisfaction, plot_equilibrium

PLAYERS = {"trainer": ["models", "rows"], "server": ["threads", "batch"]}  # threads, their size
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PRICE = 0.2 / CORES  # of a thread
MOST_THREADS = 6 * CORES
MOST_ROWS = 16384
TREES = 50  # of a model
PATIENCE = 0.05  # an answer that takes so many seconds counts half
SHOWN = 6  # trials of the Pareto front

Params = dict[str, Any]
Run = Callable[[Params], dict[str, float]]  # of a profile, to both utilities
Job = Callable[[int, float, float], float]  # of a thread: (size, seconds, began) -> rate per second


# What the tenants do, each in a process of its own.


def trainer() -> Job:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((MOST_ROWS, 20))
    y = x[:, 0] * x[:, 1] + np.sin(3.0 * x[:, 2]) + rng.standard_normal(MOST_ROWS)
    settings = {"max_bin": 63, "min_data_in_leaf": 3, "num_threads": 1, "verbose": -1}

    def grow(rows: int, seconds: float, began: float) -> float:
        grown = 0
        while True:
            sample = np.random.default_rng().integers(MOST_ROWS, size=rows)
            data = lightgbm.Dataset(x[sample], y[sample], params=settings)
            model = lightgbm.Booster(settings, data)
            for _ in range(TREES):
                model.update()
                grown += 1
                if (elapsed := time.perf_counter() - began) > seconds:
                    return grown * math.sqrt(rows) / elapsed

    return grow


def server() -> Job:
    pixels, digit = load_digits(return_X_y=True)
    model = SVC().fit(pixels, digit)

    def answer(batch: int, seconds: float, began: float) -> float:
        worth, elapsed = 0.0, 0.0
        while elapsed < seconds:
            asked = time.perf_counter()
            model.predict(pixels[:batch])
            answered = time.perf_counter()
            worth += batch / (1.0 + (answered - asked) / PATIENCE)
            elapsed = answered - began
        return worth / elapsed

    return answer


def tenant(move_in: Callable[[], Job], orders: Connection) -> None:
    """Work whenever ordered to, and report the throughput of all threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    job = move_in()
    # When that process is gone, however it ended, so is the other end of the pipe.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            n_threads, size = orders.recv()
            with ThreadPoolExecutor(n_threads) as threads:
                orders.send("ready")
                order = size, orders.recv(), time.perf_counter()
                running = [threads.submit(job, *order) for _ in range(n_threads)]
                orders.send(sum(thread.result() for thread in running))


@contextlib.contextmanager
def tenants() -> Iterator[list[Connection]]:
    """Pipes to both processes, which end with the block, however it is left."""
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    try:
        for move_in in (trainer, server):
            pipe, other_end = context.Pipe()
            process = context.Process(target=tenant, args=(move_in, other_end), daemon=True)
            process.start()
            other_end.close()
            processes.append(process)
            pipes.append(pipe)
        yield pipes
    finally:
        for process in processes:
            process.kill()
            process.join()


def measure(pipes: list[Connection], seconds: float, params: Params) -> dict[str, float]:
    """Both tenants' utilities, while they run side by side."""
    for pipe, names in zip(pipes, PLAYERS.values(), strict=True):
        pipe.send([params[name] for name in names])
    for pipe in pipes:
        pipe.recv()  # both are ready
    for pipe in pipes:
        pipe.send(seconds)
    rates = [pipe.recv() for pipe in pipes]
    return {
        who: math.log(rate) - PRICE * params[threads]
        for (who, (threads, _)), rate in zip(PLAYERS.items(), rates, strict=True)
    }


# Why not the Pareto front?


def text(params: Params, *players: str) -> str:
    return ", ".join(f"{name}={params[name]}" for who in players for name in PLAYERS[who])


def show_front(study: optuna.Study, sampler: NashSampler, front: list[FrozenTrial]) -> None:
    print(f"\nOptuna's Pareto front has {len(front)} trials. By the model, these would gain there:")
    for trial in front[:SHOWN]:
        found = sampler.deviations(study, trial.params)
        print(
            "  " + ", ".join(f"{who} {of.gain.mean:.2f}" for who, of in found.items()),
            f"at {text(trial.params, *PLAYERS)} (measured for {trial.params['seconds']:g} s)",
        )


def show_measured(run: Run, rounds: int, params: Params, others: list[tuple[str, Params]]) -> None:
    """Measure a profile, and what players gain who deviate from it alone; print both."""
    stays, gains = [], []
    for _ in range(rounds):  # in turn: what else this machine does tells on all of them
        stays.append(run(params))
        gains.append([run(there)[who] - stays[-1][who] for who, there in others])
    utilities = ", ".join(f"{who} {np.mean([has[who] for has in stays]):.2f}" for who in PLAYERS)
    print(f"  {text(params, *PLAYERS)}: {utilities}")
    for (who, there), gained in zip(others, np.transpose(gains), strict=True):
        error = gained.std() / math.sqrt(rounds - 1) if rounds > 1 else math.inf
        print(f"    {who} gains {gained.mean():5.2f} ± {error:.2f} by {text(there, who)}")


def measure_again(
    run: Run, rounds: int, found: Params, agreed: Params, best: dict[str, Deviation]
) -> None:
    print("\nMeasured again. The equilibrium, and who takes half or twice the threads:")
    counts = [
        (who, {**found, name: n})
        for who, (name, _) in PLAYERS.items()
        for n in (found[name] // 2, found[name] * 2)
        if 1 <= n <= MOST_THREADS
    ]
    show_measured(run, rounds, found, counts)
    print("Had they agreed on half of the cores for each:")
    half = max(CORES // 2, 1)
    show_measured(run, rounds, {**found, "models": half, "threads": half}, [])
    print("The front's trial with the largest sum, and the model's best deviations from it:")
    others = [(who, dict(of.profile)) for who, of in best.items() if of.profile != agreed]
    show_measured(run, rounds, agreed, others)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--budget", type=float, default=60.0, help="seconds of measurement (default: 60)")
    add("--longest", type=float, default=2.0, help="seconds of the longest one (default: 2)")
    add("--rounds", type=int, default=3, help="in which gains are measured again (default: 3)")
    add("--storage", help="SQLite file, to stop (Ctrl-C) and go on: tenants.db")
    add("--output", default="two_tenants.html", help="default: two_tenants.html")
    add("--seed", type=int, default=0, help="of the search (default: 0)")
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
    lengths = [options.longest / share for share in (4, 2, 1)]

    with tenants() as pipes:

        def objective(trial: optuna.Trial) -> list[float]:
            params = {
                "models": trial.suggest_int("models", 1, MOST_THREADS, log=True),
                "rows": trial.suggest_int("rows", 256, MOST_ROWS, log=True),
                "threads": trial.suggest_int("threads", 1, MOST_THREADS, log=True),
                "batch": trial.suggest_int("batch", 1, 256, log=True),
            }
            seconds = trial.suggest_categorical("seconds", lengths)
            return list(measure(pipes, seconds, params).values())

        def stop_early(number: int, frame: object) -> None:
            signal.signal(number, signal.default_int_handler)  # the next Ctrl-C is obeyed at once
            study.stop()  # once the measurement is over

        before = signal.signal(signal.SIGINT, stop_early)
        study.optimize(objective)  # stops by itself
        signal.signal(signal.SIGINT, before)

        answer = sampler.equilibrium(study)
        print(f"{CORES} cores; a thread costs {PRICE:.3g}.\n\n{answer}")
        front = sorted(study.best_trials, key=lambda trial: sum(trial.values), reverse=True)
        show_front(study, sampler, front)
        if answer.finished and options.rounds > 0:
            run = partial(measure, pipes, options.longest)
            best = sampler.deviations(study, front[0].params)
            measure_again(run, options.rounds, answer.params, front[0].params, best)

    if importlib.util.find_spec("plotly") is not None:
        figures = [plot_equilibrium(study), plot_dissatisfaction(study)]
        html = [figure.to_html(include_plotlyjs=figure is figures[0]) for figure in figures]
        Path(options.output).write_text("\n".join(html), encoding="utf-8")
        print(f"\n{options.output} shows how it went; open it in a browser.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
