"""Linear algebra on one thread."""

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_is_set = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep NumPy's and SciPy's linear algebra to one thread, if threadpoolctl is there.

    With some hundred rows, further threads gain nothing, and beside other work they wait for each
    other: a suggestion then takes ten times as long.
    """
    controller = _controller()
    if controller is None or not _is_set.acquire(blocking=False):
        yield
        return
    try:
        with controller.limit(limits=1):
            yield
    finally:
        _is_set.release()


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    importlib.import_module("scipy.linalg")  # or its library is not there to be found
    return ThreadpoolController().select(user_api="blas")
