"""Where the arms of a search come from: a list, or a search space."""

from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.utils import flatten_dict

from mfhpo._validation import check_instance
from mfhpo.search import Point
from mfhpo_ray.experiment.encoding import decode, differ, encode
from mfhpo_ray.experiment.space import (
    Config,
    assign,
    check_grids,
    draw_configs,
    has,
    open_names,
    open_part,
    without,
)
from mfhpo_ray.searchers.arms import Arms, ArmsLike, check_arms
from mfhpo_ray.searchers.parameters import Parameters

# Draws that repeat a known configuration before the space is taken to have no other.
_MOST_DRAWS = 100


class Candidates:
    """What is to be raced, before and after the Tuner has handed over its search space."""

    def __init__(
        self, arms: ArmsLike, space: Mapping[str, Any] | None, keys: Sequence[str]
    ) -> None:
        self._given = check_arms(arms, keys)
        self._keys = tuple(keys)
        self._tuner_space: dict[str, Any] = {}
        check_instance("space", space, Mapping | None, "a dictionary of Tune's domains or None")
        if space is not None and isinstance(self._given, list):
            raise ValueError(
                "space and arms=[...] are given, but arms come from one of them; leave the other "
                "out. With space, arms is a number."
            )
        self._space = None if space is None else dict(space)

    @property
    def space(self) -> dict[str, Any]:
        """Search space as far as it is known."""
        return {**(self._space or {}), **self._tuner_space}

    @property
    def names(self) -> list[str]:
        """The keys in which configurations differ, those of all choices."""
        if isinstance(self._given, list):
            return list(dict.fromkeys(name for arm in self._given for name in flatten_dict(arm)))
        return open_names(without(self.space, self._keys))

    def take(self, config: Mapping[str, Any]) -> bool:
        """Take the Tuner's search space; False if what it draws is not the search's to draw."""
        check_grids(config)
        self._tuner_space = dict(config)
        names = open_names(without(config, self._keys))
        if isinstance(self._given, list):
            _check_cover(self._given, names)
            return True
        return self._space is None or not names

    def make(self, seed: int, while_drawing: Any) -> Arms:
        """Return the arms, drawn if they come from a space.

        The first key that the search sets has the value `while_drawing` meanwhile.
        """
        if isinstance(self._given, list):
            return Arms(self._given)
        space, rest = self._to_draw_from(
            f"arms={self._given}", "the search a space=..., or the arms themselves, arms=[...]"
        )
        whole = dict(space)
        for name in self._keys:
            if has(whole, name):
                whole = without(whole, [name])
                assign(whole, name, while_drawing if name == self._keys[0] else seed)
        drawn = [without(arm, self._keys) for arm in draw_configs(whole, self._given, seed)]
        # The Tuner has the constants of its space, which may be large.
        return Arms(drawn if self._space is not None else [open_part(rest, arm) for arm in drawn])

    def _to_draw_from(self, what: str, remedy: str) -> tuple[Config, Config]:
        """Return the space, and the same without what the search sets."""
        space = self._tuner_space if self._space is None else self._space
        rest = without(space, self._keys)
        if not open_names(rest):
            raise ValueError(
                f"{what} are to be drawn, but there is nothing to draw from: give the Tuner a "
                f"param_space with more than the constants {sorted(rest)}, or {remedy}."
            )
        return space, rest

    def check_same(self, arms: Arms) -> None:
        """Raise ValueError if arms are given, and these differ from them."""
        if not isinstance(self._given, list):
            return
        given = self._given
        if len(arms) != len(given) or any(
            differ(encode(config), arms.encoded(arm)) for arm, config in enumerate(given)
        ):
            raise ValueError(
                f"arms are {len(given)} configurations, which are not the {len(arms)} of the saved "
                f"race; restore it with the arms that it was begun with."
            )


class OpenCandidates(Candidates):
    """The space that a search draws from, before and after the Tuner has handed it over."""

    def __init__(self, space: Mapping[str, Any] | None, keys: Sequence[str]) -> None:
        super().__init__(1, space, keys)
        self._state: dict[str, Any] = {}
        self.parameters = Parameters({})
        self._open: Config | None = None

    def make(self, seed: int, while_drawing: Any) -> Arms:
        """Keep the space as it is known now; no arm is drawn yet. See `Candidates`."""
        space, _ = self._to_draw_from("configurations", "the search a space=...")
        values = dict(zip(self._keys, (while_drawing, seed), strict=False))
        owned = {name: values.get(name) for name in self._keys if has(space, name)}
        self._settle(space, owned, self._space is None)
        return Arms()

    def draw(self, arm: int, point: Point | None, seed: int, arms: Arms) -> Config:
        """Return a configuration at a point; without one, a new one if there is any."""
        config = first = self._drawn(point, [seed, arm])
        attempt = 0
        while point is None and arms.equal_to(config) is not None and attempt < _MOST_DRAWS:
            attempt += 1
            config = self._drawn(None, [seed, arm, attempt])
        return first if arms.equal_to(config) is not None else config

    def state_dict(self) -> dict[str, Any]:
        """Return the space as plain JSON values; Tune may not hand it over again."""
        return self._state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Settle for the space that was saved."""
        self._settle(decode(state["space"]), decode(state["owned"]), bool(state["from_tuner"]))

    def _settle(self, space: Config, owned: Config, from_tuner: bool) -> None:
        self._state = {"space": encode(space), "owned": encode(owned), "from_tuner": from_tuner}
        self.parameters = Parameters(space, owned)
        # The Tuner has the constants of its space, which may be large.
        self._open = without(space, self._keys) if from_tuner else None

    def _drawn(self, point: Point | None, key: list[int]) -> Config:
        config = self.parameters.draw(point, key)
        return config if self._open is None else open_part(self._open, config)


def _check_cover(arms: Sequence[Config], names: Sequence[str]) -> None:
    for position, arm in enumerate(arms):
        for name in names:
            if not has(arm, name):
                raise ValueError(
                    f"arms[{position}]={arm!r} has no {name!r}, which param_space leaves open; add "
                    f"it to the arms, or drop it from param_space."
                )
