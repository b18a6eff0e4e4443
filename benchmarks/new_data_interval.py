"""How often the interval for new data holds that scikit-learn's searches and `certify` print.

    python -m benchmarks.new_data_interval --runs 500 --output new_data_interval.json

Each run draws a data set, fits one model on random splits of it, and asks whether two intervals
hold the truth: the corrected one for new data (`mfhpo.certification.selection`), and Student's
plain interval of the mean over splits, for comparison. Both are for 95 %.

The truth is what a model scores on new data of the same kind,

    procedure   if it is fitted on as many new samples as a split trains on: the mean over 400 such
                fits, each scored on 4,000 new samples
    model       if it is the one that is handed over, fitted on all samples of the run: its score on
                4,000 new samples

Scores are accuracies or R². Models are least squares, for classes on labels of -1 and 1, and a
decision tree of depth 4.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from sklearn.tree import DecisionTreeClassifier

from benchmarks.certify import as_text
from benchmarks.provenance import provenance
from mfhpo.certification.selection import interval_for_new_data

Array = npt.NDArray[np.float64]
Data = tuple[Array, Array]

DELTA = 0.05
SHAPES = ((10, 0.2), (30, 0.2), (10, 0.5), (30, 0.5), (10, 0.1))
"""Number of splits, and share of the samples in the test part."""

_N_FRESH = 4_000
_FITS_OF_TRUTH = 400


@dataclass(frozen=True)
class Setting:
    """A kind of data, how many samples a data set has, and the model with its score."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], Data]
    fit_and_predict: Callable[[Data, Array], Array]
    is_classes: bool

    def score(self, train: Data, test: Data) -> float:
        """Fit on the first, and score on the second."""
        x, y = test
        predicted = self.fit_and_predict(train, x)
        if self.is_classes:
            return float(np.mean(np.sign(predicted) == y))
        return float(1.0 - np.mean((y - predicted) ** 2) / np.mean((y - y.mean()) ** 2))


def _linear_classes(rng: np.random.Generator, n: int) -> Data:
    x = rng.normal(size=(n, 8))
    return x, np.where(x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=n) > 0.0, 1.0, -1.0)


def _linear_values(rng: np.random.Generator, n: int) -> Data:
    x = rng.normal(size=(n, 8))
    return x, x @ np.linspace(1.0, 0.0, 8) + 1.5 * rng.normal(size=n)


def _friedman(rng: np.random.Generator, n: int) -> Data:
    """Friedman's first function, which no linear model fits."""
    x = rng.uniform(size=(n, 8))
    y = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2
    return x, y + 10.0 * x[:, 3] + 5.0 * x[:, 4] + rng.normal(size=n)


def _rings(rng: np.random.Generator, n: int) -> Data:
    x = rng.normal(size=(n, 4))
    inner = x[:, 0] ** 2 + x[:, 1] ** 2 < 1.4
    return x, np.where(inner ^ (rng.uniform(size=n) < 0.1), 1.0, -1.0)


def _least_squares(train: Data, x: Array) -> Array:
    features, y = train
    padded = np.column_stack([features, np.ones(len(y))])
    weights = np.linalg.solve(padded.T @ padded + 1e-6 * np.eye(padded.shape[1]), padded.T @ y)
    return np.asarray(x @ weights[:-1] + weights[-1])


def _tree(train: Data, x: Array) -> Array:
    return np.asarray(DecisionTreeClassifier(max_depth=4, random_state=0).fit(*train).predict(x))


SETTINGS = (
    Setting("linear classes, 100 samples", 100, _linear_classes, _least_squares, True),
    Setting("linear classes, 300 samples", 300, _linear_classes, _least_squares, True),
    Setting("linear values, 100 samples", 100, _linear_values, _least_squares, False),
    Setting("Friedman's values, 200 samples", 200, _friedman, _least_squares, False),
    Setting("rings by a tree, 200 samples", 200, _rings, _tree, True),
)


def scores_on_splits(
    setting: Setting, data: Data, n_splits: int, test_share: float, rng: np.random.Generator
) -> list[float]:
    """The scores on random splits of a data set, as `ShuffleSplit` draws them."""
    x, y = data
    n_test = round(test_share * setting.n)
    scores = []
    for _ in range(n_splits):
        order = rng.permutation(setting.n)
        test, train = order[:n_test], order[n_test:]
        scores.append(setting.score((x[train], y[train]), (x[test], y[test])))
    return scores


def plain_interval(scores: Sequence[float]) -> tuple[float, float]:
    """Student's interval of the mean, as if the scores were independent."""
    n, mean = len(scores), float(np.mean(scores))
    half = float(stdtrit(n - 1, 1.0 - DELTA / 2.0) * np.std(scores, ddof=1) / np.sqrt(n))
    return mean - half, mean + half


def measure(setting: Setting, runs: int) -> list[dict[str, Any]]:
    """One row for each shape of splits: how often which interval holds which truth."""
    rng = np.random.default_rng(SETTINGS.index(setting))
    truths = {share: _of_procedure(setting, share, rng) for share in {s for _, s in SHAPES}}
    held: dict[tuple[int, float], list[list[bool]]] = {shape: [] for shape in SHAPES}
    widths: dict[tuple[int, float], list[float]] = {shape: [] for shape in SHAPES}
    for _ in range(runs):
        data = setting.draw(rng, setting.n)
        of_model = setting.score(data, setting.draw(rng, _N_FRESH))
        for n_splits, share in SHAPES:
            scores = scores_on_splits(setting, data, n_splits, share, rng)
            corrected = interval_for_new_data(scores, share / (1.0 - share), DELTA)
            both = (corrected, plain_interval(scores))
            held[n_splits, share].append(
                [low <= true <= high for low, high in both for true in (truths[share], of_model)]
            )
            widths[n_splits, share].append(corrected[1] - corrected[0])
    rows = []
    for (n_splits, share), found in held.items():
        coverage = np.mean(found, axis=0)
        rows.append(
            {
                "setting": setting.name,
                "splits": n_splits,
                "test share": share,
                "runs": runs,
                "truth of the procedure": round(truths[share], 4),
                "corrected, procedure": round(float(coverage[0]), 4),
                "corrected, model": round(float(coverage[1]), 4),
                "plain, procedure": round(float(coverage[2]), 4),
                "plain, model": round(float(coverage[3]), 4),
                "median width": round(float(np.median(widths[n_splits, share])), 4),
            }
        )
    return rows


def _of_procedure(setting: Setting, share: float, rng: np.random.Generator) -> float:
    n_train = setting.n - round(share * setting.n)
    fits = [
        setting.score(setting.draw(rng, n_train), setting.draw(rng, _N_FRESH))
        for _ in range(_FITS_OF_TRUTH)
    ]
    return float(np.mean(fits))


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=500, help="data sets of each (default: 500)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    began = time.process_time()
    rows: list[dict[str, Any]] = []
    for setting in SETTINGS:
        rows += measure(setting, options.runs)
        print(f"{setting.name}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    command = ["--runs", str(options.runs)]
    report = provenance("benchmarks.new_data_interval", command, "scikit-learn") | {
        "delta": DELTA,
        "cpu_seconds": round(time.process_time() - began),
        "records": rows,
    }
    if options.output:
        options.output.write_text(as_text(report), encoding="utf-8")
    print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
