"""Old names of public classes, which work for one version more."""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def renamed(module: str, new_names: Mapping[str, str], stacklevel: int = 2) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that knows its old names, and warns at the first use.

    `new_names` has the new name by each old one; `stacklevel` leads from the warning to the line
    that asked for the name.
    """

    def find(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = new_names[name]
        warnings.warn(
            f"{module}.{name} is now called {module}.{new}; the old name goes with the next "
            "version.",
            FutureWarning,
            stacklevel=stacklevel,
        )
        home = import_module(module)
        setattr(home, name, getattr(home, new))  # `from module import name` asks twice
        return getattr(home, name)

    return find
