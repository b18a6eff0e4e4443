"""Databases and proxies, started in folders of their own, and what goes wrong there."""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from tests.reliability.workers import CONTEXT, serve


def until(holds, seconds=30.0):
    give_up = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > give_up:
            raise TimeoutError("a server did not start in time")
        time.sleep(0.05)


def postgres_programs():
    """The folder of PostgreSQL's programs, or None; Debian keeps them off the path."""
    found = shutil.which("initdb")
    if found:
        return os.path.dirname(os.path.realpath(found))
    return max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)


class Postgres:
    """A server that listens in a folder of its own, and nowhere else."""

    def __init__(self):
        self._folder = tempfile.mkdtemp(prefix="mfhpo-postgres-")
        self._user = {}
        if os.geteuid() == 0:  # it refuses to run as root
            account = pwd.getpwnam("postgres")
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            self._user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}
        self._data = os.path.join(self._folder, "data")
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "optuna", "--no-sync")
        self._server = None
        self._databases = 0
        self.start()

    def _command(self, program, *arguments):
        return [os.path.join(postgres_programs(), program), *arguments]

    def _run(self, program, *arguments):
        command = self._command(program, *arguments)
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._user)

    def start(self):
        # Only the system's crash could lose what is not synchronised, and it does not crash here.
        options = ["-k", self._folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        self._server = subprocess.Popen(
            self._command("postgres", "-D", self._data, *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            **self._user,
        )
        ready = self._command("pg_isready", "-q", "-h", self._folder, "-U", "optuna")
        until(lambda: subprocess.run(ready, check=False, **self._user).returncode == 0)

    def stop(self, how=signal.SIGINT):
        """SIGINT ends all connections in order; SIGQUIT drops everything, as a crash does."""
        self._server.send_signal(how)
        self._server.wait()

    def url(self):
        """A database that nobody has used."""
        self._databases += 1
        name = f"cell{self._databases}"
        self._run("createdb", "-h", self._folder, "-U", "optuna", name)
        return f"postgresql+psycopg://optuna@/{name}?host={self._folder}"

    def drop(self, url):
        name = url.partition("@/")[2].partition("?")[0]
        self._run("dropdb", "--force", "-h", self._folder, "-U", "optuna", name)

    def close(self):
        self.stop()
        shutil.rmtree(self._folder)


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

    def drop(self, url):
        import redis

        with redis.Redis.from_url(url.removeprefix("redis:")) as connection:
            connection.flushdb()

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
        self._listener.shutdown(socket.SHUT_RDWR)  # or its thread would wait for ever
        self._listener.close()
        self.cut()
        self._process.kill()
        self._process.join()
