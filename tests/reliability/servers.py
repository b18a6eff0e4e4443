"""Databases and proxies, started in folders of their own, and what goes wrong there."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading

from benchmarks.postgres import until
from tests.reliability.workers import CONTEXT, serve


class Redis:
    """A server that listens in a folder of its own, and nowhere else."""

    def __init__(self):
        self._folder = tempfile.mkdtemp(prefix="mfhpo-redis-")
        self._socket = os.path.join(self._folder, "socket")
        options = ["--port", "0", "--unixsocket", self._socket, "--save", "", "--dir", self._folder]
        self._server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        self._databases = -1
        until(lambda: os.path.exists(self._socket))

    def url(self):
        self._databases += 1
        return f"redis:unix://{self._socket}?db={self._databases % 16}"

    def close(self):
        self._server.kill()
        self._server.wait()
        shutil.rmtree(self._folder)


class Proxy:
    """A gRPC proxy before a storage, in a process of its own, and a cable that can be cut."""

    def __init__(self, storage):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = CONTEXT.Process(target=serve, args=(storage, port))
        self._process.start()
        self._behind = ("127.0.0.1", port)
        until(lambda: self._connection() is not None)
        self._is_cut = False
        self._ends = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _connection(self):
        try:
            return socket.create_connection(self._behind)
        except OSError:
            return None

    def url(self):
        return f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self):
        self._is_cut = True
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.clear()

    def mend(self):
        self._is_cut = False

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = None if self._is_cut else self._connection()
                if far is None:
                    near.close()
                    continue
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listener.close()
        self.cut()
        self._process.kill()
        self._process.join()
