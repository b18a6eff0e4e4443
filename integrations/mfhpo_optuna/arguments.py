"""A sampler's arguments as JSON, so that a stored study says how it was run, and back.

A sampler writes them into its study when it runs its first trial. `mfhpo_optuna.report` reads them.
Workers that run a study at the same time must have the same, which `Settings` compare.
"""

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution
from optuna.samplers import BaseSampler, RandomSampler

from mfhpo._validation import MOST_ARMS, unwrapped
from mfhpo.censored.options import Linear
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian

_DATA = {
    kind.__name__: kind
    for kind in (Bias, Bounded, EstimatedNoise, Fidelity, Gaussian, Linear, SubGaussian)
}

# The version of what samplers write into studies and trials. It rises when another version of the
# library would read it wrongly. Version 1 was that of mfhpo 0.1: its trials carry no counters.
STATE_VERSION = 2

# The new names of classes by the old ones, which studies of earlier versions have in their notes.
OLD_NAMES = {"RaceRecommendation": "SearchRecommendation", "RaceSampler": "SearchSampler"}

# Arguments in which the workers of one study may differ.
_FREE = ("lease", "progress")

_NOT_COMPARED = {"unknown": None}

_SHOWN = 200  # characters of an argument that JSON does not hold


class StandIn(RandomSampler):
    """In the place of a sampler of which only the class's name is known: reading draws nothing."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class Settings:
    """What all workers that run a study at the same time must have in common.

    An argument that is its default counts as not given. What JSON does not hold is not compared.
    """

    def __init__(self, sampler: BaseSampler, arguments: Mapping[str, Any]) -> None:
        self._sampler, self._given = type(sampler).__name__, arguments
        parameters = inspect.signature(type(sampler)).parameters.values()
        self._usual = _compared(to_json({each.name: each.default for each in parameters}))
        compared = _compared(to_json(arguments)).items()
        own = [(name, value) for name, value in compared if value != self._usual.get(name)]
        content = [STATE_VERSION, self._sampler, sorted(own)]
        # The same for equal settings, in all processes; trials say by it how they were chosen.
        self.digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    @cached_property
    def note(self) -> dict[str, Any]:
        """The sampler and its arguments, as a study notes them; `from_json` reads the latter."""
        return {
            "sampler": self._sampler,
            "arguments": to_json(self._given),
            "digest": self.digest,
            "version": STATE_VERSION,
        }

    def objection_to(self, noted: Mapping[str, Any], others: Sequence[str]) -> str:
        """Return why a worker with these must not run a study with this note, or nothing.

        `others` are trials under way, in words, that began with other settings.
        """
        if not others or noted.get("digest") == self.digest:
            return ""
        given = noted.get("arguments")
        theirs = _compared(given if isinstance(given, Mapping) else {})
        mine, usual = _compared(to_json(self._given)), self._usual
        names = [
            name
            for name in {**theirs, **mine}
            if theirs.get(name, usual.get(name)) != mine.get(name, usual.get(name))
        ]
        if noted.get("sampler") not in (None, self._sampler):
            names = ["sampler"]
        differing = f"They differ in {', '.join(names)}. " if names else ""
        return (
            f"is run with other arguments by another worker: {others[0]}. {differing}Give all "
            f"workers the same arguments, or wait until the others have ended; a trial of a dead "
            f"worker ends with study.tell(number, state=optuna.trial.TrialState.FAIL)."
        )


def objection_to_version(note: Mapping[str, Any] | None) -> str:
    """Return why this version of the library cannot read a study with a note, or nothing."""
    version = note.get("version", 1) if note else STATE_VERSION
    if version == STATE_VERSION:
        return ""
    return (
        f"was run by another mfhpo, which writes version {version} of a study's state; this one "
        f"knows version {STATE_VERSION} alone (mfhpo 0.1.4: 1). Go on with the other one, or begin "
        f"another study."
    )


def to_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as plain JSON values; of what has no such form, the text alone."""
    return {name: _encoded(value) for name, value in arguments.items()}


def from_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `to_json` was given, a `StandIn` for samplers; ValueError for mere texts."""
    found = {}
    for name, value in arguments.items():
        if not may_be_arms(value) and name in ("arms", "candidates"):
            raise ValueError(f"{name}={value}, which is more than {MOST_ARMS:,}")
        try:
            found[name] = _decoded(value)
        except ValueError as error:
            raise ValueError(f"{name}={error}") from error
    return found


def may_be_arms(noted: Any) -> bool:
    """Return whether the arms that are noted, or their number, can be those of a race."""
    return not isinstance(noted, (int, float)) or noted <= MOST_ARMS


def _compared(encoded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the encoded arguments that count, equal for what means the same."""
    return {name: _normal(value) for name, value in encoded.items() if name not in _FREE}


def _normal(encoded: Any) -> Any:
    if isinstance(encoded, float) and encoded.is_integer():
        return int(encoded)
    if isinstance(encoded, list):
        return [_normal(item) for item in encoded]
    if isinstance(encoded, Mapping):
        if "unknown" in encoded:
            return _NOT_COMPARED
        return {name: _normal(item) for name, item in encoded.items()}
    return encoded


def _encoded(value: Any) -> Any:
    value = unwrapped(native(value))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, BaseDistribution):
        try:
            return {"distribution": distribution_to_json(value)}
        except TypeError:  # of choices that JSON does not hold
            return _unknown(value)
    if _DATA.get(type(value).__name__) is type(value):
        content = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {"class": type(value).__name__, "fields": content}
    if isinstance(value, Mapping):
        return {"mapping": [[str(name), _encoded(item)] for name, item in value.items()]}
    if isinstance(value, (Sequence, np.ndarray)):
        return [_encoded(item) for item in value]
    if isinstance(value, BaseSampler):
        return {"sampler": value.name if isinstance(value, StandIn) else type(value).__name__}
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
