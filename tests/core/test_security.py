"""Nothing that is read from elsewhere is run, and nothing listens; SECURITY.md says the same."""

import ast
import pickle
from functools import cache
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from mfhpo_optuna import IISESampler
from mfhpo_optuna.arguments import STATE_VERSION

ROOT = Path(__file__).parents[2]

# Between processes that one program has started, and in folders of Ray, which pickles into them.
MAY_UNPICKLE = {
    "integrations/mfhpo_optuna/time_limits",
    "integrations/mfhpo_ray/experiment",
}
UNPICKLES = {"pickle", "cloudpickle", "dill", "joblib.load", "marshal", "shelve", "yaml"}
RUNS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}
LISTENS = {".bind", ".listen", ".create_server", "HTTPServer"}


@cache
def modules():
    files = [file for part in ("mfhpo", "integrations") for file in (ROOT / part).rglob("*.py")]
    return [
        (file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8")))
        for file in sorted(files)
    ]


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (alias.name for alias in node.names)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def called(tree):
    """What is called: functions, functions of modules, and methods of whatever has them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield f".{node.func.attr}"
            if isinstance(node.func.value, ast.Name):
                yield f"{node.func.value.id}.{node.func.attr}"


def test_only_programs_that_belong_together_exchange_pickles():
    found = {name for name, tree in modules() if UNPICKLES & set(imported(tree))}
    assert found
    assert {name for name in found if name.rpartition("/")[0] not in MAY_UNPICKLE} == set()


@pytest.mark.parametrize("forbidden", [RUNS, LISTENS])
def test_nothing_is_evaluated_and_nothing_listens(forbidden):
    assert {name: forbidden & set(called(tree)) for name, tree in modules()} == {
        name: set() for name, _ in modules()
    }


class Hostile:
    """Runs something as soon as it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_a_study_full_of_pickles_and_code_is_only_read(tmp_path, monkeypatch):
    code = "__import__('pytest').fail('it was evaluated')"
    pickled = pickle.dumps(Hostile(), 0).decode()
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))

    def study():
        return optuna.create_study(
            storage=storage,
            study_name="hostile",
            load_if_exists=True,
            sampler=IISESampler("epochs", 3, epsilon=0.3, seed=0),
        )

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        trial.suggest_categorical("name", [code, pickled])
        trial.set_user_attr("mfhpo:note", pickled)
        return x**2 + 0.1 / trial.suggest_int("epochs", 1, 9) + 0.01 * (trial.number % 3)

    first = study()
    for text in (code, pickled):
        note = {"version": STATE_VERSION, "sampler": text, "arguments": {"epsilon": text}}
        first.set_user_attr("mfhpo:sampler", note)
    monkeypatch.setattr(pickle, "loads", lambda *_: pytest.fail("a pickle was loaded"))
    first.optimize(objective)
    again = study()
    assert again.sampler.recommendation(again).params["name"] in (code, pickled)
