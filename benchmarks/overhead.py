"""What samplers cost: CPU time per trial beside Optuna's own, for our samplers and their peers.

    python -m benchmarks.overhead --json

In memory, with 10 parameters and a fidelity, 32 equal arms and epsilon 0, so that no race ever
ends (those that maximise the reward have no budget). `MFSampler` runs one of the others. At 100,
1,000 and 10,000 trials the mean over a window of trials that ends there is taken, the median over
repeats of it is shown. "own" is the time inside the sampler's methods, "total" is the whole trial
with Optuna's part and an objective that does next to nothing. Peers see the same objective, and so
does `SearchSampler`, which searches for as long as it is asked. For those that would take minutes,
the study is filled with finished trials first.

A last line gives the wall-clock time per trial with SQLite on the disk of the temporary folder,
to be read beside a sampler that does nothing but draw at random.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, QMCSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial

from benchmarks.provenance import provenance
from mfhpo_optuna import (
    IISESampler,
    MFEliminationSampler,
    MFGradSampler,
    MFLUCBSampler,
    MFTopTwoSampler,
    MFUCBSampler,
    SearchSampler,
)
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.trials.attributes import ARM_KEY, CERTIFICATE_KEY, PullNote

_PARAMETERS = 10
_ARMS = 32
_LEVELS = (1, 3, 9, 27, 81)
_HOOKS = (
    "before_trial",
    "infer_relative_search_space",
    "sample_relative",
    "sample_independent",
    "after_trial",
)

# A small pilot, so that at 100 trials a race is past it.
_PILOT_ARMS = 5

OURS: dict[str, Callable[[int], StudySampler]] = {
    "IISESampler": lambda seed: IISESampler(
        "fidelity", _ARMS, epsilon=0.0, pilot_arms=_PILOT_ARMS, seed=seed
    ),
    "MFTopTwoSampler": lambda seed: MFTopTwoSampler(
        "fidelity", _ARMS, epsilon=0.0, pilot_arms=_PILOT_ARMS, seed=seed
    ),
    "MFLUCBSampler": lambda seed: MFLUCBSampler(
        "fidelity", _ARMS, epsilon=0.0, pilot_arms=_PILOT_ARMS, seed=seed
    ),
    "MFGradSampler": lambda seed: MFGradSampler(
        "fidelity", _ARMS, epsilon=0.0, pilot_arms=_PILOT_ARMS, seed=seed
    ),
    "MFUCBSampler": lambda seed: MFUCBSampler("fidelity", _ARMS, pilot_arms=_PILOT_ARMS, seed=seed),
    "MFEliminationSampler": lambda seed: MFEliminationSampler(
        "fidelity", _ARMS, pilot_arms=_PILOT_ARMS, seed=seed
    ),
}

SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    **OURS,
    "SearchSampler": lambda seed: SearchSampler("fidelity", seed=seed),
    "TPESampler": lambda seed: TPESampler(seed=seed),
    "QMCSampler": lambda seed: QMCSampler(seed=seed, warn_independent_sampling=False),
    "RandomSampler": lambda seed: RandomSampler(seed=seed),
}


@dataclass(frozen=True)
class Figure:
    """CPU milliseconds per trial of one sampler at one number of trials.

    `own` is spent in the sampler's methods, `total` on the whole trial. `prefilled` says that the
    trials before the window were added, not run.
    """

    own: float
    total: float
    window: int
    prefilled: bool


class Clock:
    """Adds up the CPU time inside a sampler's methods; the outermost call counts."""

    def __init__(self, sampler: BaseSampler) -> None:
        self.seconds = 0.0
        self._depth = 0
        for name in _HOOKS:
            setattr(sampler, name, self._timed(getattr(sampler, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            self._depth += 1
            started = time.process_time()
            try:
                return method(*arguments, **options)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.process_time() - started

        return timed


def objective(trial: optuna.Trial) -> float:
    """Ten parameters, a fidelity, and noise around the same mean for all of them."""
    for number in range(_PARAMETERS):
        trial.suggest_float(f"x{number}", 0.0, 1.0)
    trial.suggest_int("fidelity", 1, 81)
    # No cheap mixture of the number instead: a sampler may count by the same mixture.
    return float(np.random.default_rng(trial.number).random())


def measure(name: str, sizes: Sequence[int], repeats: int, seed: int) -> dict[int, Figure]:
    """Measure a sampler at several numbers of trials."""
    # These would take minutes: beyond this they are measured on added trials.
    run_up_to = 1_000 if name in ("TPESampler", "SearchSampler") else sys.maxsize
    samples: dict[int, list[Figure]] = {size: [] for size in sizes}
    for repeat in range(repeats):
        sampler = SAMPLERS[name](seed + repeat)
        clock = Clock(sampler)
        study = optuna.create_study(study_name=f"{name}-{repeat}", sampler=sampler)
        for size in sizes:
            done = _evaluations(study)
            prefilled = size > run_up_to
            window = 50 if prefilled else max(10, min(200, size // 5))
            if prefilled:
                tagged = isinstance(sampler, SearchSampler)
                _fill(study, size - window - done, np.random.default_rng(seed + repeat), tagged)
            else:
                study.optimize(objective, n_trials=size - window - done)
            if isinstance(sampler, StudySampler):
                reason = sampler.recommendation(study).reason
                if "pilot" in reason:
                    raise RuntimeError(f"after {size - window} trials: {reason}.")
            own, total = clock.seconds, time.process_time()
            study.optimize(objective, n_trials=window)
            total = time.process_time() - total
            own = clock.seconds - own
            samples[size].append(
                Figure(1e3 * own / window, 1e3 * total / window, window, prefilled)
            )
            if _evaluations(study) != size:
                raise RuntimeError(f"{name} ended before {size} trials; nothing was measured.")
    return {
        size: Figure(
            statistics.median(figure.own for figure in figures),
            statistics.median(figure.total for figure in figures),
            figures[0].window,
            figures[0].prefilled,
        )
        for size, figures in samples.items()
    }


def _evaluations(study: optuna.Study) -> int:
    """The number of trials, without those that a sampler added as answers."""
    trials = study.get_trials(deepcopy=False)
    return sum(CERTIFICATE_KEY not in trial.user_attrs for trial in trials)


def _fill(study: optuna.Study, number: int, rng: np.random.Generator, tagged: bool) -> None:
    """Add finished trials, as evaluations of new arms if they are to count in a search."""
    distributions: dict[str, BaseDistribution] = {
        f"x{number}": FloatDistribution(0.0, 1.0) for number in range(_PARAMETERS)
    }
    tags = [trial.user_attrs.get(ARM_KEY) for trial in study.get_trials(deepcopy=False)]
    begun = 1 + max((tag["arm"] for tag in tags if tag), default=-1)
    for arm, values in enumerate(rng.random((number, _PARAMETERS)), start=begun):
        params: dict[str, Any] = dict(zip(distributions, values.tolist(), strict=True))
        level = int(rng.integers(len(_LEVELS)))
        params["fidelity"] = _LEVELS[level]
        n = len(study.get_trials(deepcopy=False))
        note = PullNote(n, study.study_name, 3 * n, arm, fidelity=level, purpose="search")
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                value=float(rng.random()),
                params=params,
                distributions={**distributions, "fidelity": IntDistribution(1, 81)},
                user_attrs={ARM_KEY: note.to_dict()} if tagged else {},
            )
        )


def measure_sqlite(name: str, trials: int, seed: int) -> float:
    """Wall-clock milliseconds per trial with SQLite, over the second half of a study."""
    with tempfile.TemporaryDirectory() as folder:
        storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
        study = optuna.create_study(storage=storage, sampler=SAMPLERS[name](seed), study_name=name)
        study.optimize(objective, n_trials=trials // 2)
        started = time.perf_counter()
        study.optimize(objective, n_trials=trials // 2)
        elapsed = time.perf_counter() - started
        storage.remove_session()
        storage.engine.dispose()
    return 1e3 * elapsed / (trials // 2)


def _table(report: dict[str, Any]) -> str:
    sizes = report["sizes"]
    lines = [
        f"CPU ms per trial, median of {report['repeats']} (own / total); {_PARAMETERS} parameters "
        f"and a fidelity, {_ARMS} arms, in memory",
        f"{'trials':21}" + "".join(f"{size:>18,}" for size in sizes),
    ]
    for name, figures in report["samplers"].items():
        cells = [figures[str(size)] for size in sizes]
        lines.append(f"{name:21}" + "".join(f"{c['own']:>9.3f} /{c['total']:>7.3f}" for c in cells))
    lines.append("")
    lines.append("IISESampler's own time over the others'")
    for name, ratios in report["ratio_of_own"].items():
        lines.append(f"{name:21}" + "".join(f"{ratios[str(size)]:>18.2f}" for size in sizes))
    lines.append("")
    for name, milliseconds in report["sqlite_wall_ms"].items():
        lines.append(f"SQLite, wall-clock ms per trial: {name} {milliseconds:.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead",
        description="CPU time per trial of our samplers and of Optuna's.",
    )
    parser.add_argument(
        "--trials", type=int, default=10_000, help="the largest study (default 10000)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="studies per sampler (default 3)")
    parser.add_argument(
        "--samplers", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS), metavar="NAME"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    if options.trials < 100:
        parser.error(f"--trials must be at least 100, got {options.trials}.")
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}.")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    sizes = [size for size in (100, 1_000, 10_000) if size < options.trials] + [options.trials]
    results: dict[str, dict[int, Figure]] = {}
    for name in options.samplers:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = measure(name, sizes, options.repeats, options.seed)
    ours = results.get("IISESampler")
    command = [f"--{name}={getattr(options, name)}" for name in ("trials", "repeats", "seed")]
    report = provenance("benchmarks.overhead", command, "optuna") | {
        "seed": options.seed,
        "repeats": options.repeats,
        "sizes": sizes,
        "unit": "CPU milliseconds per trial",
        "samplers": {
            name: {str(size): asdict(figure) for size, figure in figures.items()}
            for name, figures in results.items()
        },
        "ratio_of_own": {
            name: {str(size): ours[size].own / figure.own for size, figure in figures.items()}
            for name, figures in results.items()
            if ours and name != "IISESampler"
        },
        "sqlite_wall_ms": {
            name: measure_sqlite(name, 60, options.seed)
            for name in options.samplers
            if name in ("IISESampler", "RandomSampler")
        },
    }
    text = json.dumps(report, indent=2)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text if options.json else _table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
