"""Where the configurations of a search come from: a space, of which there is always another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mfhpo.search import Numeric, OneOf, Point
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.space import Config, has, open_part, without
from mfhpo_ray.searchers.arms import Arms
from mfhpo_ray.searchers.candidates import Candidates
from mfhpo_ray.searchers.parameters import Parameters

__all__ = ["OpenCandidates"]

# Draws that repeat a known configuration before the space is taken to have no other.
_MOST_REPEATS = 100


class OpenCandidates(Candidates):
    """The space that a search draws from, before and after the Tuner has handed it over."""

    def __init__(self, space: Mapping[str, Any] | None, keys: Sequence[str]) -> None:
        super().__init__(1, space, None, keys)
        self._state: dict[str, Any] = {}
        self._parameters = Parameters({})
        self._open: Config | None = None

    def make(self, seed: int, while_drawing: Any) -> Arms:
        """Settle for the space as it is known now; no arm is drawn yet. See `Candidates`."""
        space, _ = self._to_draw_from("configurations", "the search a space=...")
        values = dict(zip(self._keys, (while_drawing, seed), strict=False))
        owned = {name: values.get(name) for name in self._keys if has(space, name)}
        self._settle(space, owned, self._space is None)
        return Arms([])

    @property
    def kinds(self) -> dict[str, Numeric | OneOf]:
        """The parameters of the space that a model can place."""
        return self._parameters.kinds

    def draw(self, arm: int, point: Point | None, seed: int, arms: Arms) -> Config:
        """A configuration at a point; or anywhere, unlike those so far if there is one."""
        config = first = self._drawn(point, [seed, arm])
        attempt = 0
        while point is None and arms.equal_to(config) is not None and attempt < _MOST_REPEATS:
            attempt += 1
            config = self._drawn(None, [seed, arm, attempt])
        return first if arms.equal_to(config) is not None else config

    def point_of(self, config: Config) -> Point:
        """Where a configuration lies."""
        return self._parameters.point_of(config)

    def state_dict(self) -> dict[str, Any]:
        """The space, as plain JSON values; a restored experiment may not hand it over again."""
        return self._state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Settle for the space that was saved."""
        self._settle(decode(state["space"]), decode(state["owned"]), bool(state["from_tuner"]))

    def _settle(self, space: Config, owned: Config, from_tuner: bool) -> None:
        self._state = {"space": encode(space), "owned": encode(owned), "from_tuner": from_tuner}
        self._parameters = Parameters(space, owned)
        # The Tuner has the constants of its space, which may be large.
        self._open = without(space, self._keys) if from_tuner else None

    def _drawn(self, point: Point | None, key: list[int]) -> Config:
        config = self._parameters.draw(point, key)
        return config if self._open is None else open_part(self._open, config)
