"""The instances of two papers on best arms, from the files that their authors publish.

The authors' generator has no seed, so that the published instances cannot be drawn again; their
files hold each mean. Two programs write two forms of file, and both are read here.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Arrays: TypeAlias = dict[str, Any]
"""Arrays of float64 by their names; any, because savez has options of other types."""


def instance_of(*files: Path) -> Arrays:
    """One instance, whose parts may be in several files.

    Returns
    -------
    dict
        means, of shape (levels, arms), cheapest level first; costs and xi, of shape (levels,);
        variance; gamma, of shape (levels,), if a file has it.

    Raises
    ------
    ValueError
        If a file has neither of the two forms.
    """
    found: Arrays = {}
    for file in files:
        found |= _arrays(read_yaml(file), file)
    return found


def digest(arrays: Arrays) -> str:
    """SHA-256 of names, shapes and values."""
    contents = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name].astype("<f8")
        contents.update(name.encode() + str(values.shape).encode() + values.tobytes())
    return contents.hexdigest()


def _arrays(given: Mapping[str, Any], file: Path) -> Arrays:
    if "theta" in given:  # of 2022: a row for each level
        named = {
            "means": given["theta"],
            "costs": given["costs"],
            "variance": given["variance_proxy"],
            "xi": given.get("max_fidelity"),
            "gamma": given.get("order_fidelity"),
        }
    elif "arms" in given:  # of 2024: a row for each arm, and a standard deviation
        named = {
            "means": np.transpose(given["arms"]),
            "costs": given["costs"],
            "variance": given["other_fixed_dist_param"] ** 2,
            "xi": given["fidelity_bounds"],
        }
    else:
        raise ValueError(f"{file} must hold `theta` or `arms`, got {sorted(given)}.")
    return {
        name: np.array(values, dtype=np.float64)
        for name, values in named.items()
        if values is not None
    }


def read_yaml(file: Path) -> dict[str, Any]:
    """Plain data of a YAML file, tuples among them; it runs nothing that the file holds."""
    import yaml  # here, so that what reads no such file does without it

    class Loader(yaml.SafeLoader):
        """Plain data, and tuples, which one of the files has as keys."""

    def tuple_of(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> tuple[Any, ...]:
        return tuple(loader.construct_sequence(node))

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", tuple_of)
    read: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), Loader)
    return read
