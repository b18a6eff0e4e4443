"""Machine code: loops that are compiled where numba is installed, linear algebra on one thread."""

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, *helpers: Callable[..., object]) -> Function:
    """Give the compiled version of a function, or the function itself without numba.

    numba is imported at the first call and not before; what it compiled is kept on disk, beside the
    function's module. `helpers` are the functions that it calls, from the same module, so that the
    copy on disk is renewed when one of them changes; they stay plain Python for everybody else.
    """
    return cast(Function, _compiled(function, helpers))


@cache
def _compiled(
    function: Callable[..., object], helpers: tuple[Callable[..., object], ...]
) -> Callable[..., object]:
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return function
    for helper in helpers:
        register_jitable(helper)
    jitted: Callable[..., object]
    try:
        jitted = njit(cache=True)(function)
    except RuntimeError:  # nowhere to keep it: neither the module's folder nor a home is writable
        jitted = njit(function)
    return jitted


_is_set = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep NumPy's and SciPy's linear algebra to one thread; also a decorator.

    With some hundred rows, further threads gain nothing, and beside other work they wait for each
    other: a suggestion then takes ten times as long. The setting is the process's: whoever made it
    takes it back. Without threadpoolctl nothing happens.
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
