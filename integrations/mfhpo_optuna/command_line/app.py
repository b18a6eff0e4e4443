"""The command `mfhpo`: the answer of a study so far, printed or on a page, and its other parts."""

from collections import Counter
from pathlib import Path
from shlex import quote

import optuna
import typer

from mfhpo_optuna.command_line.certify import certify_study
from mfhpo_optuna.command_line.demo import demo
from mfhpo_optuna.command_line.shared import (
    NO_ANSWER,
    AsJson,
    OutputOption,
    StorageArgument,
    StudyArgument,
    load_study,
    print_json,
    print_summary,
    say,
    write_page,
)
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.summary import summary_of
from mfhpo_optuna.study.trials.attributes import certificate_of
from mfhpo_optuna.visualization.reading import StudyReading, read_study

_HELP = (
    "Find the configuration that is really best, and learn how sure that is.\n\n"
    "STORAGE is a URL of Optuna's, such as sqlite:///study.db, or the path of an SQLite or journal "
    "file. With --json, what is known is printed as JSON, and nothing else."
)

_EXIT_CODES = (
    "Exit codes: 0 done; 1 the objective raised an exception; 2 an argument is wrong; "
    "3 there is no answer yet, or (certify) it is not certified; 4 the storage failed (certify)."
)

app = typer.Typer(
    help=_HELP,
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",  # which joins the lines of a docstring's paragraphs
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)


@app.callback()
def quiet() -> None:
    """Leave Optuna's own log out of what the commands print."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@app.command()
def show(storage: StorageArgument, study: StudyArgument, as_json: AsJson = False) -> None:
    """Print the answer of a study so far, also while it runs; nothing is written to it.

    It is that of `mfhpo certify`, if that has one. The study tells which sampler has run it, with
    which arguments. Of one that does not, the last answer that it holds is printed.
    """
    reading = read_study(load_study(storage, study))
    summary = summary_of(reading, ledger_of(reading))
    states = Counter(  # those that hold answers were no evaluations
        "answers" if certificate_of(trial) is not None else trial.state.name.lower()
        for trial in reading.trials
    )
    if as_json:
        said = {"study": study, "status": summary.status, "sentence": str(summary)}
        print_json(said | {"trials": dict(sorted(states.items())), "answer": reading.answer})
    else:
        print_summary(summary, f"study {study}")
        if reading.answer is None:
            _say_what_to_do(reading, states["complete"])
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
            say("To learn which trial is best: mfhpo certify STORAGE STUDY module:objective")


@app.command()
def report(
    storage: StorageArgument,
    study: StudyArgument,
    output: OutputOption = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one HTML file with all that is known about a study: no network is needed to read it.

    It works while the study runs, and nothing is written to the study.
    """
    summary = write_page(load_study(storage, study), output)
    if as_json:
        print_json({"report": str(output), "status": summary.status, "sentence": str(summary)})
    else:
        say(f"{summary}\n{output} shows it; open it in a browser.")
    if summary.status == "no answer":
        raise typer.Exit(NO_ANSWER)


app.command("certify")(certify_study)
