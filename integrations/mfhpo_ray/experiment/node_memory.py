"""Memory that running trials hold, measured on the nodes where they run.

The driver cannot see processes of other nodes. So each node on which limited trials run gets an
actor without a CPU that measures them. Tune's loop asks it a few times a second, and never waits.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import ray
from ray import cloudpickle
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from mfhpo import _memory
from mfhpo._memory import memory_of, surely

_logger = logging.getLogger(__name__)

_PERIOD = 0.25  # seconds between two questions to a node
_AFTER_FAILURE = 30.0  # seconds until a node that could not be asked is asked again

# Takes the processes of trials, by their names; returns the bytes that they hold, as far as known.
Look: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, int]]
_Run: TypeAlias = tuple[str, str]  # a trial, and the actor that it runs in


class NodeMemory:
    """Measures trials by actors, one on each node where trials run.

    Parameters
    ----------
    limit
        Bytes up to which a cheap upper bound is enough.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._places: dict[_Run, tuple[str, int]] = {}
        self._nodes: dict[str, _Node] = {}

    def __call__(self, processes: Mapping[str, Any]) -> dict[str, int]:
        """Return the bytes that trials hold, by their names, and ask the nodes again."""
        handles = {name: a for name, a in processes.items() if isinstance(a, ActorHandle)}
        runs = [(name, actor._actor_id.hex()) for name, actor in handles.items()]
        # A process may have been given to another trial, or a trial to another process.
        seen = {run[0]: used for run, used in self._seen().items() if run in runs}
        self._ask(runs)
        return seen

    def _seen(self) -> dict[_Run, int]:
        """Return what the nodes have answered by now."""
        asked = {node.answer: node for node in self._nodes.values() if node.answer is not None}
        seen: dict[_Run, int] = {}
        for answer in ray.wait(list(asked), num_returns=len(asked), timeout=0)[0] if asked else ():
            node = asked[answer]
            node.answer = None
            try:
                seen |= zip(node.runs, ray.get(answer), strict=True)
            except RayError as error:
                _logger.warning("On one node, the memory of trials is not limited now: %s", error)
                node.sampler, node.waits_until = None, time.monotonic() + _AFTER_FAILURE
        return seen

    def _ask(self, runs: Sequence[_Run]) -> None:
        places = {run: self._places.get(run) or _place_of(run[1]) for run in runs}
        self._places = {run: place for run, place in places.items() if place is not None}
        now = time.monotonic()
        for name in {node for node, _ in self._places.values()}:
            node = self._nodes.setdefault(name, _Node())
            if node.answer is not None or now < node.waits_until:
                continue
            here = {
                run: pid for run, (node_of_it, pid) in self._places.items() if node_of_it == name
            }
            node.sampler = node.sampler or _begin(name)
            node.runs, node.waits_until = list(here), now + _PERIOD
            node.answer = node.sampler.held.remote(list(here.values()), self._limit)


@dataclass
class _Node:
    sampler: Any = None
    runs: Sequence[_Run] = ()  # of the last question
    answer: Any = None  # to it; None if there is none to come
    waits_until: float = -math.inf


def _begin(node: str) -> Any:
    class Sampler:  # made here, so that Ray sends it: nodes of trials need none of our packages
        def held(self, processes: Sequence[int], limit: float) -> list[int]:
            return [surely(partial(memory_of, pid), limit) for pid in processes]

    # Not elsewhere if the node is gone: the numbers would be those of other processes.
    here = NodeAffinitySchedulingStrategy(node, soft=False)
    cloudpickle.register_pickle_by_value(_memory)
    try:
        return ray.remote(Sampler).options(num_cpus=0, scheduling_strategy=here).remote()
    finally:
        cloudpickle.unregister_pickle_by_value(_memory)


def _place_of(actor_id: str) -> tuple[str, int] | None:
    """Return the node of a process and its number there; None while it is not known."""
    known = ray._private.state.actors(actor_id)
    if known.get("State") != "ALIVE":
        return None
    return known["Address"]["NodeID"], known["Pid"]
