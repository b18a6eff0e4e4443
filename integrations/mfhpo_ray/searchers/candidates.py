"""The configurations of a search: given ones, or drawn from a space as a model sees it."""

from __future__ import annotations

import copy
import math
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Integer,
    LogUniform,
    Normal,
    Quantized,
    Sampler,
)
from ray.tune.search.variant_generator import assign_value
from scipy.special import ndtr, ndtri

from mfhpo._validation import (
    MOST_ARMS,
    check_configurations,
    check_count,
    check_dictionaries,
    check_instance,
    is_number,
)
from mfhpo.experiment import Begun
from mfhpo.experiment.space import index_of
from mfhpo.search import Numeric, OneOf, Point, place_in_range
from mfhpo_ray.experiment.configurations import (
    FUNCTIONS,
    Config,
    Number,
    assign,
    bounds_of,
    check_grids,
    copied,
    decode,
    described,
    domains_in,
    draw_configs,
    find,
    fingerprint,
    has,
    open_names,
    open_part,
    placeholders_in,
    step_of,
    without,
)
from mfhpo_ray.experiment.journal import EventLog

ArmsLike: TypeAlias = int | Sequence[Mapping[str, Any]]

_REDRAWN = "drawn anew in each trial"
"""Stands in an answer for a value that differs between the trials of one configuration."""


class Candidates:
    """The configurations of a search, before and after the Tuner has handed over its space.

    Without `arms` a search draws its own. Of the `keys` that the search sets, that of the fidelity
    or the limit is the first. The user's argument for `arms` has the `name`.
    """

    def __init__(
        self,
        arms: int | list[Config] | None,
        space: Mapping[str, Any] | None,
        keys: Sequence[str],
        name: str,
    ) -> None:
        self.given, self._keys, self._name = arms, tuple(keys), name
        self.tuner_space: dict[str, Any] = {}
        check_instance("space", space, Mapping | None, "a dictionary of Tune's domains or None")
        if space is not None and isinstance(self.given, list):
            raise ValueError(
                f"space and {name}=[...] are given, but {name} come from one; leave one out."
            )
        self._space = None if space is None else dict(space)

    @property
    def space(self) -> dict[str, Any]:
        """Search space as far as it is known."""
        return {**(self._space or {}), **self.tuner_space}

    def take(self, config: Mapping[str, Any]) -> bool:
        """Take the Tuner's search space; False if what it draws is not the search's to draw."""
        check_grids(config)
        self.tuner_space = dict(config)
        names = open_names(without(config, self._keys))
        for position, arm in enumerate(self.given if isinstance(self.given, list) else ()):
            if missing := [name for name in names if not has(arm, name)]:
                raise ValueError(
                    f"{self._name}[{position}]={arm!r} has no {missing[0]!r}, which param_space "
                    f"leaves open; add it to the {self._name}, or drop it from param_space."
                )
        return isinstance(self.given, list) or self._space is None or not names

    @property
    def redrawn(self) -> list[str]:
        """The keys beside those of all configurations that Tune may draw anew in each trial."""
        return placeholders_in(without(self.tuner_space, self._keys), FUNCTIONS)

    def source(
        self, seed: int, while_drawing: Any, drawn: list[Config] | None
    ) -> list[Config] | Parameters:
        """Return the configurations, those that were `drawn` before, or the space to draw from.

        The first key that the search sets has the value `while_drawing` meanwhile.
        """
        if isinstance(self.given, list):
            return self.given
        if self.given is not None and drawn is not None:
            return drawn
        space = self.tuner_space if self._space is None else self._space
        rest = without(space, self._keys)
        if not open_names(rest):
            raise ValueError(
                f"there is nothing to draw from but the constants {sorted(rest)}: give the Tuner a "
                f"param_space, or the search a space=..., or the configurations themselves."
            )
        values = dict.fromkeys(self._keys, seed) | {self._keys[0]: while_drawing}
        owned = {name: value for name, value in values.items() if has(space, name)}
        # The Tuner has the constants of its space, which may be large.
        beyond = rest if self._space is None else None
        if self.given is None:
            return Parameters(space, owned, beyond)
        whole = without(space, list(owned))
        for name, value in owned.items():
            assign(whole, name, value)
        arms = [without(arm, self._keys) for arm in draw_configs(whole, self.given, seed)]
        return arms if beyond is None else [open_part(beyond, arm) for arm in arms]


def check_arms(arms: ArmsLike | None, owned: Collection[str], name: str) -> int | list[Config]:
    """Return the number of arms, or the arms themselves."""
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        return check_count(name, int(arms), 1, MOST_ARMS)
    right = "a list of configurations, or a number to draw from a search space"
    listed = [copied(arm) for arm in check_dictionaries(name, arms, right)]
    if not listed:
        raise ValueError(f"{name}=[] is empty; give at least one configuration.")
    check_configurations(name, listed, owned=owned, owner="search", contains=has, key=fingerprint)
    return listed


class Shown:
    """Learns from trials what they ran with, and shows configurations with that."""

    def __init__(self) -> None:
        self._redrawn: set[str] = set()  # keys
        self._values: dict[str, Config] = {}

    def learn(self, configuration: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        """Learn what a trial ran with, by key; return the keys that are known as redrawn now."""
        known = self._values.setdefault(fingerprint(configuration), dict(values))
        new = (name for name in values if name not in self._redrawn)
        found = [name for name in new if described(known.get(name)) != described(values[name])]
        self._redrawn.update(found)
        return found

    def relearn(self, log: EventLog) -> None:
        """Learn from the notes of trials before a restart."""
        for event in log.experiment.events:
            if isinstance(event, Begun) and (ran := log.notes(event.id).get("ran")):
                self.learn(event.configuration, decode(ran))

    def of(self, configuration: Mapping[str, Any]) -> Config:
        """Return a configuration as trials ran with it."""
        shown = copy.deepcopy(dict(configuration))
        for name, value in self._values.get(fingerprint(configuration), {}).items():
            assign(shown, name, _REDRAWN if name in self._redrawn else value)
        return shown


# A space as a model sees it.

_BELOW_1 = 1.0 - 1e-12
_TAIL = 1e-9  # of a normal distribution, on either side


class Parameters:
    """The open part of a search space, by name, and the configurations at its places.

    What is open within a category has its index in its name: ``"model[0]/C"``. Functions, and
    domains that Tune does not have, are drawn without a model. The values in `owned` are no part of
    the configurations: functions may look at them. With a space `without_constants` neither are its
    constants.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        owned: Mapping[str, Any] | None = None,
        without_constants: Mapping[str, Any] | None = None,
    ) -> None:
        self._owned = dict(owned or {})
        self._open = without_constants
        self._space = without(space, list(self._owned))
        kinds = ((name, kind_of(domain)) for name, domain in _domains(self._space, ""))
        self.kinds: dict[str, Numeric | OneOf] = {name: kind for name, kind in kinds if kind}

    def draw(self, point: Point | None, key: Sequence[int]) -> tuple[Config, Point]:
        """Return the configuration at a point, and its own point; what that lacks is drawn."""
        places: Point = point or {}
        own: dict[str, float] = {}
        functions: list[tuple[tuple[Any, ...], Domain]] = []

        def built(part: Any, name: str, above: tuple[Any, ...]) -> Any:
            whole = {name: copied(part)}
            for path, domain in domains_in(whole):
                assign_value(whole, path, value_of(domain, _named(path), (*above, *path[1:])))
            return whole[name]

        def value_of(domain: Domain, name: str, path: tuple[Any, ...]) -> Any:
            if domain.is_function():
                # They look at the rest of a configuration, which has to be there first.
                functions.append((path, domain))
                return None
            rng = np.random.default_rng([*key, zlib.crc32(name.encode())])
            if isinstance(domain, Categorical):
                index = int(places.get(name, rng.random() * len(domain.categories)))
                if name in self.kinds:
                    own[name] = float(index)
                return built(domain.categories[index], f"{name}[{index}]", path)
            if name not in self.kinds or not isinstance(domain, Number):
                return domain.sample(random_state=rng)
            value = value_at(places.get(name, float(rng.random())), domain)
            if (place := place_of(value, domain)) is not None:
                own[name] = place
            return value

        config: Config = built(self._space, "", ())
        if functions:
            for name, value in self._owned.items():
                assign(config, name, value)
            for path, function in functions:
                assign_value(config, path, function.sample(config))
            config = without(config, list(self._owned))
        return config if self._open is None else open_part(self._open, config), own

    def place(self, values: Mapping[str, Any]) -> Point:
        """Return the point of some values, nested ones by ``"/"`` or nested."""
        point: dict[str, float] = {}

        def look(part: Any, name: str, given: Any) -> None:
            for path, domain in domains_in({name: part}):
                key = _named(path[1:])
                value = find(given, key) if key else given
                named = _named(path)
                place: float | None = None
                if isinstance(domain, Categorical):
                    of = (i for i, one in enumerate(domain.categories) if _is_of(value, one))
                    index = next(of, None)
                    if index is not None:
                        place = float(index)
                        look(domain.categories[index], f"{named}[{index}]", value)
                elif isinstance(domain, Number):
                    place = place_of(value, domain)
                if place is not None and named in self.kinds:
                    point[named] = place

        look(self._space, "", values)
        return point


def _domains(part: Any, name: str) -> Iterator[tuple[str, Domain]]:
    """Yield the domains of a space by name, those below choices included."""
    for path, domain in domains_in({name: part}):
        yield _named(path), domain
        if isinstance(domain, Categorical):
            for index, category in enumerate(domain.categories):
                yield from _domains(category, f"{_named(path)}[{index}]")


def _is_of(value: Any, category: Any) -> bool:
    """Return whether a value is a category, or one of a category that is open in part."""
    if isinstance(category, Categorical):
        return any(_is_of(value, one) for one in category.categories)
    if isinstance(category, Number):
        return place_of(value, category) is not None
    if isinstance(category, Mapping) and isinstance(value, Mapping):
        return all(_is_of(value.get(name), part) for name, part in category.items())
    return index_of(value, [category]) is not None


def _named(path: tuple[Any, ...]) -> str:
    return "/".join(str(key) for key in path if key != "")


def kind_of(domain: Domain) -> Numeric | OneOf | None:
    """Return the kind of a domain for a model; None without a choice or without a model."""
    if isinstance(domain, Categorical):
        n = len(domain.categories)
        return OneOf(n) if n > 1 else None
    if not isinstance(domain, Number):
        return None
    if isinstance(_inner(domain), Normal):
        return Numeric()
    low, high, step = bounds_of(domain)
    if step is None and isinstance(domain, Float):
        return Numeric() if low < high else None
    first, last = _steps(low, high, step)
    if first >= last:
        return None
    return Numeric.stepwise(
        lambda place: value_at(place, domain), lambda value: place_of(value, domain) or 0.0
    )


def place_of(value: Any, domain: Number) -> float | None:
    """Return the share of Tune's own draws below a number; None if it is none of the domain's.

    Whole numbers are in the middle of what is rounded to them.
    """
    if not is_number(value):
        return None
    sampler = _inner(domain)
    if isinstance(sampler, Normal):
        return float(ndtr((value - sampler.mean) / sampler.sd))
    low, high, step = bounds_of(domain)
    is_log = isinstance(sampler, LogUniform)
    if isinstance(domain, Float):
        return place_in_range(float(value), low, high, is_log) if low <= value <= high else None
    (first, last), index = _steps(low, high, step), float(value) / (step or 1)
    if not first <= index <= last:
        return None
    if is_log:
        middle = (math.log(index) + math.log(index + 1.0)) / 2.0
        return (middle - math.log(first)) / math.log((last + 1.0) / first)
    return (index - first + 0.5) / (last - first + 1)


def value_at(place: float, domain: Any) -> Any:
    """Return the number at a place."""
    place = min(max(place, 0.0), _BELOW_1)
    sampler, step = _inner(domain), step_of(domain)
    is_log = isinstance(sampler, LogUniform)
    if isinstance(sampler, Normal):
        value = sampler.mean + sampler.sd * float(ndtri(min(max(place, _TAIL), 1.0 - _TAIL)))
        return domain.cast(value if step is None else round(value / step) * step)
    low, high, _ = bounds_of(domain)
    if isinstance(domain, Integer):
        first, last = _steps(low, high, step)
        index = first + int(place * (last - first + 1))
        index = int(_on_log_scale(place, first, last + 1.0)) if is_log else index
        return domain.cast(min(max(index, first), last) * int(step or 1))
    value = _on_log_scale(place, low, high) if is_log else low + place * (high - low)
    if step is not None:
        value = round(value / step) * step
    return domain.cast(min(high, max(low, value)))


def _steps(low: float, high: float, step: float | None) -> tuple[int, int]:
    """Return the first and last whole number of a range of multiples of a step."""
    return round(low / (step or 1)), round(high / (step or 1))


def _inner(domain: Domain) -> Sampler:
    sampler: Sampler = domain.get_sampler()
    return sampler.get_sampler() if isinstance(sampler, Quantized) else sampler


def _on_log_scale(place: float, low: float, high: float) -> float:
    return math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
