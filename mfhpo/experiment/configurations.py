"""Which configurations there are, which of them are equal, and what number each arm has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mfhpo.knowledge.fidelity import native


def described(value: Any) -> Any:
    """Return what tells a value from others in its `repr`: type and representation.

    1, 1.0 and True differ; NaN equals NaN; a NumPy number is the Python number.
    """
    value = native(value)
    kind = type(value)
    if kind in (list, tuple):
        return kind.__name__, [described(part) for part in value]
    if kind is dict:
        parts = ((described(name), described(part)) for name, part in value.items())
        return "dict", sorted(parts, key=repr)  # a storage may bring them in another order
    return f"{kind.__qualname__} {value!r}"


def key_of(configuration: Mapping[str, Any], describe: Callable[[Any], Any] = described) -> str:
    """Return a text that only equal configurations share.

    Parameters
    ----------
    configuration
        Values by name, in any order.
    describe
        Describes a value; libraries whose values are objects bring their own.

    Examples
    --------
    >>> key_of({"a": 1, "b": float("nan")}) == key_of({"b": float("nan"), "a": 1})
    True
    >>> len({key_of({"a": value}) for value in (1, 1.0, True)})
    3
    """
    return repr([(name, describe(configuration[name])) for name in sorted(configuration)])


class Configurations:
    """The arms of an experiment in the order in which they are known: given ones, then drawn ones.

    Equal entries of a list are one arm: they could never be told apart.

    Parameters
    ----------
    given
        Configurations that are compared.
    describe
        See `key_of`.
    """

    def __init__(
        self,
        given: Sequence[Mapping[str, Any]] = (),
        describe: Callable[[Any], Any] = described,
    ) -> None:
        self._describe = describe
        self._known: list[Mapping[str, Any]] = []
        self._keys: list[str] = []
        self._arms: dict[str, int] = {}
        self.entries = [self.add(configuration) for configuration in given]
        """The arm of each entry of the list."""

    def __len__(self) -> int:
        """Return the number of arms."""
        return len(self._known)

    def __getitem__(self, arm: int) -> dict[str, Any]:
        """Return the configuration of an arm."""
        return dict(self._known[arm])

    def label(self, arm: int) -> str:
        """Return the name of an arm in messages."""
        return f"candidate {arm}" + (f" {self[arm]!r}" if arm < len(self) else "")

    def key(self, arm: int) -> str:
        """Return the key of an arm."""
        return self._keys[arm]

    def arm_of_key(self, key: str) -> int | None:
        """Return the arm with a key, or None."""
        return self._arms.get(key)

    def find(self, configuration: Mapping[str, Any]) -> int | None:
        """Return the arm of a configuration, or None."""
        return self._arms.get(key_of(configuration, self._describe))

    def add(self, configuration: Mapping[str, Any]) -> int:
        """Return the arm of a configuration, a new one if no other is equal."""
        key = key_of(configuration, self._describe)
        arm = self._arms.setdefault(key, len(self._known))
        if arm == len(self._known):
            self._known.append(dict(configuration))
            self._keys.append(key)
        return arm
