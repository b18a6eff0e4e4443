"""A random forest and its time limit, chosen on the fly (Bengs and Hüllermeier 2023, Section 5.2).

    python -m benchmarks.papers.rcucb_forest --build --output results.json --figure results.html

In every round a configuration and a time limit are chosen, a forest is trained on a fresh split of
the data, and its quality is the reward, unless the training took longer than the limit. How much is
gained in 13,440 rounds, and how often is a training stopped for nothing? The methods are those of
`benchmarks.papers.rcucb`.

The trainings are recorded once (`--build`, several minutes on one core) and replayed: 672
configurations on 40 splits of scikit-learn's diabetes data, which stand in for the paper's Ames
housing data. The seconds are CPU time of the process. Rewards are 1 minus the root mean squared
error on the test part over the range of the target. As in the paper, the limits are an equidistant
grid of 10 over the interquartile range of the durations when each configuration is run once, which
is here on the first split; time is measured in units of the third quartile. The paper's cost
c(x) = x would make gains smaller than -1 beyond that unit: it is min(x, 1) here. The penalty is
PAR-10, lambda(x) = 10 x.
"""

import argparse
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.folder import cache_folder
from benchmarks.papers.rcucb import COLOURS, without_curves
from benchmarks.papers.rcucb_cases import DEFAULT, METHODS, play
from benchmarks.papers.rcucb_instances import ArmStreams, ReplayedCensoredInstance
from benchmarks.papers.rcucb_runs import checkpoints, one_seed, standard_error
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, html_page, numba_if_installed, progress, verdict, write
from mfhpo.censored import Linear
from mfhpo.knowledge.arrays import FloatArray

TREES = (10, 20, 30, 40, 50, 60, 70)
MAX_FEATURES = (1, 2, 3, 4, 6, 8)
MIN_LEAF = (3, 5, 7, 9)
BAG = (0.55, 0.632, 0.75, 0.8)
N_CONFIGURATIONS = len(TREES) * len(MAX_FEATURES) * len(MIN_LEAF) * len(BAG)
SPLITS = 40
N_LIMITS = 10
ROUNDS = 2 * N_CONFIGURATIONS * N_LIMITS
PENALTY = Linear(10.0)  # PAR-10
_TEST_SHARE = 0.3

# Published censoring, and cumulative reward and censoring of an independent implementation with a
# table of its own.
_PUBLISHED = {"published curves": 0.0589, "TS": 0.2843, "UCB": 0.2853}
_REFERENCE = {
    "printed": (10039, 0.0894),
    "published curves": (10760, 0.0231),
    "TS": (8147, 0.2604),
    "UCB": (6405, 0.4185),
}
_METHODS = (DEFAULT, "KL", "printed", "published curves", "UCB", "TS")


def capped(seconds: FloatArray) -> FloatArray:
    """A second costs 1, and no pull more than 1."""
    return np.minimum(seconds, 1.0)


@dataclass(frozen=True)
class ForestTable:
    """Recorded trainings: rewards and CPU seconds of every configuration on every split.

    Both have shape (configurations, splits). Configurations are ordered by `max_features`, leaf
    size, bag and number of trees, the last one changing fastest.
    """

    rewards: FloatArray
    seconds: FloatArray


def default_table() -> Path:
    """Where the table is kept: in the user's cache folder."""
    return cache_folder() / "random_forest.npz"


def build(splits: int = SPLITS, seed: int = 0) -> ForestTable:
    """Train the forests.

    One forest serves all numbers of trees: it grows, and each number's seconds are those of the
    trees so far. A first forest that is thrown away takes the time of imports and caches.
    """
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    features, target = load_diabetes(return_X_y=True)
    rewards, seconds = [], []
    started = time.perf_counter()
    for split in range(splits):
        parts = train_test_split(features, target, test_size=_TEST_SHARE, random_state=seed + split)
        if split == 0:
            list(_grow(parts, float(np.ptp(target)), MAX_FEATURES[0], MIN_LEAF[0], BAG[0], seed))
        grown = [
            each
            for setting in product(MAX_FEATURES, MIN_LEAF, BAG)
            for each in _grow(parts, float(np.ptp(target)), *setting, seed + split)
        ]
        rewards.append([reward for reward, _ in grown])
        seconds.append([taken for _, taken in grown])
        progress(f"split {split + 1} of {splits}: {time.perf_counter() - started:.0f} s")
    return ForestTable(np.array(rewards).T, np.array(seconds).T)


def _grow(
    parts: list[FloatArray], span: float, max_features: int, min_leaf: int, bag: float, seed: int
) -> Iterator[tuple[float, float]]:
    """Reward and CPU seconds of the training, by number of trees."""
    from sklearn.ensemble import RandomForestRegressor

    train, test, train_target, test_target = parts
    forest = RandomForestRegressor(
        max_features=max_features,
        min_samples_leaf=min_leaf,
        max_samples=bag,
        warm_start=True,
        random_state=seed,
    )
    taken = 0.0
    for trees in TREES:
        forest.set_params(n_estimators=trees)
        began = time.process_time()
        forest.fit(train, train_target)
        taken += time.process_time() - began
        errors = forest.predict(test) - test_target
        reward = 1.0 - float(np.sqrt(np.mean(errors**2))) / span
        yield min(max(reward, 0.0), 1.0), taken


def save(table: ForestTable, file: Path) -> None:
    """Write a table, and its folder if that is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        np.savez_compressed(opened, rewards=table.rewards, seconds=table.seconds)


def load(file: Path) -> ForestTable:
    """Read a table.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no table of this benchmark.
    """
    if not file.is_file():
        raise FileNotFoundError(f"There is no table {file}; build it with --build.")
    try:
        with zipfile.ZipFile(file), np.load(file, allow_pickle=False) as archive:
            rewards, seconds = archive["rewards"], archive["seconds"]
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{file} is no table of this benchmark ({error}); delete it and build it with --build."
        ) from error
    if rewards.ndim != 2 or rewards.shape != seconds.shape or len(rewards) != N_CONFIGURATIONS:
        raise ValueError(
            f"{file} must hold rewards and seconds of {N_CONFIGURATIONS} configurations, got "
            f"shapes {rewards.shape} and {seconds.shape}; delete it and build it with --build."
        )
    return ForestTable(rewards, seconds)


def problem(table: ForestTable) -> tuple[ReplayedCensoredInstance, FloatArray]:
    """What is replayed, and the limits; time is in units of the third quartile."""
    first, third = np.quantile(table.seconds[:, 0], (0.25, 0.75))
    instance = ReplayedCensoredInstance(table.rewards, table.seconds / third)
    return instance, np.linspace(first / third, 1.0, N_LIMITS)


@dataclass(frozen=True)
class Settings:
    """What the command was asked for."""

    table: Path
    repetitions: int = 10
    rounds: int = ROUNDS
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True)
class Row:
    """What one method did: means over the repetitions, and their standard errors.

    `reward` is what all rounds together earned, 0 for those that were stopped, and `gain` the
    expected gain of the pairs that were played, charges included. `curve` is the reward at `at`,
    and `curve_se` its standard error.
    """

    method: str
    repetitions: int
    rounds: int
    reward: float
    reward_se: float
    gain: float
    censored: float
    censored_se: float
    reference_reward: float | None
    reference_censored: float | None
    published_censored: float | None
    at: list[int]
    curve: list[float]
    curve_se: list[float]


@cache
def _loaded(file: Path) -> tuple[ReplayedCensoredInstance, FloatArray, FloatArray]:
    instance, limits = problem(load(file))
    return instance, limits, instance.gains(limits, capped, PENALTY)


def _run(task: tuple[str, int, Settings]) -> tuple[list[float], float, float]:
    """Reward at the checkpoints, expected gain, and share of censored rounds, of one repetition."""
    method, repetition, settings = task
    instance, limits, gains = _loaded(settings.table)
    # All methods have the same seeds.
    seeds = [settings.seed, repetition]
    policy = METHODS[method](instance.n_arms, limits, capped, PENALTY, one_seed(seeds))
    play(policy, ArmStreams(instance, seeds), settings.rounds)
    arms, granted, rewards, _ = policy.history.arrays()
    earned = np.cumsum(np.nan_to_num(rewards))
    played = gains[arms, np.searchsorted(limits, granted)]
    curve = earned[np.array(checkpoints(settings.rounds)) - 1].tolist()
    return curve, float(played.sum()), policy.n_censored / policy.pulls


def rows(settings: Settings) -> Iterator[Row]:
    """Run everything; each row as it is complete."""
    tasks = [
        (method, repetition, settings)
        for method in _METHODS
        for repetition in range(settings.repetitions)
    ]
    results = mapped(_run, tasks, settings.workers)
    for method in _METHODS:
        runs = [next(results) for _ in range(settings.repetitions)]
        curves = np.array([curve for curve, _, _ in runs])
        shares = np.array([share for _, _, share in runs])
        means, errors = curves.mean(axis=0), standard_error(curves)
        published = settings.rounds == ROUNDS
        reward, censored = _REFERENCE.get(method, (None, None)) if published else (None, None)
        yield Row(
            method=method,
            repetitions=len(runs),
            rounds=settings.rounds,
            reward=round(float(means[-1]), 1),
            reward_se=round(float(errors[-1]), 2),
            gain=round(float(np.mean([gain for _, gain, _ in runs])), 1),
            censored=round(float(shares.mean()), 5),
            censored_se=round(float(standard_error(shares)), 5),
            reference_reward=reward,
            reference_censored=censored,
            published_censored=_PUBLISHED.get(method) if published else None,
            at=checkpoints(settings.rounds),
            curve=[round(float(value), 1) for value in means],
            curve_se=[round(float(value), 2) for value in errors],
        )


def what_must_hold(found: Sequence[Row]) -> dict[str, bool]:
    """The default is ahead of both baselines, in what it earns and in what is stopped."""
    by_name = {row.method: row for row in found}
    ours, others = by_name[DEFAULT], (by_name["UCB"], by_name["TS"])
    rewards = " and ".join(f"{row.method}'s {row.reward:,.0f}" for row in others)
    shares = " and ".join(f"{row.method}'s {row.censored:.4f}" for row in others)
    return {
        f"the reward of {DEFAULT}, {ours.reward:,.0f}, exceeds {rewards}": all(
            ours.reward > row.reward for row in others
        ),
        f"the share censored of {DEFAULT}, {ours.censored:.4f}, is below {shares}": all(
            ours.censored < row.censored for row in others
        ),
    }


# What is written.

_HEADER = (
    f"{'method':<17} {'runs':>4} {'reward':>9} ± {'se':<6} {'reference':>9} {'gain':>9} "
    f"{'censored':>8} ± {'se':<6} {'reference':>9} {'published':>9}"
)


def _line(row: Row) -> str:
    reward = "" if row.reference_reward is None else f"{row.reference_reward:,.0f}"
    censored = "" if row.reference_censored is None else f"{row.reference_censored:.4f}"
    published = "" if row.published_censored is None else f"{row.published_censored:.4f}"
    return (
        f"{row.method:<17} {row.repetitions:>4} {row.reward:>9,.1f} ± {row.reward_se:<6.1f} "
        f"{reward:>9} {row.gain:>9,.0f} {row.censored:>8.4f} ± {row.censored_se:<6.4f} "
        f"{censored:>9} {published:>9}"
    )


def _picture(found: Sequence[Row]) -> Any:
    """Mean cumulative reward over the rounds, with its standard error."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for row in found:
        figure.add_trace(
            go.Scatter(
                x=row.at,
                y=row.curve,
                error_y={"array": row.curve_se, "thickness": 1, "width": 0},
                name=row.method,
                line={"color": COLOURS[row.method], "width": 3 if row.method == DEFAULT else 1.5},
                mode="lines",
            )
        )
    figure.update_xaxes(title="round", tickformat="~s")
    figure.update_yaxes(title="mean cumulative reward")
    figure.update_layout(template="plotly_white", height=480, font={"size": 12})
    return figure


def _always(settings: Settings) -> dict[str, float]:
    """What the best pair, by its gain, earns if it is played in every round."""
    instance, limits, gains = _loaded(settings.table)
    arm, place = (int(k) for k in np.unravel_index(int(gains.argmax()), gains.shape))
    free = Linear(0.0)
    earned = float(instance.gains(limits, free, free)[arm, place])
    return {
        "reward": round(settings.rounds * earned, 1),
        "gain": round(settings.rounds * float(gains[arm, place]), 1),
        "censored": round(float(instance.survival(limits)[arm, place]), 5),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether the default is ahead."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.rcucb_forest",
        description="Cumulative reward of RCUCB, UCB and TS choosing a forest and a time limit.",
    )
    parser.add_argument("--build", action="store_true", help="train the forests, if not done yet")
    parser.add_argument(
        "--table",
        type=Path,
        default=default_table(),
        help="of the trainings (default: %(default)s)",
    )
    parser.add_argument("--repetitions", type=int, default=10, help="default: 10")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    for name, least in {"repetitions": 2, "rounds": 1, "seed": 0, "workers": 1}.items():
        given = getattr(options, name)
        if given < least:
            parser.error(f"--{name} must be at least {least}, got {given}.")
    if options.build and not options.table.exists():
        save(build(), options.table)
    try:
        load(options.table)
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))

    began = time.perf_counter()
    settings = Settings(
        options.table, options.repetitions, options.rounds, options.seed, options.workers
    )
    print(_HEADER, flush=True)
    found = []
    for row in rows(settings):
        found.append(row)
        print(_line(row), flush=True)
    best = _always(settings)
    print(
        f"always the best pair: reward {best['reward']:,.1f}, gain {best['gain']:,.0f}, censored "
        f"{best['censored']:.4f}"
    )
    holds = what_must_hold(found)
    print(f"\n{verdict(holds)}", flush=True)
    seconds = time.perf_counter() - began
    progress(f"all: {seconds:.0f} s")

    if options.output:
        command = [
            f"--{name}={getattr(options, name)}" for name in ("repetitions", "rounds", "seed")
        ]
        report = provenance(
            "benchmarks.papers.rcucb_forest", command, "scikit-learn", *numba_if_installed()
        ) | {
            "seconds": round(seconds, 1),
            "holds": holds,
            "best_pair": best,
            "rows": [without_curves(row) for row in found],
        }
        write(options.output, as_json(report))
    if options.figure:
        picture = {"Cumulative reward of choosing a forest and a time limit": _picture(found)}
        write(options.figure, html_page("RCUCB on random forests", picture))
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
