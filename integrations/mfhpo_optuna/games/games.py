"""The games of studies that one sampler has seen."""

from __future__ import annotations

import zlib
from typing import Any

import optuna

from mfhpo_optuna.games.declared import DeclaredGame
from mfhpo_optuna.games.study import NashStudy

__all__ = ["StudyGames"]


class StudyGames:
    """Keeps what was read of studies, so that only what is new has to be read.

    Parameters
    ----------
    declared
        The game.
    seed
        None: derived from a study's name.
    lease
        Seconds after which a running trial is no longer waited for, or None.
    """

    def __init__(self, declared: DeclaredGame, seed: int | None, lease: float | None) -> None:
        self._declared = declared
        self._seed = seed
        self._lease = lease
        self._games: dict[tuple[int, int], tuple[object, NashStudy]] = {}

    def of(self, study: optuna.Study) -> NashStudy:
        """The game of a study, as it was last read."""
        # The storage is kept along, so that no other one can take its identity.
        key = (study._study_id, id(study._storage))
        if key not in self._games:
            self._games[key] = (study._storage, self.new(study))
        return self._games[key][1]

    def read(self, study: optuna.Study) -> NashStudy:
        """The game of a study, as it is now."""
        game = self.of(study)
        if not game.read(study):
            del self._games[study._study_id, id(study._storage)]
            game = self.of(study)
            game.read(study)
        return game

    def new(self, study: optuna.Study) -> NashStudy:
        """The game of a study of which nothing is read yet.

        Raises
        ------
        ValueError
            If the study has more or fewer objectives than there are players.
        """
        self.check_objectives(study)
        # Without a seed, the study's name gives one that all its workers agree on.
        seed = zlib.crc32(study.study_name.encode()) if self._seed is None else self._seed
        return NashStudy(study, self._declared, seed, self._lease)

    def check_objectives(self, study: optuna.Study) -> None:
        """Raise ValueError unless the study has one objective for each player."""
        names = self._declared.players.names
        if len(study.directions) != len(names):
            raise ValueError(
                f"study {study.study_name!r} has {len(study.directions)} objectives, but there are "
                f"{len(names)} players {list(names)}; make it with "
                f"optuna.create_study(directions=[...]), one for each player in their order."
            )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_games": {}}  # a function of the studies' trials
