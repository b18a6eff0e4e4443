"""Configurations: in JSON, what tells them apart, nested keys, and draws from Tune's spaces."""

from __future__ import annotations

import base64
import copy
import functools
import hashlib
import math
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from ray import cloudpickle
from ray.tune.search.sample import Categorical, Domain, Float, Integer, Quantized
from ray.tune.search.variant_generator import (
    assign_value,
    generate_variants,
    grid_search,
    parse_spec_vars,
)
from ray.tune.utils import flatten_dict

from mfhpo.experiment import key_of
from mfhpo.knowledge.fidelity import Fidelity, geometric_levels, native

Config: TypeAlias = dict[str, Any]
Number: TypeAlias = Float | Integer

_MISSING = object()  # no value of a key
_N_SEEDS = 2**31  # seeds are from 0 to one less
_MOST_REPEATS = 1000  # in a row, and a space is taken to have no more configurations

# How the placeholders begin that Tune puts in the place of functions, which it calls anew in each
# trial, and of other objects.
FUNCTIONS = ("__fn_ph",)
_PLACEHOLDERS = (*FUNCTIONS, "__ref_ph")


# In JSON: as they are where JSON gives them back the same, pickled where not.


def encode(value: Any) -> dict[str, Any]:
    """Return a value as plain JSON; it may hold tuples, functions or classes."""
    if _is_plain(value):
        return {"plain": value}
    return {"pickled": base64.b64encode(cloudpickle.dumps(value)).decode()}


def decode(content: dict[str, Any]) -> Any:
    """Return the value that was encoded."""
    if "plain" in content:
        return content["plain"]
    return cloudpickle.loads(base64.b64decode(content["pickled"]))


def described(value: Any) -> Any:
    """Return what tells a value from others, the same in each process (see `key_of`).

    Functions and classes are told apart by module and name, local ones and lambdas by their code.
    """
    value = native(value)
    kind = type(value)
    if kind in (list, tuple):
        return kind.__name__, [described(part) for part in value]
    if kind is dict:
        parts = ((described(name), described(part)) for name, part in value.items())
        return "dict", sorted(parts, key=repr)
    if kind in (set, frozenset):
        return kind.__name__, sorted(map(described, value), key=repr)
    if value is None or value is ... or kind in (bool, int, float, complex, str, bytes):
        return f"{kind.__qualname__} {value!r}"
    if isinstance(value, types.CodeType):
        return "code", value.co_code.hex(), value.co_names, described(value.co_consts)
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return _of_named(value)
    if isinstance(value, functools.partial):
        return "partial", described([value.func, value.args, value.keywords])
    try:
        content = cloudpickle.dumps(value)
    except Exception:  # whatever a value of the user raises
        return f"{kind.__qualname__} {value!r}"
    return f"{kind.__qualname__} {hashlib.sha256(content).hexdigest()}"


def _of_named(value: Any) -> Any:
    name = f"{value.__module__}.{value.__qualname__}"
    if not isinstance(value, types.FunctionType) or name.count("<") == 0:
        return f"{type(value).__name__} {name}"
    cells = [cell for cell in map(_content_of, value.__closure__ or ()) if cell is not value]
    return name, described([value.__code__, value.__defaults__, value.__kwdefaults__, cells])


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return None


def _is_plain(value: Any) -> bool:
    """Return whether JSON gives back the same value, of the same type."""
    if type(value) is dict:
        return all(type(name) is str and _is_plain(part) for name, part in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    is_finite = type(value) is not float or math.isfinite(value)
    return value is None or (type(value) in (bool, int, float, str) and is_finite)


# Keys of nested dictionaries: "a/b" is the key "b" of the dictionary "a", unless there is a key
# "a/b".


def find(config: Any, name: str, default: Any = None) -> Any:
    """Return the value of a key, or else the default; nested keys are joined by ``"/"``."""
    if name in config:
        return config[name]
    for key in name.split("/"):
        if not isinstance(config, Mapping) or key not in config:
            return default
        config = config[key]
    return config


def has(config: Mapping[str, Any], name: str) -> bool:
    """Return whether there is such a key."""
    return find(config, name, _MISSING) is not _MISSING


def assign(config: Config, name: str, value: Any) -> None:
    """Set the value of a key, and make the dictionaries that it is nested in."""
    *parents, key = [name] if name in config else name.split("/")
    for parent in parents:
        config = config.setdefault(parent, {})
    config[key] = value


def without(config: Mapping[str, Any], names: Collection[str]) -> Config:
    """Return a copy without some keys, and without the dictionaries that they leave empty."""
    left = dict(config)
    for name in names:
        key, _, rest = name.partition("/")
        if name in left:
            del left[name]
        elif rest and isinstance(left.get(key), Mapping) and has(left[key], rest):
            left[key] = without(left[key], [rest])
            if not left[key]:
                del left[key]
    return left


def copied(value: Any) -> Any:
    """Return a copy of nested containers with Python's numbers for NumPy's."""
    if isinstance(value, Mapping):
        return {name: copied(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    return native(value)


def fingerprint(config: Mapping[str, Any]) -> str:
    """Return a text that equal configurations share, in each process."""
    return key_of(config, described)


def placeholders_in(
    config: Mapping[str, Any], tokens: Collection[str] = _PLACEHOLDERS
) -> list[str]:
    """Return the keys of a configuration whose values Tune replaces in a trial."""

    def is_placeholder(value: Any) -> bool:
        if not isinstance(value, (list, tuple)) or not value:
            return False
        is_marked = isinstance(value[0], str) and value[0] in tokens
        return is_marked or any(map(is_placeholder, value))

    return [name for name, value in flatten_dict(dict(config)).items() if is_placeholder(value)]


# What is open in a space.


def is_open(value: Any) -> bool:
    """Return whether Tune has to draw a value, or a part of it."""
    return bool(_open_in({"value": value}))


def open_names(space: Mapping[str, Any]) -> list[str]:
    """Return the keys whose values Tune has to draw; for lists and tuples, the whole's key."""
    return list(dict.fromkeys("/".join(map(str, path)) for path in _open_in(space)))


def open_part(space: Mapping[str, Any], config: Mapping[str, Any]) -> Config:
    """Return what a configuration has beyond the constants of its space."""
    part: Config = {}
    for path in _open_in(space):
        source, target = config, part
        for key in path[:-1]:
            source, target = source[key], target.setdefault(key, {})
        target[path[-1]] = source[path[-1]]
    return part


def check_grids(space: Mapping[str, Any]) -> None:
    """Raise ValueError for a grid of dictionaries, into which Tune merges what is suggested."""
    for path, value in _open_in(space).items():
        if any(isinstance(one, Mapping) for one in _grid(value) or ()):
            raise ValueError(
                f"param_space[{'/'.join(map(str, path))!r}] is a tune.grid_search of dictionaries, "
                f"which Tune merges with what a search suggests; write tune.choice([...])."
            )


def domains_in(space: Mapping[str, Any]) -> list[tuple[tuple[Any, ...], Domain]]:
    """Return the domains by their paths, also those of grids and expressions."""
    _, domains, grids = parse_spec_vars(dict(space))
    return [*domains, *grids]


def _open_in(space: Mapping[str, Any]) -> dict[tuple[Any, ...], Any]:
    """Return what is open by its path; lists and tuples are whole."""
    found: dict[tuple[Any, ...], Any] = {}
    for path, _ in domains_in(space):
        at: Any = space
        for depth, key in enumerate(path, start=1):
            at = at[key]
            if not isinstance(at, Mapping) or depth == len(path):
                found.setdefault(tuple(path[:depth]), at)
                break
    return found


def _grid(domain: Any) -> Sequence[Any] | None:
    is_grid = isinstance(domain, Mapping) and set(domain) == {"grid_search"}
    return list(domain["grid_search"]) if is_grid else None


# Levels and replicates.


def levels_of(fidelity: Fidelity, space: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the declared levels of a fidelity, or geometric ones of a range, or categories."""
    domain = find(space, fidelity.name)
    values, shown = _values(domain), getattr(domain, "domain_str", domain)
    for level in fidelity.levels or ():
        is_range = isinstance(domain, Float)
        if not (domain.is_valid(level) if is_range else values is None or level in values):
            raise ValueError(
                f"levels of the fidelity {fidelity.name!r} contain {level!r}, which the search "
                f"space does not allow: {shown}; change the levels or the space."
            )
    if fidelity.levels is not None:
        return tuple(fidelity.levels)
    levels = list(domain.categories) if isinstance(domain, Categorical) else _grid(domain)
    if levels is None and isinstance(domain, Number):
        low, high, step = bounds_of(domain)
        if math.isfinite(low) and math.isfinite(high):
            levels = geometric_levels(low, high, whole=isinstance(domain, Integer), step=step)
    if levels is None:
        name, trouble = fidelity.name, f"its values have no bounds: {shown}"
        if domain is None:
            trouble = f"there is no {name!r} in the search space, which has {open_names(space)}"
        raise ValueError(
            f"fidelity={name!r} has no levels, because {trouble}. Give the space {{{name!r}: "
            f"tune.randint(1, 82)}}, or declare fidelity=Fidelity({name!r}, levels=[1, 3, 9])."
        )
    fidelity.check_levels(levels)
    return tuple(levels)


def replicates_of(name: str, space: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values of a replicate in the space, or seeds if there is no end of them."""
    values = _values(find(space, name))
    return range(_N_SEEDS) if values is None else values


def bounds_of(domain: Number) -> tuple[float, float, float | None]:
    """Return the least and largest value of a range, and the step between values or None."""
    low, high, step = domain.lower, domain.upper, step_of(domain)
    if isinstance(domain, Integer) and step in (None, 1):
        return low, high - 1, None  # only where values are quantised is the upper bound one
    if step is not None and math.isfinite(low) and math.isfinite(high):
        low = step * math.ceil(low / step - 1e-9)
        high = step * math.floor(high / step + 1e-9)
    return low, high, step


def step_of(domain: Domain) -> float | None:
    """Return the number whose multiples a domain holds, or None."""
    sampler = domain.get_sampler()
    return sampler.q if isinstance(sampler, Quantized) else None


# Draws.


def draw_configs(space: Mapping[str, Any], n: int, seed: int) -> list[Config]:
    """Draw `n` different configurations as Tune does, or all of a finite space with fewer."""
    spec: dict[str, Any] = copy.deepcopy(dict(space))
    _, domains, grids = parse_spec_vars(spec)
    functions = [(path, domain) for path, domain in domains if domain.is_function()]
    for path, _ in functions:
        # They look at the rest of a configuration, which has to be drawn first.
        assign_value(spec, path, None)

    def variants(**options: Any) -> Iterator[Config]:
        for _, config in generate_variants(spec, **options):
            for path, function in functions:
                assign_value(config, path, function.sample(config))
            yield config

    rest = [(path, domain) for path, domain in [*domains, *grids] if not domain.is_function()]
    values = [_values(domain) for _, domain in rest]
    finite = [found for found in values if found is not None]
    if len(finite) == len(rest) and math.prod(map(len, finite)) <= n:
        for (path, _), found in zip(rest, finite, strict=True):
            assign_value(spec, path, grid_search(list(found)))
        return list({fingerprint(config): config for config in variants()}.values())
    for path, grid in grids:
        # One after the other, a grid's first values would be all that few arms see.
        assign_value(spec, path, Categorical(grid.categories).uniform())
    rng = np.random.default_rng(seed)
    drawn: dict[str, Config] = {}
    repeats = 0
    while len(drawn) < n and repeats < _MOST_REPEATS:
        for config in variants(random_state=rng):
            key = fingerprint(config)
            repeats = repeats + 1 if key in drawn else 0
            drawn.setdefault(key, config)
    return list(drawn.values())[:n]


def _values(domain: Any) -> Sequence[Any] | None:
    """Return all values of a domain or grid, or None if there is no end of them."""
    if isinstance(domain, Categorical):
        # A domain among the categories is drawn from in turn.
        return None if any(map(is_open, domain.categories)) else domain.categories
    if not isinstance(domain, Number):
        return _grid(domain)
    low, high, step = bounds_of(domain)
    whole = isinstance(domain, Integer)
    if step is None:
        return range(int(low), int(high) + 1) if whole else None
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    multiples = (k * step for k in range(round(low / step), round(high / step) + 1))
    return [int(value) if whole else value for value in multiples]
