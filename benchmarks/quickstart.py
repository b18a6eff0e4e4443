"""What the race of examples/quickstart.py costs, by which policy.

    python -m benchmarks.quickstart --seeds 5 --output results.json

The quickstart's own objective is raced as there, with splits that the arms share. Beside it, each
trial has a split of its own: by the policy that `MFSampler` chooses with everything estimated, by
the same where the target fidelity is the only one, by IISE, and by successive elimination at the
target fidelity alone. Costs are in full evaluations. The claim of the luckiest trial and that of
the certificate are compared with the mean of fresh splits.
"""

import argparse
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from benchmarks.provenance import provenance
from mfhpo_optuna import Fidelity, IISESampler, MFSampler
from mfhpo_optuna.study.trials.attributes import ARM_KEY

SCRIPT = Path(__file__).parents[1] / "examples" / "quickstart.py"
SHARED = "shared splits"
_TARGET = 90  # the script's
SAMPLERS: dict[str, Callable[[int], MFSampler | IISESampler]] = {
    SHARED: lambda seed: MFSampler(
        "trees", arms=24, replicate="split", delta=0.05, epsilon=0.01, seed=seed
    ),
    "chosen": lambda seed: MFSampler("trees", arms=24, delta=0.05, epsilon=0.01, seed=seed),
    "chosen, target alone": lambda seed: MFSampler(
        Fidelity("trees", levels=[_TARGET]), arms=24, delta=0.05, epsilon=0.01, seed=seed
    ),
    "IISE-gamma": lambda seed: IISESampler("trees", arms=24, delta=0.05, epsilon=0.01, seed=seed),
    "SE": lambda seed: IISESampler(
        "trees", arms=24, delta=0.05, epsilon=0.01, variant="se", seed=seed
    ),
}


class OwnSplit(optuna.Trial):
    """A trial whose split is its number, and no parameter."""

    def __init__(self, trial: optuna.Trial) -> None:
        # Made anew, it would ask the sampler for another pull.
        self.__dict__.update(trial.__dict__)

    def suggest_int(self, name: str, low: int, high: int, **options: Any) -> int:
        """The trial's number for the split, else what the sampler decides."""
        return self.number if name == "split" else super().suggest_int(name, low, high, **options)


def race(
    quickstart: dict[str, Any], name: str, sampler: MFSampler | IISESampler, splits: int
) -> dict[str, Any]:
    """Run one race; return its cost, its claim, the luckiest trial's claim, and the truth."""
    study = optuna.create_study(direction="minimize", sampler=sampler)
    began = time.process_time()

    def objective(trial: optuna.Trial) -> float:
        return float(quickstart["objective"](trial if name == SHARED else OwnSplit(trial)))

    study.optimize(objective)
    seconds = time.process_time() - began
    answer = sampler.recommendation(study)
    trials = [t for t in study.trials if ARM_KEY in t.user_attrs]
    luckiest = min(trials, key=lambda trial: trial.value or np.inf)

    def truth(trial: optuna.trial.FrozenTrial) -> float:
        params = trial.params | {"trees": quickstart["TARGET"]}
        losses = [
            quickstart["evaluate"](**params | {"split": 1_000_000 + i}) for i in range(splits)
        ]
        return float(np.mean(losses))

    return {
        "cost": answer.cost / quickstart["TARGET"],
        "trials": answer.trials,
        "certified": answer.certified,
        "cpu_s": seconds,
        "claim": answer.mean,
        "interval": list(answer.interval),
        "fresh": truth(study.best_trial),
        "luckiest_claim": luckiest.value,
        "luckiest_fresh": truth(luckiest),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default: 5)")
    parser.add_argument("--splits", type=int, default=100, help="fresh splits (default: 100)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    quickstart = runpy.run_path(str(SCRIPT), run_name="quickstart")
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SAMPLERS}
    for seed in range(options.seeds):
        for name, make in SAMPLERS.items():
            rows[name].append(race(quickstart, name, make(seed), options.splits))
            print(f"seed {seed}, {name}: {rows[name][-1]}", file=sys.stderr, flush=True)
    command = ["--seeds", str(options.seeds), "--splits", str(options.splits)]
    report = provenance("benchmarks.quickstart", command, "optuna", "lightgbm", "scikit-learn") | {
        "unit": "full evaluations",
        "median_cost": {name: float(np.median([r["cost"] for r in rows[name]])) for name in rows},
        "rows": rows,
    }
    text = json.dumps(report, indent=2)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
