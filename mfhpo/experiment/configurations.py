"""Which configurations there are, which of them are equal, and what number each arm has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from mfhpo._validation import check_index, shown
from mfhpo.knowledge.fidelity import native

Describe: TypeAlias = Callable[[Any], Any]
Candidates: TypeAlias = Sequence[Mapping[str, Any]] | int


def described(value: Any, as_stored: bool = False) -> Any:
    """Return what tells a value from others in its `repr`: type and representation.

    With `as_stored`, values are equal of which a storage as JSON makes the same: a tuple is a list.
    """
    value = native(value)
    kind = type(value)
    if as_stored and isinstance(value, (list, tuple, dict)):
        kind = dict if isinstance(value, dict) else list
    if kind in (list, tuple):
        return kind.__name__, [described(part, as_stored) for part in value]
    if kind is dict:
        parts = ((described(n, as_stored), described(v, as_stored)) for n, v in value.items())
        return "dict", sorted(parts, key=repr)  # a storage may bring them in another order
    return f"{kind.__qualname__} {value!r}"


def key_of(configuration: Mapping[str, Any], describe: Describe = described) -> str:
    """Return a text that only equal configurations share; `describe` tells values apart.

    1, 1.0 and True differ; NaN equals NaN; a NumPy number is the Python number.
    """
    return repr([(name, describe(configuration[name])) for name in sorted(configuration)])


def arm_of_baseline(known: Configurations, baseline: Mapping[str, Any] | int | None) -> int | None:
    """Return the arm of the configuration in use today, or of its entry; ValueError without one."""
    if baseline is None:
        return None
    if not isinstance(baseline, Mapping):
        return known.entries[check_index("baseline", baseline, len(known.entries))]
    arm = known.find(baseline)
    if arm is None:
        raise ValueError(
            f"baseline={shown(dict(baseline))} is none of the {len(known)} configurations that are "
            f"compared; add it to them, or give the index of one of them."
        )
    return arm


class Configurations:
    """The arms of an experiment in the order in which they are known: given ones, then drawn ones.

    Equal entries of a list are one arm: they could never be told apart. A number instead of a list
    says how many draws there are: configurations whose values a host draws when they are asked for.
    """

    def __init__(self, given: Candidates = (), describe: Describe = described) -> None:
        self._describe = describe
        self._known: list[dict[str, Any]] = []
        self._keys: list[str] = []
        self._arms: dict[str, int] = {}
        self._draws: dict[int, int] = {}  # numbers, by arm
        self._fixed: dict[int, Mapping[str, Any]] = {}  # by arm, what a whole evaluation had
        self._owners: dict[int, int] = {}  # by draw's arm, the first that is equal
        if isinstance(given, int):
            self.entries = [self.add({}, number) for number in range(given)]
        else:
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
        kind = "configuration" if arm in self._draws else "candidate"
        return f"{kind} {arm}" + (f" {self[arm]!r}" if arm < len(self) and self[arm] else "")

    def key(self, arm: int) -> str:
        """Return the key of an arm."""
        return self._keys[arm]

    def arm_of_key(self, key: str) -> int | None:
        """Return the arm with a key, or None."""
        return self._arms.get(key)

    def find(self, configuration: Mapping[str, Any], draw: int | None = None) -> int | None:
        """Return the arm of a configuration, or of the draw with a number; None without one."""
        return self._arms.get(self._key_of(configuration, draw))

    def add(self, configuration: Mapping[str, Any], draw: int | None = None) -> int:
        """Return the arm of a configuration or a draw, a new one if it has none."""
        key = self._key_of(configuration, draw)
        arm = self._arms.setdefault(key, len(self._known))
        if arm == len(self._known):
            self._known.append(dict(configuration) if draw is None else {})
            self._keys.append(key)
            if draw is not None:
                self._draws[arm] = draw
        return arm

    def draw_of(self, arm: int) -> int | None:
        """Return the number of an arm that is a draw, or None."""
        return self._draws.get(arm)

    @property
    def next_draw(self) -> int:
        """The number of a draw that no arm has."""
        return 1 + max(self._draws.values(), default=-1)

    def first_with(self, values: Mapping[str, Any]) -> int | None:
        """Return the first arm that is known to have some values, or None."""
        having = (arm for arm in range(len(self)) if self.has(arm, values))
        arm = self.find(values)
        return next(having, None) if arm is None else arm

    def note(self, arm: int, values: Mapping[str, Any]) -> None:
        """Note values of a draw that are known before it was evaluated; the first ones hold."""
        if arm in self._draws and arm not in self._fixed:
            self._known[arm] = {**values, **self._known[arm]}

    def fix(self, arm: int, configuration: Mapping[str, Any]) -> None:
        """Say what a whole evaluation of a draw had; the first one fixes what the draw is."""
        if arm in self._draws:
            self._known[arm] = {**configuration, **self._fixed.get(arm, {})}
            self._fixed[arm] = self._known[arm]

    def identify(self, arm: int, configuration: Mapping[str, Any]) -> int:
        """Fix what a draw is, and return the first arm that is equal, or its own."""
        self.fix(arm, configuration)
        if arm in self._draws and arm not in self._owners:
            key = key_of(configuration, self._describe)
            self._owners[arm] = self._arms.setdefault(key, arm)
        return self._owners.get(arm, arm)

    def owner(self, arm: int) -> int:
        """Return the first arm that is equal, as far as that is known."""
        return self._owners.get(arm, arm)

    def is_of(self, arm: int, configuration: Mapping[str, Any] | None, is_whole: bool) -> bool:
        """Tell whether an evaluation was of an arm; one that is not whole has some values alone."""
        if configuration is None:  # it is what was claimed
            return True
        if arm in self._draws:
            return self._agrees(self._fixed.get(arm, {}), configuration)
        return self.find(configuration) == arm if is_whole else self.has(arm, configuration)

    def has(self, arm: int, values: Mapping[str, Any]) -> bool:
        """Tell whether an arm is known to have some values."""
        known = self._known[arm]
        return values.keys() <= known.keys() and self._agrees(known, values)

    def _agrees(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        for name in one.keys() & other.keys():
            if self._describe(one[name]) != self._describe(other[name]):
                return False
        return True

    def _key_of(self, configuration: Mapping[str, Any], draw: int | None) -> str:
        return key_of(configuration, self._describe) if draw is None else f"draw {draw}"
