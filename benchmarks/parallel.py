"""Tasks on several processes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def mapped(
    function: Callable[[Any], Any], tasks: Sequence[Any], workers: int, chunksize: int = 1
) -> Iterator[Any]:
    """Results of a function in the order of its tasks; with one worker without any process."""
    if workers == 1:
        yield from map(function, tasks)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(function, tasks, chunksize=chunksize)
