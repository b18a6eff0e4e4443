"""What `certify` finds out about finished studies, and what it costs.

    python -m benchmarks.certify --data DATA/yahpo --seeds 9 --output results.json

Studies of Optuna's TPE with 50 or 100 trials at the target level, on surrogates of LCBench and
rbv2_xgboost with normal noise of .5 and 2 points of accuracy. Each ends with `best_trial`; then

- `certify` with its defaults: 8 candidates, delta .05, epsilon one standard deviation of the noise;
- the same with a budget of as many evaluations as the study had trials;
- 4 candidates, and a budget of half as many;
- `certify` with its defaults and `replicate`, where half of the noise's variance is common to all
  evaluations with the same replicate. Without `replicate`, each evaluation draws its own, so that
  the noise is as for the defaults;
- for comparison, with every third seed, the search goes on for as many trials as `certify` with its
  defaults has paid.

Then, what can be said after a certain number of evaluations, in races without a study: of 4 or 8
candidates whose means are evenly spread over one standard deviation of the noise.

Values are percents of accuracy. True values are the surrogate's own, without noise.
"""

import argparse
import json
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float
from benchmarks.hpo.tasks import families_of
from benchmarks.provenance import provenance
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo_optuna import StudyCertificate, certify

SIGMAS = (0.5, 2.0)
TRIALS = (50, 100)
SEARCH_ON_EVERY = 3
WAYS = ("default", "budget = trials", "top 4, budget = trials / 2", "replicate shares half")

# Differences of true values below this are ties: the surrogate computes in single precision.
_TIE = 1e-4


class Objective:
    """A problem at its target level, with noise that is a function of the trial's number."""

    def __init__(self, problem: NoisyProblem, seed: int) -> None:
        self.problem = problem
        self._first = 1_000_000 * zlib.crc32(f"{problem.name} {problem.sigma:g} {seed}".encode())

    def __call__(self, trial: optuna.Trial) -> float:
        configuration = suggest(trial, self.problem.space)
        target, seed = self.problem.fidelity.target, self._first + trial.number
        return self.problem.objective_function(configuration, target, seed).value

    def with_replicate(self, trial: optuna.Trial) -> float:
        """Half of the noise's variance is of the trial's replicate, the other half its own."""
        own = self(trial)
        truth = self.true_value(trial.params)
        replicate = trial.suggest_int("replicate", 0, 2**31 - 1)
        # Of the study, too: studies of one name have the same replicates.
        rng = np.random.default_rng([self._first, replicate])
        common = self.problem.sigma * rng.standard_normal()
        return float(truth + (own - truth + common) / np.sqrt(2.0))

    def true_value(self, configuration: dict[str, Any]) -> float:
        return self.problem.true_value(configuration)


def suggest(trial: optuna.Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Ask for what applies of a space."""
    chosen: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if not space.applies(name, chosen):
            continue
        if isinstance(parameter, Categorical):
            chosen[name] = trial.suggest_categorical(name, parameter.choices)
        elif isinstance(parameter, Float):
            low, high = parameter.low, parameter.high
            chosen[name] = trial.suggest_float(name, low, high, log=parameter.log)
        else:
            low, high = parameter.low, parameter.high
            chosen[name] = trial.suggest_int(name, low, high, log=parameter.log)
    return chosen


def one_study(
    task: str, sigma: float, seed: int, n_trials: int, data: Path | None = None
) -> dict[str, Any]:
    """Run a study, certify its best, and let the search go on instead.

    Returns
    -------
    dict
        One record, in percents of accuracy.
    """
    problem = problem_named(task, data, sigma=sigma)
    if not isinstance(problem, NoisyProblem):
        raise ValueError(f"task={task!r} has no known true values; take one that has.")
    objective = Objective(problem, seed)
    study = optuna.create_study(
        study_name=f"{task} {sigma:g} {seed}",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed),
    )
    study.optimize(objective, n_trials=n_trials)
    best = study.best_trial
    truth = objective.true_value(best.params)
    began = time.process_time()
    answers = dict(
        zip(
            WAYS,
            (
                certify(study, objective, progress=False),
                certify(study, objective, budget=n_trials, name="budget", progress=False),
                certify(study, objective, top=4, budget=n_trials // 2, progress=False),
                certify(
                    study,
                    objective.with_replicate,
                    replicate="replicate",
                    name="replicates",
                    progress=False,
                ),
            ),
            strict=True,
        )
    )
    seconds = time.process_time() - began
    assert best.value is not None
    went_on = {}
    if seed % SEARCH_ON_EVERY == 0:
        study.optimize(objective, n_trials=answers["default"].evaluations)
        went_on = {"search_on": {"true": objective.true_value(study.best_trial.params)}}
    return {
        "task": task,
        "sigma": sigma,
        "seed": seed,
        "trials": n_trials,
        "best_trial": {"true": truth, "gap": best.value - truth},
        "certify_seconds": seconds,
        **went_on,
        **{name: _record(answer, objective) for name, answer in answers.items()},
    }


def what_holds(n_candidates: int, budget: int, sigma: float | None, runs: int) -> dict[str, float]:
    """Medians over some races, in standard deviations of the noise.

    Parameters
    ----------
    n_candidates, budget
        Size of the race.
    sigma
        Declared scale of the noise, or None.
    runs
        Number of races.
    """
    truth = np.linspace(0.0, -1.0, n_candidates)
    candidates = [Candidate(str(arm), {}, claim=0.0) for arm in range(n_candidates)]
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        race = Certification(
            candidates,
            luckiest=0,
            maximise=True,
            epsilon=0.0,
            budget=budget,
            sigma=sigma,
            seed=seed,
        )
        while not race.finished:
            pull = race.ask()
            assert pull is not None
            race.tell(pull, rng.normal(truth[pull.arm]))
        answer = race.certificate("", "")
        low, high = answer.interval
        found.append((answer.within, (high - low) / 2.0))
    within, half_width = np.median(found, axis=0).round(2).tolist()
    return {"within": within, "half width of the winner's interval": half_width}


def price_list(runs: int = 20) -> list[dict[str, Any]]:
    """`what_holds` for some sizes of races."""
    return [
        {
            "candidates": n_candidates,
            "evaluations": budget,
            "sigma": "estimated" if sigma is None else "declared",
            **what_holds(n_candidates, budget, sigma, runs),
        }
        for n_candidates in (4, 8)
        for sigma in (None, 1.0)
        for budget in (25, 50, 100, 200)
    ]


def _record(answer: StudyCertificate, objective: Objective) -> dict[str, Any]:
    truths = [objective.true_value(candidate.params) for candidate in answer.candidates]
    assert answer.winner is not None
    truth = truths[answer.winner]
    low, high = answer.interval
    luckiest = answer.luckiest_result
    gap_low, gap_high = luckiest.gap_interval
    return {
        "true": truth,
        "gap": answer.mean - truth,
        "half_width": (high - low) / 2.0,
        "in_interval": low <= truth <= high,
        "luckiest_gap_in_interval": gap_low <= luckiest.claim - truths[answer.luckiest] <= gap_high,
        "short_of_best": max(truths) - truth,
        "certified": answer.certified,
        "epsilon": answer.epsilon,
        "within": answer.within,
        "evaluations": answer.evaluations,
    }


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Compare picks and claims over some studies."""
    best = _column(records, "best_trial", "true")
    found: dict[str, Any] = {
        "studies": len(records),
        "best_trial's claim minus its true value": _spread(_column(records, "best_trial", "gap")),
    }
    for name in WAYS:
        gains = _column(records, name, "true") - best
        evaluations = _column(records, name, "evaluations")
        trials = np.array([record["trials"] for record in records], dtype=np.float64)
        within = _column(records, name, "within")
        short = _column(records, name, "short_of_best")
        found[name] = {
            **_duel(gains),
            "claim minus true value": _spread(_column(records, name, "gap")),
            "half width of the interval": _spread(_column(records, name, "half_width")),
            "true value outside its interval": _share(~_flags(records, name, "in_interval")),
            "luckiest's gap outside its interval": _share(
                ~_flags(records, name, "luckiest_gap_in_interval")
            ),
            "certified": _share(_flags(records, name, "certified")),
            "falls short of the best of the shortlist by": _spread(short),
            "falls short by more than is claimed": _share(short > within + _TIE),
            "tolerance that holds": _spread(within[np.isfinite(within)]),
            "evaluations": _spread(evaluations),
            "evaluations / the study's trials": _spread(evaluations / trials),
        }
    longer = [record for record in records if "search_on" in record]
    after = _column(longer, "search_on", "true")
    found["search goes on for as many trials as default"] = {
        "studies": len(longer),
        **_duel(after - _column(longer, "best_trial", "true")),
        "certify's pick minus its": _duel(_column(longer, "default", "true") - after),
    }
    found["CPU seconds of the calls"] = _spread(
        np.array([record["certify_seconds"] for record in records])
    )
    return found


def _column(records: Sequence[dict[str, Any]], name: str, key: str) -> np.ndarray[Any, Any]:
    return np.array([record[name][key] for record in records], dtype=np.float64)


def _flags(records: Sequence[dict[str, Any]], name: str, key: str) -> np.ndarray[Any, Any]:
    return np.array([record[name][key] for record in records], dtype=bool)


def _share(flags: np.ndarray[Any, Any]) -> float:
    return round(float(flags.mean()), 4)


def _spread(values: np.ndarray[Any, Any]) -> dict[str, float]:
    if not values.size:
        return {}
    # Of those that occur: nothing may hold yet, and the mean of infinities is none.
    quantiles = np.quantile(values, [0.05, 0.5, 0.95], method="inverted_cdf")
    named = dict(zip(("5%", "50%", "95%"), quantiles.tolist(), strict=True))
    return {key: round(value, 4) for key, value in {"mean": float(values.mean()), **named}.items()}


def _duel(gains: np.ndarray[Any, Any]) -> dict[str, Any]:
    """How often and by how much one pick is truly better than another."""
    return {
        "better": _share(gains > _TIE),
        "equal": _share(np.abs(gains) <= _TIE),
        "worse": _share(gains < -_TIE),
        "gain": _spread(gains),
        "gain's standard error": round(float(gains.std() / np.sqrt(len(gains))), 4),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="YAHPO's folder (default: in the data folder)")
    parser.add_argument(
        "--seeds", type=int, default=9, help="studies for each task and noise (default: 9)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    check_surrogates(parser, options.data, families_of(DEVELOPMENT_TASKS))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    records = []
    began = time.process_time()
    for seed in range(options.seeds):
        for task in DEVELOPMENT_TASKS:
            for sigma in SIGMAS:
                n_trials = TRIALS[seed % len(TRIALS)]
                records.append(one_study(task, sigma, seed, n_trials, options.data))
        spent = time.process_time() - began
        print(f"seed {seed}: {len(records)} studies, {spent:.0f} s", file=sys.stderr, flush=True)
    by_sigma = {
        f"sigma {sigma:g}": summary([record for record in records if record["sigma"] == sigma])
        for sigma in SIGMAS
    }
    command = ["--data", "$MFHPO_DATA/yahpo", "--seeds", str(options.seeds)]
    report = provenance("benchmarks.certify", command, "optuna", "onnxruntime") | {
        "unit": "percent of accuracy",
        "cpu_seconds": round(time.process_time() - began),
        "summary": by_sigma,
        "what holds, in standard deviations of the noise": price_list(),
        "records": [_rounded(record) for record in records],
    }
    if options.output:
        options.output.write_text(as_text(report), encoding="utf-8")
    print(json.dumps(report["summary"], indent=2))
    return 0


def as_text(report: dict[str, Any]) -> str:
    """The report as JSON, with one line for each record."""
    head = json.dumps(_rounded({**report, "records": []}), indent=2, allow_nan=False)
    records = ",\n".join(f"    {json.dumps(record)}" for record in report["records"])
    return head.replace('"records": []', f'"records": [\n{records}\n  ]') + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return round(value, 4) if np.isfinite(value) else None
    return value


if __name__ == "__main__":
    sys.exit(main())
