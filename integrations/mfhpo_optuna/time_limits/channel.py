"""Messages over a socket between two processes, one of which may be killed at any moment."""

import os
import pickle
import socket
import struct
import weakref
from typing import Any

_LENGTH = struct.Struct("!Q")
_CHUNK = 1 << 20

# Once a message begins to arrive, the other side is only slow if it pauses for this many seconds.
_STALL = 5.0

_private: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def close_in_forked_children(end: socket.socket) -> None:
    """Keep an end of a connection from being inherited, so that it closes when this process dies.

    Only forks matter: Python itself keeps it from programs that this process executes.
    """
    _private.add(end)


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
