"""Values and exceptions on their way from one process to another."""

import pickle
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]
from typing import Any, TypeAlias

from mfhpo_optuna.study.loop.ends import OF_STORAGE, with_causes


@dataclass(frozen=True)
class PackedError:
    """What was raised: the exception itself or, where that cannot cross, its class and message."""

    pickled: bytes  # of no exception if it cannot cross
    pickled_class: bytes
    message: str
    traceback: str
    of_storage: bool  # it came out of the trial's storage, or was raised from what did

    def error(self) -> BaseException:
        """Return the exception, or the nearest to it that this process knows."""
        error = self._nearest()
        if self.of_storage:
            setattr(error, OF_STORAGE, True)
        return error

    def _nearest(self) -> BaseException:
        for make in (partial(pickle.loads, self.pickled), self._of_its_class):
            with suppress(Exception):
                error = make()
                # What was made without its __init__ may not be able to show itself.
                str(error), repr(error)
                if isinstance(error, BaseException):
                    return error
        return RuntimeError(self.message)

    def _of_its_class(self) -> Any:
        kind = pickle.loads(self.pickled_class)
        error = kind.__new__(kind)
        error.args = (self.message,)
        return error


Outcome: TypeAlias = bytes | PackedError  # a pickled value, or what was raised


def unpack(outcome: Outcome) -> Any:
    """Return the value, or raise the error; the traceback of the other process is its cause."""
    if isinstance(outcome, PackedError):
        raise outcome.error() from RemoteTraceback(f"\n{outcome.traceback.rstrip()}")
    return pickle.loads(outcome)


class _LooksLike:
    """Stands in for a value that is not to cross, and looks like it."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        return self._shown


def pack_value(value: Any) -> bytes:
    """Pack what an objective returned: numbers, or what only looks like the value.

    Optuna then raises its own error, and fails the trial. Given a text that reads like a number, an
    integer beyond all floats or what cannot be shown, it would leave the trial running.
    """
    packed: Any = None
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        with suppress(Exception):
            packed = [_number(item) for item in value]
    return pickle.dumps(_number(value) if packed is None else packed, pickle.HIGHEST_PROTOCOL)


def _number(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        with suppress(Exception):
            return float(value)
    return _LooksLike(_text(repr, value))


def pack_error(error: BaseException, of_storage: bool = False) -> PackedError:
    """Pack an exception with its traceback, whatever it is.

    `of_storage` says that it is that of a trial's storage; what was raised from such a one is, too.
    One that would end the program, as `sys.exit` raises it, becomes a RuntimeError, because Optuna
    would leave the trial running.
    """
    if not isinstance(error, Exception | KeyboardInterrupt):
        ending, shown = error, _text(repr, error)
        error = RuntimeError(
            f"the objective raised {shown}, which ends a program, instead of returning a value."
        )
        error.__cause__ = ending
    of_storage |= any(getattr(each, OF_STORAGE, False) for each in with_causes(error))
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    message = _text(str, error)
    pickled = b""
    with suppress(Exception):
        crossing = pickle.dumps(error)
        pickle.loads(crossing)  # an __init__ of its own may not take the arguments back
        pickled = crossing
    for kind in type(error).__mro__:
        with suppress(Exception):
            pickled_class = pickle.dumps(kind)
            break
    if kind is not type(error):
        message = f"{type(error).__qualname__}: {message}"
    return PackedError(pickled, pickled_class, message, text, of_storage)


def _text(show: Callable[[Any], str], value: Any) -> str:
    try:
        return show(value)
    except Exception:
        return object.__repr__(value)
