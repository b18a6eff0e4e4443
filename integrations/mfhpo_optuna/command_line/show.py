"""`mfhpo show`: the answer of a study so far."""

from shlex import quote

import typer

from mfhpo_optuna.command_line.output import NO_ANSWER, AsJson, print_json, print_summary, say
from mfhpo_optuna.command_line.storages import StorageArgument, StudyArgument, load_study
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.reading import StudyReading, read_study
from mfhpo_optuna.report.summary import summary_of
from mfhpo_optuna.study.attributes import certificate_of


def show(storage: StorageArgument, study: StudyArgument, as_json: AsJson = False) -> None:
    """Print the answer of a study so far, also while it runs; nothing is written to it.

    It is that of `mfhpo certify`, if that has one. The study tells which sampler has run it, with
    which arguments. Of one that does not, the last answer that it holds is printed.
    """
    reading = read_study(load_study(storage, study))
    summary = summary_of(reading, ledger_of(reading))
    counts = _counts(reading)
    if as_json:
        print_json(
            {
                "study": study,
                "status": summary.status,
                "sentence": str(summary),
                "trials": counts,
                "answer": reading.answer,
            }
        )
    else:
        print_summary(summary, f"study {study}")
        if reading.answer is None:
            _say_what_to_do(reading, counts.get("complete", 0))
    if reading.answer is None:
        raise typer.Exit(NO_ANSWER)


def _say_what_to_do(reading: StudyReading, n_complete: int) -> None:
    if reading.record is not None:
        certified = quote(str(reading.record.about.get("study")))
        say(
            f"To go on, call it with the same arguments; with --timeout 0 it says what is known so "
            f"far: mfhpo certify STORAGE {certified} module:objective"
        )
    elif reading.without:
        say(f"{reading.without[:1].upper()}{reading.without[1:]}.")
        if len(reading.study.directions) == 1 and n_complete >= 2:
            say(
                "To learn which of its trials is best: mfhpo certify STORAGE STUDY module:objective"
            )


def _counts(reading: StudyReading) -> dict[str, int]:
    """Return how many trials are in each state; those that hold answers were no evaluations."""
    states = [
        "answers" if certificate_of(trial) is not None else trial.state.name.lower()
        for trial in reading.trials
    ]
    return {state: states.count(state) for state in sorted(set(states))}
