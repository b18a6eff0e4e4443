"""What another sampler gets to see when it draws the arms of a race."""

from __future__ import annotations

import copy
from collections.abc import Container

import optuna
from optuna.trial import FrozenTrial, TrialState

__all__ = ["ArmsOnlyStudy"]


class ArmsOnlyStudy(optuna.Study):
    """A study with one finished trial per arm: no repeats, no fidelity, no constraint.

    Samplers read trials by `get_trials` or by `_get_trials`, so both are overridden.
    """

    def __init__(self, study: optuna.Study, trials: list[FrozenTrial]) -> None:
        self.__setstate__(study.__getstate__())
        self._arm_trials = trials

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """The arms' trials."""
        return self._get_trials(deepcopy, states)

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        chosen = [t for t in self._arm_trials if states is None or t.state in states]
        return copy.deepcopy(chosen) if deepcopy else chosen
