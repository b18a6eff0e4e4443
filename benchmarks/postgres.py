"""A PostgreSQL server in a temporary folder, for benchmarks and tests."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# In /proc/<number>/stat, behind the name: ticks that ended children had of the processor.
_TICKS_OF_CHILDREN = slice(13, 15)


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds; raise TimeoutError if it does not in time."""
    give_up = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > give_up:
            raise TimeoutError("a server did not start in time")
        time.sleep(0.05)


def postgres_programs() -> str | None:
    """The folder of PostgreSQL's programs, or None; Debian keeps them off the path."""
    found = shutil.which("initdb")
    if found:
        return os.path.dirname(os.path.realpath(found))
    return max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)


class Postgres:
    """A server that listens in a folder of its own, and nowhere else."""

    def __init__(self) -> None:
        programs = postgres_programs()
        if programs is None:
            raise RuntimeError("PostgreSQL is not installed (Debian: apt install postgresql).")
        self._programs = programs
        self._folder = tempfile.mkdtemp(prefix="mfhpo-postgres-")
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            account = pwd.getpwnam("postgres")
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            self._user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}
        self._data = os.path.join(self._folder, "data")
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "optuna", "--no-sync")
        self._databases = 0
        self._server = self.start()

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [os.path.join(self._programs, program), *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        command = self._command(program, *arguments)
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._user)

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it, again if it was stopped."""
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
        return self._server

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all connections in order; SIGQUIT drops everything, as a crash does."""
        self._server.send_signal(how)
        self._server.wait()

    def url(self) -> str:
        """A database that nobody has used."""
        self._databases += 1
        name = f"cell{self._databases}"
        self._run("createdb", "-h", self._folder, "-U", "optuna", name)
        return f"postgresql+psycopg://optuna@/{name}?host={self._folder}"

    def cpu_seconds(self) -> float:
        """What connections that have ended took of the processor, as Linux says."""
        text = Path(f"/proc/{self._server.pid}/stat").read_text(encoding="utf-8")
        ticks = text.rpartition(")")[2].split()[_TICKS_OF_CHILDREN]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Stop it, and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder)
