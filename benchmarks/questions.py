"""Cost of finding the best of twelve models on 800 questions.

    python -m benchmarks.questions --output benchmarks/results/questions.json

The models are classifiers of handwritten digits, and a question is one digit: the value is 1 if
the answer is right, else 0. In each test the models are trained on other 400 digits, and asked
about other 800; then the questions are put into several random orders. An evaluation is one
question to one model. Compared are, for several tolerances epsilon,

- a certificate (`Certification` with `replicates=800` and bounds of 0 and 1): the race ends when no
  model can be better than the winner by more than epsilon on these questions, delta 0.05;
- the model with the largest mean over a random half of the questions, which all are asked;
- the same with as many questions as the certificate's evaluations pay for;
- all questions.

An answer is wrong if another model is better on all 800 questions by more than epsilon.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from mfhpo import Bounded
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.certification import Certification
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.fidelity import replicate_of

N_TRAIN, N_QUESTIONS = 400, 800
DELTA = 0.05


def models(seed: int) -> list[ClassifierMixin]:
    """Return the twelve models, untrained."""
    return [
        DecisionTreeClassifier(random_state=seed),
        GaussianNB(),
        LinearDiscriminantAnalysis(),
        RidgeClassifier(),
        LogisticRegression(C=1e-4, max_iter=300),
        LogisticRegression(C=1e-2, max_iter=300),
        KNeighborsClassifier(1),
        KNeighborsClassifier(9),
        RandomForestClassifier(30, random_state=seed),
        ExtraTreesClassifier(60, random_state=seed),
        SVC(kernel="linear"),
        SVC(gamma=1e-3),
    ]


@cache
def right(seed: int) -> FloatArray:
    """Return 1 where a model is right about a question, else 0, shape (12, 800)."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    train, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_QUESTIONS]
    fitted = [model.fit(x[train], y[train]) for model in models(seed)]
    return np.array([model.predict(x[test]) == y[test] for model in fitted], dtype=float)


def certified(values: FloatArray, epsilon: float, seed: int) -> Certificate:
    """Return the certificate of a race on a table of values, (K, N), in the seed's order."""
    n_models, n_questions = values.shape
    race = Certification(
        [Candidate(f"model {k}", {"model": k}, claim=0.5) for k in range(n_models)],
        luckiest=0,
        maximise=True,
        delta=DELTA,
        epsilon=epsilon,
        sigma=Bounded(0.0, 1.0),
        blocks=True,
        replicates=n_questions,
        seed=seed,
    )
    while not race.finished:
        pull = race.ask()
        assert pull is not None
        assert pull.block is not None
        question = replicate_of(pull.block, seed, n_questions)
        race.tell(pull, float(values[pull.arm, question]))
    return race.certificate(f"{n_models} models", "given")


def figures(job: tuple[int, int, tuple[float, ...]]) -> list[dict[str, Any]]:
    """Return what each rule has cost and whether it was wrong, for one test and one order."""
    test, order, epsilons = job
    values, seed = right(test), 1000 * test + order
    means, n_models, n = values.mean(axis=1), *values.shape
    asked = [replicate_of(block, seed + 1, n) for block in range(n)]

    def row(rule: str, epsilon: float, winner: int, cost: int, **more: Any) -> dict[str, Any]:
        is_wrong = bool(means[winner] < means.max() - epsilon - 1e-9)
        return {"rule": rule, "epsilon": epsilon, "cost": cost, "wrong": is_wrong, **more}

    def by_mean(rule: str, epsilon: float, n_asked: int) -> dict[str, Any]:
        winner = int(np.argmax(values[:, asked[:n_asked]].mean(axis=1)))
        return row(rule, epsilon, winner, n_asked * n_models)

    rows = []
    for epsilon in epsilons:
        answer = certified(values, epsilon, seed)
        assert answer.winner is not None
        rows += [
            row("certificate", epsilon, answer.winner, answer.evaluations, sure=answer.certified),
            by_mean("as many evaluations, by the mean", epsilon, answer.evaluations // n_models),
            by_mean("a random half, by the mean", epsilon, n // 2),
            by_mean("all questions", epsilon, n),
        ]
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each tolerance and rule."""
    for epsilon, rule in dict.fromkeys((row["epsilon"], row["rule"]) for row in rows):
        of = [row for row in rows if (row["epsilon"], row["rule"]) == (epsilon, rule)]
        everything = max(row["cost"] for row in rows if row["rule"] == "all questions")
        yield {
            "epsilon": epsilon,
            "rule": rule,
            "races": len(of),
            "evaluations": float(np.mean([row["cost"] for row in of])),
            "saved": 1.0 - float(np.mean([row["cost"] for row in of])) / everything,
            "wrong": float(np.mean([row["wrong"] for row in of])),
            "certified": float(np.mean([row.get("sure", False) for row in of])),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, default=12, help="sets of questions (default: 12)")
    parser.add_argument("--orders", type=int, default=4, help="orders of each (default: 4)")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.0, 0.01, 0.02, 0.05])
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    orders = range(options.orders)
    epsilons = tuple(options.epsilons)
    jobs = [(test, order, epsilons) for test in range(options.tests) for order in orders]
    rows = []
    for number, found in enumerate(mapped(figures, jobs, options.workers), start=1):
        rows += found
        progress(f"[{number}/{len(jobs)}]")
    table = list(summary(rows))
    print("| epsilon | rule | evaluations | saved | wrong | certified |\n|---|---|---|---|---|---|")
    for row in table:
        print(
            f"| {row['epsilon']:g} | {row['rule']} | {row['evaluations']:.0f} | "
            f"{row['saved']:.0%} | {row['wrong']:.0%} | {row['certified']:.0%} |"
        )
    if options.output:
        command = [f"--tests {options.tests}", f"--orders {options.orders}"]
        command += ["--epsilons", *(f"{epsilon:g}" for epsilon in epsilons)]
        report = provenance("benchmarks.questions", command, "scikit-learn")
        write(options.output, as_json({**report, "delta": DELTA, "rows": table}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
