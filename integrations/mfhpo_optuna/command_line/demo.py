"""`mfhpo demo`: a small search with a certificate, and a report about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import optuna
import typer
from rich.console import Console

from mfhpo._validation.missing import missing
from mfhpo_optuna.command_line.shared import (
    AsJson,
    OutputOption,
    fail,
    print_json,
    print_summary,
    write_page,
)
from mfhpo_optuna.samplers.search_sampler import SearchSampler

_ROWS = 900  # of 1,797 digits, that a whole training learns from
_LEAST_ROWS = 100
_BUDGET = 160  # in whole trainings

_WHAT = (
    "A support vector machine learns to read handwritten digits. The number of digits that it "
    "learns from is the fidelity: a cheap training sees 100, a whole one 900. The search compares "
    "configurations on one random split of the digits. The finalists are trained again on other "
    "splits, because an error that made a configuration the best on one split is a lucky one."
)


def demo(
    output: OutputOption = Path("mfhpo-demo.html"),
    budget: Annotated[int, typer.Option(help="Whole trainings that may be paid for.", min=20)] = (
        _BUDGET
    ),
    seed: Annotated[int, typer.Option(help="Of the search.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Tune a real model in less than a minute: search, certify, and write a report."""
    objective = _digits()
    sampler = SearchSampler(
        "rows",
        budget=budget * _ROWS,
        certify_share=0.5,
        top=4,
        replicate="split",
        progress=False if as_json else None,
        seed=seed,
    )
    study = optuna.create_study(direction="minimize", study_name="demo", sampler=sampler)
    write_page(study, output)  # what is wrong with it is better known before the search
    if not as_json:
        Console(highlight=False).print(_WHAT)  # wrapped between words
    study.optimize(objective)
    summary = write_page(study, output)
    if as_json:
        answer = sampler.recommendation(study).to_dict()
        print_json({"report": str(output), "sentence": str(summary), "answer": answer})
        return
    print_summary(summary, "")
    typer.echo(f"\n{output} shows how it went; open it in a browser.")


def _digits() -> Callable[[optuna.Trial], float]:
    """Return the objective: the share of digits that are read wrongly."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
        from sklearn.svm import SVC
    except ImportError:
        fail(missing("the demo", "scikit-learn", "cli"))
    pixels, digits = load_digits(return_X_y=True)

    def objective(trial: optuna.Trial) -> float:
        split = trial.suggest_int("split", 0, 2**31 - 1)
        rows = trial.suggest_int("rows", _LEAST_ROWS, _ROWS)
        model = SVC(
            C=trial.suggest_float("C", 0.01, 100.0, log=True),
            gamma=trial.suggest_float("gamma", 1e-5, 0.1, log=True),
            class_weight=trial.suggest_categorical("class_weight", [None, "balanced"]),
        )
        x_train, x_test, y_train, y_test = train_test_split(
            pixels, digits, train_size=_ROWS, random_state=split
        )
        model.fit(x_train[:rows], y_train[:rows])
        return 1.0 - float(model.score(x_test, y_test))

    return objective
