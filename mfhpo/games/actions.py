"""Players and their actions: who owns which parameter, and which profiles are looked at."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from mfhpo._validation import check_instance, check_number
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace

_PRODUCT = 2_048  # largest number of profiles of which all are looked at
_PROFILES = 512  # quasi-random ones where there are more
_ALONE = 41  # values of a continuous parameter that is all that a player has
_OWN = 100  # actions of a player with several parameters
_DRAWN = 128  # quasi-random ones, where a grid would have too many; a power of 2
_COMBINATIONS = 1_024  # of values, up to which a player's actions are all looked at
_PAIRS = 64  # moves of two parameters at once
_SHARES = (-1.0, -0.5, 0.5, 1.0)  # of a distance, by which actions near others are away


class Actions:
    """The parameters of all players, by name, and which profiles are looked at.

    Profiles are points of the unit cube, arrays of shape (n, number of parameters). The seed is
    that of quasi-random ones.
    """

    def __init__(self, players: Mapping[str, Mapping[str, Numeric | OneOf]], seed: int = 0) -> None:
        right = "a dictionary of each player's parameters, as {player: {name: Numeric()}}"
        check_instance("players", players, Mapping, right)
        owners: dict[str, str] = {}
        for player, own in players.items():
            check_instance(f"players[{player!r}]", own, Mapping, "a dictionary of its parameters")
            for name, parameter in own.items():
                check_instance(
                    f"players[{player!r}]", parameter, Numeric | OneOf, "Numeric or OneOf"
                )
                if name in owners:
                    raise ValueError(
                        f"the parameter {name!r} belongs to {owners[name]!r} and to {player!r}; "
                        f"each must have one owner."
                    )
                owners[name] = player
        if not (players and all(players.values())):
            raise ValueError("players must not be empty, and each must have a parameter.")
        self.players = tuple(players)
        self.parameters = {name: own[name] for own in players.values() for name in own}
        self.space = SearchSpace(self.parameters)
        ends = np.cumsum([len(own) for own in players.values()])
        self.cube_columns: list[IntArray] = np.split(np.arange(ends[-1]), ends[:-1])
        widths = [parameter.width for parameter in self.parameters.values()]
        self.groups: IntArray = np.repeat(np.arange(len(widths)), widths)
        self.columns: list[IntArray] = [
            np.flatnonzero(np.isin(self.groups, columns)) for columns in self.cube_columns
        ]
        self._seed = seed
        self.own = [self._own(columns) for columns in self.cube_columns]
        shape = tuple(len(own) for own in self.own)
        self.shape = shape if math.prod(shape) <= _PRODUCT else None
        """Number of actions of each player, if `profiles` are all their combinations, else None."""

    def __len__(self) -> int:
        return len(self.players)

    @cached_property
    def is_finite(self) -> bool:
        """Whether `profiles` are all that there are."""
        counts = [_n_values(parameter) for parameter in self.parameters.values()]
        return math.prod(counts) <= len(self.profiles) and self.shape is not None

    @cached_property
    def profiles(self) -> FloatArray:
        """Points of the unit cube that stand for all profiles, shape (n, number of parameters)."""
        n_parameters = len(self.parameters)
        if self.shape is None:
            return _spread(_PROFILES, n_parameters, self._seed)
        profiles = np.zeros((math.prod(self.shape), n_parameters))
        chosen = np.indices(self.shape).reshape(len(self), -1)
        for player, columns in enumerate(self.cube_columns):
            profiles[:, columns] = self.own[player][chosen[player]]
        return profiles

    def checked(self, name: str, profile: Point) -> dict[str, float]:
        """Return a profile of the game in plain Python numbers; ValueError if it is none."""
        check_instance(name, profile, Mapping, "a dictionary of parameters")
        if set(profile) != set(self.parameters):
            raise ValueError(
                f"{name} must have the parameters {list(self.parameters)}, got {list(profile)}."
            )
        plain: dict[str, float] = {}
        for parameter, place in profile.items():
            kind = self.parameters[parameter]
            check_number(f"{name}[{parameter!r}]", place)
            if isinstance(kind, OneOf):
                fits, expected = place in range(kind.n), f"an index from 0 to {kind.n - 1}"
            else:
                fits, expected = 0.0 <= place <= 1.0, "a place from 0 to 1"
            if not fits:
                raise ValueError(f"{name}[{parameter!r}] must be {expected}, got {place!r}.")
            plain[parameter] = int(place) if isinstance(kind, OneOf) else float(place)
        return plain

    def features(self, cube: FloatArray) -> FloatArray:
        """Return the model's features of points of the unit cube, shape (n, n_features)."""
        return self.space.cube_features(cube)

    @cached_property
    def own_features(self) -> list[FloatArray]:
        """Each player's columns of the features of its actions."""
        found = []
        for own, columns, of_features in zip(
            self.own, self.cube_columns, self.columns, strict=True
        ):
            cube = np.full((len(own), len(self.parameters)), 0.5)
            cube[:, columns] = own
            found.append(self.features(cube)[:, of_features])
        return found

    def around(self, profile: FloatArray, step: float) -> Actions:
        """Add actions near each player's own in a profile, `step` grid distances away."""
        near = [self._near(columns, profile[columns], step) for columns in self.cube_columns]
        return self._with(near)

    def including(self, cube: FloatArray) -> Actions:
        """Add the actions of some profiles, shape (n, number of parameters), to the game."""
        return self._with([cube[:, columns] for columns in self.cube_columns])

    def _with(self, further: Sequence[FloatArray]) -> Actions:
        larger = copy.copy(self)
        larger.own = [
            np.unique(np.concatenate((own, more)), axis=0)
            for own, more in zip(self.own, further, strict=True)
        ]
        vars(larger).pop("own_features", None)
        return larger

    def _near(self, columns: IntArray, own: FloatArray, step: float) -> FloatArray:
        parameters = list(self.parameters.values())
        shifts = step * (1.0 / (_per_axis(len(columns)) - 1)) * np.array(_SHARES)
        axes: list[FloatArray] = []
        for place, parameter in zip(own, (parameters[column] for column in columns), strict=True):
            if isinstance(parameter, Numeric):
                axes.append(parameter.snapped(np.clip(place + shifts, 0.0, 1.0)))
            else:
                axes.append(_values(parameter, parameter.n))
        places = range(len(columns))
        changed = [(place,) for place in places], itertools.combinations(places, 2)
        moves = [own]
        for those in itertools.chain(*changed):
            values = itertools.product(*(axes[place] for place in those))
            for new in itertools.islice(values, _PAIRS if len(those) == 2 else None):
                moves.append(own.copy())
                moves[-1][list(those)] = new
        return np.unique(moves, axis=0)

    def _own(self, columns: IntArray) -> FloatArray:
        """Return actions that represent all actions of a player.

        All combinations if they are few; else a grid for one or two ranges, and quasi-random points
        for more, because a grid would consist of corners.
        """
        parameters = list(self.parameters.values())
        owned = [parameters[column] for column in columns]
        are_few = math.prod(map(_n_values, owned)) <= _COMBINATIONS and len(owned) > 1
        most = _COMBINATIONS if are_few else _per_axis(len(owned))
        axes = [_values(parameter, most) for parameter in owned]
        n_ranges = sum(isinstance(parameter, Numeric) for parameter in owned)
        is_small = n_ranges <= 2 and math.prod(map(len, axes)) <= 2 * _OWN
        if len(owned) == 1 or are_few or is_small:
            return np.array(list(itertools.product(*axes)))
        return _spread(_DRAWN, len(owned), self._seed + 1)


def _per_axis(n_parameters: int) -> int:
    return _ALONE if n_parameters == 1 else max(2, int(_OWN ** (1.0 / n_parameters)))


def _n_values(parameter: Numeric | OneOf) -> float:
    if isinstance(parameter, OneOf):
        return parameter.n
    return len(parameter.places) or math.inf


def _values(parameter: Numeric | OneOf, most: int) -> FloatArray:
    """Return at most so many places in the unit range; all for choices."""
    if isinstance(parameter, OneOf):
        return (np.arange(parameter.n) + 0.5) / parameter.n
    if not parameter.places:
        return np.linspace(0.0, 1.0, most)
    places = np.array(parameter.places)
    if len(places) > most:
        places = places[np.unique(np.linspace(0, len(places) - 1, most).round().astype(int))]
    return places


def _spread(n: int, n_parameters: int, seed: int) -> FloatArray:
    from scipy.stats import qmc  # slow to import, and not needed before

    return np.asarray(qmc.Sobol(n_parameters, rng=np.random.default_rng(seed)).random(n))
