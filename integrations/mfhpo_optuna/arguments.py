"""A sampler's arguments as JSON, so that a stored study says how it was run, and back.

A sampler writes them into its study when it runs its first trial. `mfhpo_optuna.report` reads them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution
from optuna.samplers import BaseSampler, RandomSampler

from mfhpo.censored.charges import Linear
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian

_DATA = {
    kind.__name__: kind
    for kind in (Bias, Bounded, EstimatedNoise, Fidelity, Gaussian, Linear, SubGaussian)
}

# Bytes of all arguments as JSON, which is ASCII: MySQL holds 65,535 in an attribute.
_MOST_BYTES = 60_000

# Characters that are shown of an argument that JSON does not hold.
_SHOWN = 200


class StandIn(RandomSampler):
    """In the place of a sampler of which only the class's name is known: reading draws nothing."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def name_of(sampler: BaseSampler) -> str:
    """The name of its class, or of the class that it stands for."""
    return sampler.name if isinstance(sampler, StandIn) else type(sampler).__name__


def to_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as plain JSON values; of what has no such form, the text alone.

    So it is with the longest ones, where a database may not hold all of them.

    Examples
    --------
    >>> to_json({"fidelity": Fidelity("epochs"), "arms": 8})["arms"]
    8
    """
    found = {name: _encoded(value) for name, value in arguments.items()}
    bytes_of = {name: len(json.dumps(encoded)) for name, encoded in found.items()}
    for name in sorted(bytes_of, key=lambda name: -bytes_of[name]):
        if len(json.dumps(found)) <= _MOST_BYTES:
            break
        found[name] = _unknown(arguments[name])
    return found


def from_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `to_json` was given, but for samplers: a `StandIn` has their place.

    Raises ValueError for an argument of which only the text is known.

    Examples
    --------
    >>> from_json(to_json({"sigma": Bounded(0.0, 1.0)}))
    {'sigma': Bounded(low=0.0, high=1.0)}
    """
    found = {}
    for name, value in arguments.items():
        try:
            found[name] = _decoded(value)
        except ValueError as error:
            raise ValueError(f"{name}={error}") from error
    return found


def _encoded(value: Any) -> Any:
    value = native(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, BaseDistribution):
        return {"distribution": distribution_to_json(value)}
    if _DATA.get(type(value).__name__) is type(value):
        content = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {"class": type(value).__name__, "fields": content}
    if isinstance(value, Mapping):
        return {"mapping": [[str(name), _encoded(item)] for name, item in value.items()]}
    if isinstance(value, (Sequence, np.ndarray)):
        return [_encoded(item) for item in value]
    if isinstance(value, BaseSampler):
        return {"sampler": name_of(value)}
    return _unknown(value)


def _unknown(value: Any) -> dict[str, str]:
    return {"unknown": repr(value)[:_SHOWN]}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "distribution" in value:
        return json_to_distribution(value["distribution"])
    if "class" in value:
        content = {name: _decoded(item) for name, item in value["fields"].items()}
        if isinstance(content.get("bounds"), list):
            content["bounds"] = tuple(content["bounds"])  # of a `Bias`
        return _DATA[value["class"]](**content)
    if "mapping" in value:
        return {name: _decoded(item) for name, item in value["mapping"]}
    if "sampler" in value:
        return StandIn(value["sampler"])
    raise ValueError(value["unknown"])
