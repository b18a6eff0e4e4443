"""The command `mfhpo`: a study's answer so far, printed or on a page, and its certificate."""

import importlib
import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import unquote

import optuna
import typer
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy import create_engine, inspect, make_url
from sqlalchemy.exc import DBAPIError

from mfhpo._validation import plain
from mfhpo._validation.missing import missing
from mfhpo.racing.text import clean
from mfhpo_optuna.certification import Objective, certify
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.page import write_report
from mfhpo_optuna.report.summary import Status, Summary, summary_of
from mfhpo_optuna.samplers.search_sampler import SearchSampler
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.distributions import did_you_mean
from mfhpo_optuna.study.loop.ends import is_of_storage, with_causes
from mfhpo_optuna.study.trials.attributes import certificate_of
from mfhpo_optuna.visualization.reading import read_study

_OBJECTIVE_RAISED = 1
_WRONG_ARGUMENT = 2
_NO_ANSWER = 3
_STORAGE_FAILED = 4

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]

Output = Annotated[
    Path, typer.Option("--output", "-o", help="The file to write; one that exists is replaced.")
]
Storage = Annotated[
    str,
    typer.Argument(
        metavar="STORAGE",
        help="URL of Optuna's, such as sqlite:///study.db, or the path of a file.",
        show_default=False,
    ),
]
StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="Name of a study in it.", show_default=False)
]

_STYLES: dict[Status, str] = {
    "certified": "bold green",
    "not certified": "bold yellow",
    "best so far": "bold yellow",
    "no answer": "bold red",
}

_SQLITE = "sqlite:///"
_SQLITE_HEADER = b"SQLite format 3\x00"

_HELP = (
    "Find the configuration that is really best, and learn how sure that is.\n\n"
    "STORAGE is a URL of Optuna's, such as sqlite:///study.db, or the path of an SQLite or journal "
    "file. With --json, what is known is printed as JSON, and nothing else."
)

_EXIT_CODES = (
    "Exit codes: 0 done; 1 the objective raised an exception; 2 an argument is wrong; "
    "3 there is no answer yet, or (certify) it is not certified; 4 the storage failed (certify)."
)

_LEAST_ROWS, _ROWS = 100, 900  # of 1,797 digits, that the cheapest training and a whole one see

_WHAT = (
    "A support vector machine learns to read handwritten digits. The number of digits that it "
    "learns from is the fidelity: a cheap training sees 100, a whole one 900. The search compares "
    "configurations on one random split of the digits. The finalists are trained again on other "
    "splits, because an error that made a configuration the best on one split is a lucky one."
)

app = typer.Typer(
    help=_HELP,
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",  # which joins the lines of a docstring's paragraphs
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _quiet() -> None:
    """Leave Optuna's own log out of what the commands print."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@app.command()
def demo(
    output: Output = Path("mfhpo-demo.html"),
    budget: Annotated[int, typer.Option(help="Whole trainings that may be paid.", min=20)] = 160,
) -> None:
    """Tune a real model in less than a minute: search, certify, and write a report."""
    objective = _digits()
    sampler = SearchSampler(
        "rows",
        budget=budget * _ROWS,
        certify_share=0.5,
        top=4,
        replicate="split",
        seed=0,
    )
    study = optuna.create_study(direction="minimize", study_name="demo", sampler=sampler)
    _write_page(study, output)  # what is wrong with it is better known before the search
    Console(highlight=False).print(_WHAT)  # wrapped between words
    study.optimize(objective)
    _print_summary(_write_page(study, output), "")
    _say(f"\n{output} shows how it went; open it in a browser.")


def _digits() -> Callable[[optuna.Trial], float]:
    """Return the objective: the share of digits that are read wrongly."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
        from sklearn.svm import SVC
    except ImportError:
        _fail(missing("the demo", "scikit-learn", "cli"))
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


@app.command()
def show(storage: Storage, study: StudyName, as_json: AsJson = False) -> None:
    """Print the answer of a study so far, also while it runs; nothing is written to it.

    It is that of `mfhpo certify`, if that has one. The study tells which sampler has run it, with
    which arguments. Of one that does not, the last answer that it holds is printed.
    """
    reading = read_study(_load_study(storage, study))
    summary = summary_of(reading, ledger_of(reading))
    states = Counter(  # those that hold answers were no evaluations
        "answers" if certificate_of(trial) is not None else trial.state.name.lower()
        for trial in reading.trials
    )
    if as_json:
        said = {"study": study, "status": summary.status, "sentence": str(summary)}
        _print_json(said | {"trials": dict(sorted(states.items())), "answer": reading.answer})
    else:
        _print_summary(summary, f"study {study}")
        if reading.answer is None and reading.without and reading.record is None:
            _say(f"{reading.without[:1].upper()}{reading.without[1:]}.")
            if len(reading.study.directions) == 1 and states["complete"] >= 2:
                how = "mfhpo certify STORAGE STUDY module:objective"
                _say(f"To learn which trial is best: {how}")
    if reading.answer is None:
        raise typer.Exit(_NO_ANSWER)


@app.command()
def report(
    storage: Storage,
    study: StudyName,
    output: Output = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one HTML file with all that is known about a study: no network is needed to read it.

    It works while the study runs, and nothing is written to the study.
    """
    summary = _write_page(_load_study(storage, study), output)
    if as_json:
        said = {"report": str(output), "status": summary.status, "sentence": str(summary)}
        _print_json(said)
    else:
        _say(f"{summary}\n{output} shows it; open it in a browser.")
    if summary.status == "no answer":
        raise typer.Exit(_NO_ANSWER)


@app.command("certify")
def certify_study(
    storage: Storage,
    study: StudyName,
    objective: Annotated[
        str,
        typer.Argument(
            metavar="OBJECTIVE",
            help="The study's objective as module:function; the working directory is looked in.",
            show_default=False,
        ),
    ],
    budget: Annotated[
        int | None, typer.Option(help="Largest number of evaluations, earlier calls included.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="How many configurations to compare; by default at most 6.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Tolerance; by default one standard deviation of noise.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Probability of a wrong claim.")] = 0.05,
    sigma: Annotated[
        float | None, typer.Option(help="Scale of the noise; by default it is estimated.")
    ] = None,
    fidelity: Annotated[
        str | None, typer.Option(help="A parameter such as epochs, to be at its upper bound.")
    ] = None,
    replicate: Annotated[
        str | None, typer.Option(help="The parameter that sets the split, the same for all.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which none begins; 0 reads the record.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Threads that evaluate; -1 for as many as there are processors.")
    ] = 1,
    plan: Annotated[
        bool, typer.Option("--plan", help="Evaluate nothing, and say about how much it takes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a study's best configurations again, and say which is best and what it is worth.

    The study is not changed: evaluations are recorded in one of their own, in the same storage,
    which `mfhpo show` and `mfhpo report` read. Called again, it goes on.
    """
    loaded = _load_study(storage, study)
    evaluate = _load_objective(objective)

    def evaluated(trial: optuna.Trial) -> Any:
        try:
            return evaluate(trial)
        except SystemExit as error:
            words = f"the objective ended the program by sys.exit({error.code!r})"
            raise RuntimeError(words) from error

    try:
        options: dict[str, Any] = {"top": top, "epsilon": epsilon, "delta": delta, "sigma": sigma}
        options |= {"budget": budget, "fidelity": fidelity, "replicate": replicate, "plan": plan}
        certificate = certify(loaded, evaluated, timeout=timeout, n_jobs=jobs, **options)
    except Exception as error:
        if (failure := _of_storage(error, loaded._storage)) is not None:
            then = "Once it works, the same call goes on."
            _fail(f"the storage failed: {_first_line(failure)}. {then}", _STORAGE_FAILED)
        passed = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
        refuses = StudySampler.sample_independent.__code__  # an objective not the study's
        if evaluated.__code__ in passed and refuses not in passed:
            if optuna.logging.get_verbosity() > optuna.logging.WARNING:
                traceback.print_exception(error)  # else Optuna has logged it
            _fail(f"the objective raised {_first_line(error)}", _OBJECTIVE_RAISED)
        if isinstance(error, TypeError | ValueError):
            _fail(str(error))
        raise
    if as_json:
        _print_json(certificate.to_dict())
    else:
        _say(str(certificate))
    if not (plan or certificate.certified):
        raise typer.Exit(_NO_ANSWER)


def _load_objective(named: str) -> Objective:
    """Import it, from the working directory too, or exit with what is wrong."""
    module_name, _, function = named.partition(":")
    if not (module_name and function) or module_name.endswith(".py"):
        _fail(f"OBJECTIVE must be module:function, such as train:objective, got {named!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        _fail(f"{module_name} cannot be imported: {type(error).__name__}: {error}")
    found: Objective | None = getattr(module, function, None)
    if callable(found):
        return found
    functions = [name for name, value in vars(module).items() if callable(value)]
    _fail(f"{module_name} has no function {function!r}.{did_you_mean(function, functions)}")


def _of_storage(error: BaseException | None, storage: BaseStorage) -> BaseException | None:
    """Return what a storage raised; Optuna's loop may raise others while it handles that."""
    while error is not None:
        if is_of_storage(error, storage):
            *_, cause = with_causes(error)
            return cause
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def _first_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[0].splitlines()[0]


def _fail(message: str, code: int = _WRONG_ARGUMENT) -> NoReturn:
    """End the command with one line about what is wrong, by default with its arguments."""
    typer.echo(f"mfhpo: {clean(message)}", err=True)
    raise typer.Exit(code)


def _say(text: str) -> None:
    """Print lines of text."""
    typer.echo("\n".join(map(clean, text.split("\n"))))


def _print_json(content: Any) -> None:
    """Print plain values as ASCII, for pipes of any encoding; what is not finite becomes null."""
    typer.echo(json.dumps(plain(content), indent=2))


def _print_summary(summary: Summary, heading: str) -> None:
    """Print an answer for people."""
    console = Console(highlight=False)
    console.print(Text(clean(heading), style="dim"))
    console.print(Text(str(summary), style=_STYLES[summary.status]))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", max_width=38)
    table.add_column()
    for name, text in summary.rows:
        table.add_row(Text(name), Text(text))  # no value is taken for markup
    console.print(table)


def _write_page(study: optuna.Study, output: Path) -> Summary:
    """Write a report, or exit with what is wrong; return the answer in words."""
    try:
        return write_report(study, output)
    except OSError as error:
        _fail(f"--output {str(output)!r} cannot be written: {error.strerror}.")
    except ImportError as error:
        _fail(str(error))


def _load_study(storage: str, name: str) -> optuna.Study:
    """Load the study, or exit with what is wrong; no storage is made."""
    try:
        opened = _opened(storage)
        names = optuna.get_all_study_names(opened)
    except typer.Exit:
        raise  # it said what is wrong
    except Exception as error:  # a damaged journal makes Optuna raise all kinds of them
        cause = str(error.orig if isinstance(error, DBAPIError) else error)
        reason = cause.partition("\n")[0].rstrip(".")
        _fail(f"{storage!r} is no storage of Optuna that can be read: {reason}.")
    if name in names:
        return optuna.load_study(study_name=name, storage=opened)
    if not names:
        _fail(f"{storage!r} holds no study.")
    known = ", ".join(map(repr, sorted(names)))
    _fail(f"{storage!r} holds no study {name!r}, but {known}.{did_you_mean(name, names)}")


def _opened(storage: str) -> BaseStorage:
    if "://" not in storage:
        with Path(storage).open("rb") as file:
            if file.read(len(_SQLITE_HEADER)) != _SQLITE_HEADER:
                return JournalStorage(JournalFileBackend(storage))
        storage = f"{_SQLITE}{Path(storage).absolute()}"
    url = make_url(storage)
    if url.get_backend_name() == "sqlite":  # which would make the file
        path = url.database or ""
        path = unquote(path.removeprefix("file:")) if "uri" in url.query else path
        Path(path).open("rb").close()
    # Optuna would make its tables in whatever database it is allowed to write to.
    engine = create_engine(url)
    try:
        has_tables = inspect(engine).has_table("studies")
    finally:
        engine.dispose()
    if not has_tables:
        _fail(f"{storage!r} is no storage of Optuna that can be read: it lacks Optuna's tables.")
    return RDBStorage(storage)
