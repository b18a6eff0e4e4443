"""No wrong argument ends in anything but an error that names it.

Everything that users call is given every wrong value for each of its parameters.
"""

import contextlib
import importlib
import io

import optuna
import pytest

from tests.contract.arguments import core_calls, optuna_calls, ray_calls, sklearn_calls
from tests.contract.arguments.calls import outcomes

_TABLES = (core_calls, optuna_calls, ray_calls, sklearn_calls)
_CALLS = {name: (call, table.KINDS) for table in _TABLES for name, call in table.CALLS.items()}
_NOT_CALLED = {module: names for table in _TABLES for module, names in table.NOT_CALLED.items()}

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize("name", _CALLS)
def test_a_wrong_argument_is_named(name):
    with contextlib.redirect_stdout(io.StringIO()):
        seen, unclear, (seconds, slowest) = outcomes(*_CALLS[name])
    print(f"{name}: at most {seconds:.2f} s of CPU, for {slowest}")
    assert not unclear, f"{name}, {dict(seen)}:\n" + "\n".join(unclear)


@pytest.mark.parametrize("module", _NOT_CALLED)
def test_everything_that_is_public_is_played(module):
    played = {
        name.split(".", module.count(".") + 1)[-1]
        for name in _CALLS
        if name.startswith(f"{module}.")
    }
    for name in set(importlib.import_module(module).__all__) - _NOT_CALLED[module]:
        public = getattr(importlib.import_module(module), name)
        is_warning = isinstance(public, type) and issubclass(public, Warning)
        again = module == "mfhpo.censored" and hasattr(core_calls.mfhpo, name)
        assert is_warning or again or any(call.startswith(name) for call in played), name
