"""Memory that running trials hold, measured on each node by an actor, which Tune's loop asks."""

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

from mfhpo.censored import memory
from mfhpo.censored.memory import memory_of, surely

_logger = logging.getLogger(__name__)

_PERIOD = 0.25  # seconds between two questions to a node
_AFTER_FAILURE = 30.0  # seconds until a node that could not be asked is asked again

# Takes the processes of trials, by their names; returns the bytes that they hold, as far as known.
Look: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, int]]
_Run: TypeAlias = tuple[str, str]  # a trial, and the actor that it runs in


class NodeMemory:
    """Measures trials by actors, one on each node; a cheap upper bound is enough up to `limit`."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._places: dict[_Run, tuple[str, int]] = {}
        self._nodes: dict[str, _Node] = {}

    def __call__(self, processes: Mapping[str, Any]) -> dict[str, int]:
        """Return the bytes that trials hold, by their names, and ask the nodes again."""
        actors = {name: each for name, each in processes.items() if isinstance(each, ActorHandle)}
        runs = [(name, actor._actor_id.hex()) for name, actor in actors.items()]
        seen: dict[_Run, int] = {}
        for node in self._nodes.values():
            seen |= node.seen()
        places = {run: self._places.get(run) or _place_of(run[1]) for run in runs}
        self._places = {run: place for run, place in places.items() if place is not None}
        for name in {node for node, _ in self._places.values()}:
            here = {run: pid for run, (node, pid) in self._places.items() if node == name}
            self._nodes.setdefault(name, _Node(name)).ask(here, self._limit)
        # A process may have been given to another trial, or a trial to another process.
        return {run[0]: used for run, used in seen.items() if run in runs}


@dataclass
class _Node:
    name: str
    sampler: Any = None  # the actor
    runs: Sequence[_Run] = ()  # of the last question
    answer: Any = None  # to it; None if there is none to come
    waits_until: float = -math.inf

    def ask(self, processes: Mapping[_Run, int], limit: float) -> None:
        """Ask what runs hold, by their processes, if the node is to be asked again by now."""
        now = time.monotonic()
        if self.answer is None and now >= self.waits_until:
            self.sampler = self.sampler or _begin(self.name)
            self.runs, self.waits_until = list(processes), now + _PERIOD
            self.answer = self.sampler.held.remote(list(processes.values()), limit)

    def seen(self) -> dict[_Run, int]:
        """Return what the node has answered, if it has by now."""
        if self.answer is None or not ray.wait([self.answer], timeout=0)[0]:
            return {}
        answer, self.answer = self.answer, None
        try:
            return dict(zip(self.runs, ray.get(answer), strict=True))
        except RayError as error:
            _logger.warning("On one node, the memory of trials is not limited now: %s", error)
            self.sampler, self.waits_until = None, time.monotonic() + _AFTER_FAILURE
            return {}


def _begin(node: str) -> Any:
    class Sampler:  # made here, so that Ray sends it: nodes of trials need none of our packages
        def held(self, processes: Sequence[int], limit: float) -> list[int]:
            return [surely(partial(memory_of, pid), limit) for pid in processes]

    # Not elsewhere if the node is gone: the numbers would be those of other processes.
    here = NodeAffinitySchedulingStrategy(node, soft=False)
    cloudpickle.register_pickle_by_value(memory)
    try:
        return ray.remote(Sampler).options(num_cpus=0, scheduling_strategy=here).remote()
    finally:
        cloudpickle.unregister_pickle_by_value(memory)


def _place_of(actor_id: str) -> tuple[str, int] | None:
    """Return the node of a process and its number there; None while it is not known."""
    known = ray._private.state.actors(actor_id)
    if known.get("State") != "ALIVE":
        return None
    return known["Address"]["NodeID"], known["Pid"]
