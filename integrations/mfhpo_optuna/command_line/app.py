"""The commands under one name."""

import optuna
import typer

from mfhpo_optuna.command_line.certify import certify_study
from mfhpo_optuna.command_line.demo import demo
from mfhpo_optuna.command_line.show import report, show

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
app.command()(show)
app.command()(report)
app.command("certify")(certify_study)


@app.callback()
def quiet() -> None:
    """Leave Optuna's own log out of what the commands print."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
