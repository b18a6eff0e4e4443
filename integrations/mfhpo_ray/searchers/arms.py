"""The arms of a race: which configuration each of them stands for."""

from __future__ import annotations

import base64
import copy
import tempfile
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from ray.tune.search import Searcher

from mfhpo._validation import check_count
from mfhpo.knowledge.fidelity import native
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.space import Config, fingerprint, has, with_values_of, without

__all__ = ["ArmSearch", "Arms", "ArmsLike", "check_arms"]

ArmsLike: TypeAlias = int | Sequence[Mapping[str, Any]]


def check_arms(arms: ArmsLike, owned: Collection[str]) -> int | list[Config]:
    """Return the number of arms, or the arms themselves."""
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        return check_count("arms", int(arms), 1)
    if not isinstance(arms, Sequence) or not all(isinstance(arm, Mapping) for arm in arms):
        raise TypeError(
            f"arms must be a number or a list of configurations, got {arms!r}; to draw from a "
            f"search space, give the number, and the space as space=... or to the Tuner."
        )
    if not arms:
        raise ValueError("arms=[] is empty; give at least one configuration.")
    seen: dict[str, int] = {}
    listed = []
    for position, arm in enumerate(arms):
        for name in owned:
            if has(arm, name):
                raise ValueError(
                    f"arms[{position}] contains {name!r}, which the search itself sets in every "
                    f"trial; leave it out of the arms."
                )
        config = _native(arm)
        first = seen.setdefault(fingerprint(config), position)
        if first != position:
            raise ValueError(
                f"arms[{first}] and arms[{position}] are equal: {dict(arm)}; equal arms can never "
                f"be told apart, remove one."
            )
        listed.append(config)
    return listed


def _native(value: Any) -> Any:
    """A copy of nested dictionaries, lists and tuples, in which NumPy's numbers are Python's."""
    if isinstance(value, Mapping):
        return {name: _native(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_native, value))
    return native(value)


class Arms:
    """Configurations of all arms, some of which may be drawn later."""

    def __init__(self, configs: Sequence[Config | None]) -> None:
        self._configs = list(configs)
        self._arms: dict[str, int] = {}
        self._encoded: dict[int, dict[str, Any]] = {}
        # What trials really ran with, where that is not what was suggested.
        self._shown: dict[int, Config] = {}
        for arm, config in enumerate(self._configs):
            if config is not None:
                self._arms.setdefault(fingerprint(config), arm)

    def __len__(self) -> int:
        return len(self._configs)

    def make_room(self, arm: int) -> None:
        """See that there is such an arm, to be drawn later."""
        self._configs += [None] * (arm + 1 - len(self._configs))

    def is_known(self, arm: int) -> bool:
        """Whether the arm's configuration is drawn."""
        return self._configs[arm] is not None

    @property
    def unknown(self) -> list[int]:
        """The arms whose configurations are not drawn yet."""
        return [arm for arm, config in enumerate(self._configs) if config is None]

    def config(self, arm: int) -> Config:
        """A copy of the arm's configuration, to suggest; empty before it is drawn."""
        return copy.deepcopy(self._configs[arm] or {})

    def shown(self, arm: int) -> Config:
        """The arm's configuration with the objects that Tune puts in the place of placeholders."""
        return self._shown.get(arm, self._configs[arm] or {})

    def encoded(self, arm: int) -> dict[str, Any]:
        """The arm's configuration as plain JSON."""
        if arm not in self._encoded:
            self._encoded[arm] = encode(self._configs[arm])
        return self._encoded[arm]

    def equal_to(self, config: Config) -> int | None:
        """The first arm with this configuration, or None."""
        return self._arms.get(fingerprint(config))

    def adopt(self, arm: int, config: Config) -> None:
        """Take an arm's configuration as drawn; one that is known stays."""
        if self._configs[arm] is None:
            self._configs[arm] = config
            self._arms.setdefault(fingerprint(config), arm)

    def learn(self, arm: int, result: Mapping[str, Any]) -> None:
        """Learn from a trial's flat result what it ran with."""
        config = self._configs[arm]
        if config is not None and arm not in self._shown:
            shown = with_values_of(config, result)
            if fingerprint(shown) != fingerprint(config):
                self._shown[arm] = shown

    def state_dict(self) -> dict[str, Any]:
        """The configurations as plain JSON values."""
        return {
            "configs": [
                self.encoded(arm) if self.is_known(arm) else None for arm in range(len(self))
            ],
            "shown": [[arm, encode(config)] for arm, config in self._shown.items()],
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Arms:
        """The arms whose `state_dict` was saved."""
        arms = cls([None if config is None else decode(config) for config in state["configs"]])
        arms._shown = {int(arm): decode(config) for arm, config in state["shown"]}
        return arms


class ArmSearch:
    """Another searcher, which is asked for one configuration for each arm, and told its value."""

    def __init__(self, search: Searcher, owned: Collection[str]) -> None:
        self.search = search
        self.exhausted = False  # whether it has said that there are no more
        self._owned = tuple(owned)
        self._drawn = 0
        # Arm -> the name under which the searcher waits for its value.
        self._waits_for: dict[int, str] = {}

    def draw(self, arm: int) -> Config | None:
        """A configuration for an arm, None if there is none now, or none at all."""
        if self.exhausted:
            return None
        name = f"arm_{self._drawn}"
        suggested: Any = self.search.suggest(name)
        if suggested is None:
            return None
        if suggested == Searcher.FINISHED:
            self.exhausted = True
            return None
        self._drawn += 1
        self._waits_for[arm] = name
        return without(suggested, self._owned)

    def draw_new(
        self, arm: int, arms: Arms, recovered: dict[int, dict[str, Any]]
    ) -> tuple[bool, int | None]:
        """Draw an arm's configuration: whether there was one, and the arm that it is equal to.

        The results in `recovered` are those of arms that were drawn before a restart of which the
        searcher knows nothing: it is told what it draws again of them.
        """
        while (config := self.draw(arm)) is not None:
            equal = arms.equal_to(config)
            if equal is not None and equal in recovered:
                self.tell(arm, recovered.pop(equal))
                continue
            arms.adopt(arm, config)
            if equal is not None:
                self.give_up(arm)
            return True, equal
        return False, None

    def tell(self, arm: int, result: Mapping[str, Any]) -> None:
        """Tell the value of an arm, if it is the first one."""
        name = self._waits_for.pop(arm, None)
        if name is not None:
            self.search.on_trial_complete(trial_id=name, result=dict(result), error=False)

    def give_up(self, arm: int) -> None:
        """Tell that an arm has no value."""
        name = self._waits_for.pop(arm, None)
        if name is not None:
            self.search.on_trial_complete(trial_id=name, result=None, error=True)

    def state_dict(self) -> dict[str, Any]:
        """What was drawn and told, and the searcher's own state where it can be saved."""
        state: dict[str, Any] = {
            "exhausted": self.exhausted,
            "drawn": self._drawn,
            "waits_for": [list(item) for item in self._waits_for.items()],
            "search": None,
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "search")
            try:
                self.search.save(str(path))
                state["search"] = base64.b64encode(path.read_bytes()).decode()
            except (NotImplementedError, FileNotFoundError):
                pass  # it then begins anew, with arms that are drawn after a restart
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.exhausted = bool(state["exhausted"])
        self._drawn = int(state["drawn"])
        self._waits_for = {}
        if state["search"] is None:
            return
        self._waits_for = {int(arm): str(name) for arm, name in state["waits_for"]}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "search")
            path.write_bytes(base64.b64decode(state["search"]))
            self.search.restore(str(path))
