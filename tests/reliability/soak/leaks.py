"""What a race leaves behind in this process, among processes, and among temporary files."""

import contextlib
import gc
import multiprocessing.util
import os
import threading
import time
from unittest.mock import patch

import psutil

_MARK = "MFHPO_SOAK"
_SERVERS = ("postgres", "redis-server")  # they have processes of their own
_PATIENCE = 5.0  # seconds that processes may take to end after the one that they serve was killed


class Watch:
    """Knows the processes that this one has started, and theirs, by a word in their environment.

    Temporary files of all of them go to a folder of their own.
    """

    def __init__(self, folder):
        self._folder = folder
        self._word = f"{os.getpid()} {time.time_ns()}"
        self._processes = None
        self._changed = contextlib.ExitStack()

    def __enter__(self):
        multiprocessing.util.get_temp_dir()  # of this process: it is removed when that ends
        self._folder.mkdir()
        environment = {_MARK: self._word, "TMPDIR": str(self._folder)}
        self._changed.enter_context(patch.dict(os.environ, environment))
        self._changed.enter_context(patch("tempfile.tempdir", str(self._folder)))
        return self

    def __exit__(self, *error):
        self._changed.close()

    def look(self):
        """What there is now."""
        gc.collect()
        give_up = time.monotonic() + _PATIENCE
        processes = self._count()
        while self._processes is not None and processes > self._processes:
            if time.monotonic() > give_up:
                break
            time.sleep(0.1)
            processes = self._count()
        self._processes = processes
        this = psutil.Process()
        return {
            "megabytes": round(this.memory_info().rss / 2**20, 1),
            "descriptors": this.num_fds(),
            "threads": threading.active_count(),
            "processes": processes,
            "temporary_files": sum(1 for _ in self._folder.rglob("*")),
        }

    def _count(self):
        return sum(self._is_ours(process) for process in psutil.process_iter())

    def _is_ours(self, process):
        try:
            marked = process.environ().get(_MARK) == self._word
            return marked and process.name() not in _SERVERS
        except (psutil.Error, OSError):
            return False
