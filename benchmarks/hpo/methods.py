"""The optimisers that are compared, by the module that holds them."""

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from benchmarks.hpo.ask_tell import Make
from benchmarks.hpo.clock.race import on_the_clock
from benchmarks.hpo.meter import Meter

Method: TypeAlias = Callable[[Meter, int], None]
"""Called with a meter and a seed; optimises until the meter raises BudgetSpent."""

OURS = "ours"
"""The module of this project's own optimisers."""

HEADLINE = "mfhpo search"
"""The one of them by which this project is judged, whatever its others do."""


def methods_of(peer: str, workers: int | None = None) -> dict[str, Method]:
    """Methods by name.

    Parameters
    ----------
    peer
        Name of a module of benchmarks/peers/, or "ours".
    workers
        If given, those that can be asked and told, with so many workers on a virtual clock.

    Raises
    ------
    ModuleNotFoundError
        If there is no such module, or it needs a package that is not installed here.
    """
    module = import_module("benchmarks.hpo.ours" if peer == OURS else f"benchmarks.peers.{peer}")
    methods: dict[str, Method] = module.METHODS
    if workers is None:
        return methods
    makers: dict[str, Make] = getattr(module, "CLOCKED", {})
    return {name: on_the_clock(make, workers) for name, make in makers.items()}
