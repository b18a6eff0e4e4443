"""Configurations in JSON: as they are where JSON gives them back the same, pickled where not."""

import base64
import functools
import hashlib
import math
import types
from typing import Any

from ray import cloudpickle

from mfhpo.knowledge.fidelity import native


def encode(value: Any) -> dict[str, Any]:
    """Return a value as plain JSON; it may hold tuples, functions or classes."""
    if _is_plain(value):
        return {"plain": value}
    return {"pickled": base64.b64encode(cloudpickle.dumps(value)).decode()}


def decode(content: dict[str, Any]) -> Any:
    """Return the value that was encoded."""
    if "plain" in content:
        return content["plain"]
    return cloudpickle.loads(base64.b64decode(content["pickled"]))


def described(value: Any) -> Any:
    """Return what tells a value from others, the same in each process (see `key_of`).

    Functions and classes are told apart by module and name, local ones and lambdas by their code.
    """
    value = native(value)
    kind = type(value)
    if kind in (list, tuple):
        return kind.__name__, [described(part) for part in value]
    if kind is dict:
        parts = ((described(name), described(part)) for name, part in value.items())
        return "dict", sorted(parts, key=repr)
    if kind in (set, frozenset):
        return kind.__name__, sorted(map(described, value), key=repr)
    if value is None or value is ... or kind in (bool, int, float, complex, str, bytes):
        return f"{kind.__qualname__} {value!r}"
    if isinstance(value, types.CodeType):
        return "code", value.co_code.hex(), value.co_names, described(value.co_consts)
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return _of_named(value)
    if isinstance(value, functools.partial):
        return "partial", described([value.func, value.args, value.keywords])
    try:
        content = cloudpickle.dumps(value)
    except Exception:  # whatever a value of the user raises
        return f"{kind.__qualname__} {value!r}"
    return f"{kind.__qualname__} {hashlib.sha256(content).hexdigest()}"


def _of_named(value: Any) -> Any:
    name = f"{value.__module__}.{value.__qualname__}"
    if not isinstance(value, types.FunctionType) or name.count("<") == 0:
        return f"{type(value).__name__} {name}"
    cells = [cell for cell in map(_content_of, value.__closure__ or ()) if cell is not value]
    return name, described([value.__code__, value.__defaults__, value.__kwdefaults__, cells])


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return None


def _is_plain(value: Any) -> bool:
    """Return whether JSON gives back the same value, of the same type."""
    if type(value) is dict:
        return all(type(name) is str and _is_plain(part) for name, part in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    is_finite = type(value) is not float or math.isfinite(value)
    return value is None or (type(value) in (bool, int, float, str) and is_finite)
