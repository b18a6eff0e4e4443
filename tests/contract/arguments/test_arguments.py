"""No wrong argument ends in anything but an error that names it.

Everything that users call is given wrong values for each of its parameters. The first call that has
a parameter of a name gets all of them; others get a quarter each, in turn, unless slow tests are
run.
"""

import contextlib
import importlib
import io
from collections import Counter

import optuna
import pytest

from tests.contract.arguments import core_calls, optuna_calls, ray_calls, sklearn_calls
from tests.contract.arguments.calls import outcomes

_TABLES = (core_calls, optuna_calls, ray_calls, sklearn_calls)
_CALLS = {name: (call, table.KINDS) for table in _TABLES for name, call in table.CALLS.items()}
_NOT_CALLED = {module: names for table in _TABLES for module, names in table.NOT_CALLED.items()}

_ALL = slice(None)

optuna.logging.set_verbosity(optuna.logging.ERROR)


def _in_turn():
    """Return the share of the values that each parameter of each call gets."""
    times = Counter()
    shares = {}
    for name, (call, _) in _CALLS.items():
        names = call.parameters()
        shares[name] = {each: slice(times[each] % 4, None, 4) for each in names}
        shares[name] |= {each: _ALL for each in names if times[each] == 0}
        times.update(names)
    return shares


_SHARES = _in_turn()


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", _CALLS)
def test_a_wrong_argument_is_named(name, whole):
    shares = dict.fromkeys(_SHARES[name], _ALL) if whole else _SHARES[name]
    with contextlib.redirect_stdout(io.StringIO()):
        seen, unclear, (seconds, slowest) = outcomes(*_CALLS[name], shares)
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
