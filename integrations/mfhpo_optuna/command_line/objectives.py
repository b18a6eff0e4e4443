"""The objective that a user names as module:function."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna

from mfhpo_optuna.command_line.output import fail
from mfhpo_optuna.study.levels import did_you_mean

Objective = Callable[[optuna.Trial], Any]


def load_objective(named: str) -> Objective:
    """Import it, from the working directory too, or exit with what is wrong."""
    module_name, colon, function = named.partition(":")
    if not (module_name and colon and function):
        fail(f"OBJECTIVE must be module:function, such as train:objective, got {named!r}.")
    if module_name.endswith(".py"):  # importing it would run the module, and then fail
        meant = module_name.removesuffix(".py").replace("/", ".")
        fail(f"OBJECTIVE must name a module, no file: {meant}:{function}, got {named!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            fail(f"{module_name} imports {error.name}, which is not installed.")
        fail(f"there is no module {module_name!r} here, nor among what is installed.")
    except SystemExit:
        fail(f"{module_name} cannot be imported: it ends the program by sys.exit when it is.")
    except Exception as error:
        fail(f"{module_name} cannot be imported: {type(error).__name__}: {error}")
    found = getattr(module, function, None)
    if not callable(found):
        if found is not None:
            fail(f"{named} is no function, but {repr(found)[:60]}.")
        functions = [name for name, value in vars(module).items() if callable(value)]
        fail(f"{module_name} has no function {function!r}.{did_you_mean(function, functions)}")
    objective: Objective = found
    return objective
