"""Values and exceptions on their way from one process to another."""

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]
from typing import Any

from mfhpo_optuna.study.loop.storage_errors import OF_STORAGE, with_causes


@dataclass(frozen=True)
class PackedValue:
    """What was returned."""

    pickled: bytes

    def unpack(self) -> Any:
        """Return it."""
        return pickle.loads(self.pickled)


@dataclass(frozen=True)
class PackedError:
    """What was raised: the exception itself or, where that cannot cross, its class and message."""

    pickled: bytes  # of no exception if it cannot cross
    pickled_class: bytes
    message: str
    traceback: str
    of_storage: bool  # it came out of the trial's storage, or was raised from what did

    def unpack(self) -> Any:
        """Raise it; the traceback of the other process is its cause."""
        raise self.error() from RemoteTraceback(f"\n{self.traceback.rstrip()}")

    def error(self) -> BaseException:
        """Return the exception, or the nearest to it that this process knows."""
        error = self._nearest()
        if self.of_storage:
            setattr(error, OF_STORAGE, True)
        return error

    def _nearest(self) -> BaseException:
        for make in (PackedValue(self.pickled).unpack, self._of_its_class):
            try:
                error = make()
                # What was made without its __init__ may not be able to show itself.
                str(error), repr(error)
            except Exception:
                continue
            if isinstance(error, BaseException):
                return error
        return RuntimeError(self.message)

    def _of_its_class(self) -> Any:
        kind = pickle.loads(self.pickled_class)
        error = kind.__new__(kind)
        error.args = (self.message,)
        return error


class _LooksLike:
    """Stands in for a value that is not to cross, and looks like it."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        return self._shown


def pack_value(value: Any) -> PackedValue:
    """Pack what an objective returned.

    What cannot be pickled crosses as a number if it can be made one, or else as something that only
    looks like it: Optuna then raises its own error. So does a text, which Optuna itself may take
    for a number, and then leaves the trial running.
    """
    of = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(item, (str, bytes)) for item in of):
        return PackedValue(pickle.dumps(_LooksLike(repr(value))))
    try:
        return PackedValue(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception:
        pass
    try:
        return PackedValue(pickle.dumps(float(value)))
    except Exception:
        return PackedValue(pickle.dumps(_LooksLike(_text(repr, value))))


def pack_error(error: BaseException, of_storage: bool = False) -> PackedError:
    """Pack an exception with its traceback, whatever it is.

    `of_storage` says that it is that of a trial's storage; what was raised from such a one is, too.
    """
    of_storage |= any(getattr(each, OF_STORAGE, False) for each in with_causes(error))
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # an __init__ of its own may not take the arguments back
    except Exception:
        pickled = b""
    message = _text(str, error)
    for kind in type(error).__mro__:
        try:
            pickled_class = pickle.dumps(kind)
        except Exception:
            continue
        if kind is not type(error):
            message = f"{type(error).__qualname__}: {message}"
        return PackedError(pickled, pickled_class, message, text, of_storage)
    raise AssertionError("BaseException can be pickled")


def _text(show: Callable[[Any], str], value: Any) -> str:
    try:
        return show(value)
    except Exception:
        return object.__repr__(value)
