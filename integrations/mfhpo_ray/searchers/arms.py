"""The arms of a race: which configuration each of them stands for."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

from mfhpo._validation import MOST_ARMS, check_configurations, check_count, check_dictionaries
from mfhpo.knowledge.fidelity import native
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.space import Config, fingerprint, has, with_values_of

ArmsLike: TypeAlias = int | Sequence[Mapping[str, Any]]


def check_arms(arms: ArmsLike, owned: Collection[str]) -> int | list[Config]:
    """Return the number of arms, or the arms themselves."""
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        return check_count("arms", int(arms), 1, MOST_ARMS)
    right = (
        "a list of configurations, or a number to draw from a search space, which is given as "
        "space=... or to the Tuner"
    )
    listed = [_native(arm) for arm in check_dictionaries("arms", arms, right)]
    if not listed:
        raise ValueError("arms=[] is empty; give at least one configuration.")
    check_configurations("arms", listed, owned=owned, owner="search", contains=has, key=fingerprint)
    return listed


def _native(value: Any) -> Any:
    """Return a copy of nested containers with Python's numbers for NumPy's."""
    if isinstance(value, Mapping):
        return {name: _native(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_native, value))
    return native(value)


class Arms:
    """Configurations of all arms, some of which may be drawn later."""

    def __init__(self, configs: Iterable[Config] = ()) -> None:
        self._configs: dict[int, Config] = {}
        self._arms: dict[str, int] = {}
        self._encoded: dict[int, dict[str, Any]] = {}
        # What trials really ran with, where that is not what was suggested.
        self._shown: dict[int, Config] = {}
        for arm, config in enumerate(configs):
            self.adopt(arm, config)

    def __len__(self) -> int:
        return len(self._configs)

    def is_known(self, arm: int) -> bool:
        """Return whether the arm's configuration is drawn."""
        return arm in self._configs

    def config(self, arm: int) -> Config:
        """Return a copy of the arm's configuration, to suggest; empty before it is drawn."""
        return copy.deepcopy(self._configs.get(arm, {}))

    def shown(self, arm: int) -> Config:
        """Return the arm's configuration with the objects behind Tune's placeholders."""
        return self._shown.get(arm, self._configs.get(arm, {}))

    def encoded(self, arm: int) -> dict[str, Any]:
        """Return the arm's configuration as plain JSON."""
        if arm not in self._encoded:
            self._encoded[arm] = encode(self._configs[arm])
        return self._encoded[arm]

    def equal_to(self, config: Config) -> int | None:
        """Return the first arm with this configuration, or None."""
        return self._arms.get(fingerprint(config))

    def adopt(self, arm: int, config: Config) -> None:
        """Take an arm's configuration as drawn; one that is known stays."""
        if arm not in self._configs:
            self._configs[arm] = config
            self._arms.setdefault(fingerprint(config), arm)

    def learn(self, arm: int, result: Mapping[str, Any]) -> None:
        """Learn from a trial's flat result what it ran with."""
        config = self._configs.get(arm)
        if config is not None and arm not in self._shown:
            shown = with_values_of(config, result)
            if fingerprint(shown) != fingerprint(config):
                self._shown[arm] = shown

    def state_dict(self) -> dict[str, Any]:
        """Return the configurations as plain JSON values."""
        arms = range(1 + max(self._configs, default=-1))
        return {
            "configs": [self.encoded(arm) if self.is_known(arm) else None for arm in arms],
            "shown": [[arm, encode(config)] for arm, config in self._shown.items()],
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Arms:
        """Return the arms whose `state_dict` was saved."""
        arms = cls()
        for arm, config in enumerate(state["configs"]):
            if config is not None:
                arms.adopt(arm, decode(config))
        arms._shown = {int(arm): decode(config) for arm, config in state["shown"]}
        return arms
