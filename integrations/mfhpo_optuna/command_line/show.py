"""`mfhpo show`: the answer of a study so far."""

from shlex import quote

import typer

from mfhpo_optuna.command_line.output import (
    NO_ANSWER,
    AsJson,
    print_json,
    print_summary,
)
from mfhpo_optuna.command_line.storages import StorageArgument, StudyArgument, load_study
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.reading import StudyReading, read_study
from mfhpo_optuna.report.summary import summary_of
from mfhpo_optuna.study.attributes import CERTIFICATE_KEY, SHORTLIST_KEY


def show(storage: StorageArgument, study: StudyArgument, as_json: AsJson = False) -> None:
    """Print the answer of a study so far, also while it runs; nothing is written to it.

    The study tells which sampler has run it, with which arguments. Of one that does not, the last
    answer that it holds is printed.
    """
    reading = read_study(load_study(storage, study))
    summary = summary_of(reading, ledger_of(reading))
    if as_json:
        print_json(
            {
                "study": study,
                "status": summary.status,
                "sentence": str(summary),
                "trials": _counts(reading),
                "answer": reading.answer,
            }
        )
    else:
        counts = ", ".join(f"{number} {state}" for state, number in _counts(reading).items())
        print_summary(summary, f"study {study}: {counts or 'no trials yet'}")
        certified_study = reading.study.user_attrs.get(SHORTLIST_KEY, {}).get("study")
        if reading.answer is None and certified_study is not None:
            typer.echo(
                f"To go on, call it with the same arguments; with --timeout 0 it says what is "
                f"known so far: mfhpo certify STORAGE {quote(certified_study)} module:objective"
            )
        elif reading.answer is None and reading.without:
            typer.echo(f"{reading.without[:1].upper()}{reading.without[1:]}.")
            if len(reading.study.directions) == 1 and _counts(reading).get("complete", 0) >= 2:
                typer.echo(
                    "To learn which of its trials is best: mfhpo certify STORAGE STUDY "
                    "module:objective"
                )
    if reading.answer is None:
        raise typer.Exit(NO_ANSWER)


def _counts(reading: StudyReading) -> dict[str, int]:
    """How many trials are in each state; those that hold answers were no evaluations."""
    states = [
        "answers" if CERTIFICATE_KEY in trial.user_attrs else trial.state.name.lower()
        for trial in reading.trials
    ]
    return {state: states.count(state) for state in sorted(set(states))}
