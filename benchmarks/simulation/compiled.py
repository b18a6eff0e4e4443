"""Loops that are compiled where numba is installed."""

import inspect
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, *helpers: Callable[..., object]) -> Function:
    """Give the compiled version of a function, or the function itself without numba.

    numba is imported at the first call and not before. `helpers` are the functions that it calls;
    they stay plain Python for everybody else. What was compiled is kept on disk, and is renewed
    when a module changes that one of them is from.
    """
    return cast(Function, _compiled(function, helpers))


@cache
def _compiled(
    function: Callable[..., object], helpers: tuple[Callable[..., object], ...]
) -> Callable[..., object]:
    try:
        from numba import njit
        from numba.core import config as numba_config
        from numba.extending import register_jitable
    except ImportError:
        return function
    for helper in helpers:
        register_jitable(helper)
    files = sorted({inspect.getfile(one) for one in (function, *helpers)})
    digest = sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:16]
    config: Any = numba_config
    before, config.CACHE_DIR = config.CACHE_DIR, str(Path(__file__).parent / "__pycache__" / digest)
    jitted: Callable[..., object]
    try:
        jitted = njit(cache=True)(function)
    except (OSError, RuntimeError):  # the folder cannot be written to
        jitted = njit(function)
    finally:
        config.CACHE_DIR = before
    return jitted
