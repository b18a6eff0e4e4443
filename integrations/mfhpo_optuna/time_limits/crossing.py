"""Data that go from one process to another: messages over a socket, values and exceptions.

Either process may be killed at any moment.
"""

import os
import pickle
import socket
import struct
import traceback
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]
from typing import Any, TypeAlias

from mfhpo_optuna.study.loop.ends import OF_STORAGE, with_causes

_LENGTH = struct.Struct("!Q")
_CHUNK = 1 << 20

# Once a message begins to arrive, the other side is only slow if it pauses for this many seconds.
_STALL = 5.0

# Forks must not inherit these, so that they close when this process dies.
_private: weakref.WeakSet[socket.socket] = weakref.WeakSet()
close_in_forked_children = _private.add


def private_pair() -> tuple[socket.socket, socket.socket]:
    """Return an end of a connection for this process alone, and the other end."""
    ours, theirs = socket.socketpair()
    close_in_forked_children(ours)
    return ours, theirs


def _close_private() -> None:
    for end in list(_private):
        end.close()
    _private.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_private)


class Channel:
    """Pickled messages over a connected socket, which is closed with the channel."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._received = bytearray()
        self._sending = False

    def send(self, message: Any, timeout: float | None = None) -> None:
        """Send a message; raise TimeoutError if the other side does not take it in time.

        If it cannot be pickled, nothing of it is sent.
        """
        payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        if self._sending:
            raise BrokenPipeError("an earlier message was interrupted half way.")
        self._sending = True
        self.end.settimeout(timeout)
        self.end.sendall(_LENGTH.pack(len(payload)) + payload)
        self._sending = False

    def receive(self, timeout: float | None = None) -> Any:
        """Receive a message, which must begin to arrive within `timeout` seconds.

        An interrupted call loses nothing: the next one goes on where it ended. Raises TimeoutError
        if no message arrives or one stops half way, and EOFError if the other side is closed.
        """
        self._read(_LENGTH.size, timeout)
        (length,) = _LENGTH.unpack_from(self._received)
        self._read(_LENGTH.size + length, None if timeout is None else max(timeout, _STALL))
        payload = bytes(memoryview(self._received)[_LENGTH.size : _LENGTH.size + length])
        del self._received[: _LENGTH.size + length]
        return pickle.loads(payload)

    def _read(self, size: int, timeout: float | None) -> None:
        self.end.settimeout(timeout)
        while len(self._received) < size:
            try:
                chunk = self.end.recv(min(_CHUNK, size - len(self._received)))
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise EOFError("the other side is closed.")
            self._received += chunk

    def close(self) -> None:
        """Close the socket."""
        self.end.close()


@dataclass(frozen=True)
class PackedError:
    """What was raised: the exception itself or, where that cannot cross, its class and message."""

    pickled: bytes
    message: str
    traceback: str
    of_storage: bool  # it came out of the trial's storage, or was raised from what did

    def error(self) -> BaseException:
        """Return the exception, or the nearest to it that this process knows."""
        found: Any
        try:
            found = pickle.loads(self.pickled)
            if isinstance(found, type):
                kind: Any = found
                found = kind.__new__(kind)
                found.args = (self.message,)
            # What was made without its __init__ may not be able to show itself.
            str(found), repr(found)
        except Exception:
            found = RuntimeError(self.message)
        if self.of_storage:
            setattr(found, OF_STORAGE, True)
        error: BaseException = found
        return error


Outcome: TypeAlias = bytes | PackedError  # a pickled value, or what was raised


def unpack(outcome: Outcome) -> Any:
    """Return the value, or raise the error; the traceback of the other process is its cause."""
    if isinstance(outcome, PackedError):
        raise outcome.error() from RemoteTraceback(f"\n{outcome.traceback.rstrip()}")
    return pickle.loads(outcome)


def pack_value(value: Any) -> bytes:
    """Pack what an objective returned: numbers, or what is none and shows the value.

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
    return {"returned": _text(repr, value)}


def pack_error(error: BaseException, of_storage: bool = False) -> PackedError:
    """Pack an exception with its traceback; `of_storage` says that a trial's storage raised it."""
    if not isinstance(error, Exception | KeyboardInterrupt):  # Optuna would leave the trial running
        ending, shown = error, _text(repr, error)
        error = RuntimeError(
            f"the objective raised {shown}, which ends a program, instead of returning a value."
        )
        error.__cause__ = ending
    of_storage |= any(getattr(each, OF_STORAGE, False) for each in with_causes(error))
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    message = _text(str, error)
    for crossing in (error, *type(error).__mro__):
        with suppress(Exception):
            pickled = pickle.dumps(crossing)
            pickle.loads(pickled)  # an __init__ of its own may not take the arguments back
            break
    if crossing not in (error, type(error)):
        message = f"{type(error).__qualname__}: {message}"
    return PackedError(pickled, message, text, of_storage)


def _text(show: Callable[[Any], str], value: Any) -> str:
    try:
        return show(value)
    except Exception:
        return object.__repr__(value)
