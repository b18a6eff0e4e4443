"""The kinds of storages, and what may go wrong with each."""

import contextlib
import importlib.util
import os
import shutil
import signal
import sqlite3
import subprocess

from benchmarks.postgres import Postgres, postgres_programs
from tests.reliability.servers import Proxy, Redis


def without(*packages):
    """Why a test is skipped that needs these packages of Python; "" if all are installed."""
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(lacking)}" if lacking else ""


class Sqlite:
    missing = staticmethod(lambda: "")

    def __init__(self, servers, folder):
        self._file = folder / "study.db"
        self.url = f"sqlite:///{self._file}"

    def lock(self):
        """Keep everybody else from the database; returns what lets them in again."""
        connection = sqlite3.connect(self._file, isolation_level=None, timeout=60)
        connection.execute("BEGIN EXCLUSIVE")
        return connection.close

    def close(self):
        """Nothing to do."""


class Journal:
    """A file in a small file system of its own, if it may be mounted."""

    missing = staticmethod(lambda: "")

    def __init__(self, servers, folder):
        self._folder = folder / "small"
        self._folder.mkdir()
        self.url = f"journal:{self._folder / 'study.log'}"

    def mount(self):
        """Make room for 4 MB; return why that cannot be, or ""."""
        command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(self._folder)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"a file system of 4 MB cannot be mounted: {error}"
        return ""

    def fill(self):
        """Use up what room there is; return what gives it back."""
        ballast = self._folder / "ballast"
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        return ballast.unlink

    def mend(self):
        """Drop the half records that a full disk has left, each before a whole one."""
        file = self._folder / "study.log"
        lines = file.read_text(encoding="utf-8").splitlines()
        whole = [line[line.rfind('{"op_code"') :] for line in lines if '{"op_code"' in line]
        file.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")

    def close(self):
        if os.path.ismount(self._folder):
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)


class OnPostgres:
    def __init__(self, servers, folder):
        if "postgres" not in servers:
            servers["postgres"] = Postgres()
        self.server = servers["postgres"]
        self.url = self.server.url()

    @staticmethod
    def missing():
        if postgres_programs() is None:
            return "PostgreSQL is not installed (Debian: apt install postgresql)"
        return without("psycopg")

    def crash(self):
        self.server.stop(signal.SIGQUIT)

    def close(self):
        """The server serves the next test."""


class OnRedis:
    def __init__(self, servers, folder):
        if "redis" not in servers:
            servers["redis"] = Redis()
        self.url = servers["redis"].url()

    @staticmethod
    def missing():
        if shutil.which("redis-server") is None:
            return "Redis is not installed (Debian: apt install redis-server)"
        return without("redis")

    def close(self):
        """The server serves the next test."""


class ByProxy:
    """gRPC before SQLite."""

    missing = staticmethod(lambda: without("grpc"))

    def __init__(self, servers, folder):
        self.proxy = Proxy(f"sqlite:///{folder / 'study.db'}")
        self.url = self.proxy.url()

    def close(self):
        self.proxy.close()


PLACES = {
    "SQLite": Sqlite,
    "PostgreSQL": OnPostgres,
    "journal file": Journal,
    "journal on Redis": OnRedis,
    "gRPC proxy": ByProxy,
}
