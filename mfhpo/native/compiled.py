"""Hot loops are compiled where numba is installed, and run as they are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, *helpers: Callable[..., object]) -> Function:
    """Give the compiled version of a function, or the function itself without numba.

    The results are the same. numba is imported at the first call and not before, so that importing
    the library stays cheap; what it compiled is kept on disk, beside the function's module.

    Parameters
    ----------
    function
        A function that keeps to what numba can compile.
    *helpers
        The functions that it calls, from the same module, so that the copy on disk is renewed
        when one of them changes. They stay plain Python for everybody else.
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
