"""Learning curves as a kind of experiment: what runs show is known, and its host judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun
from mfhpo.experiment.kinds.blind import BlindRunner
from mfhpo.experiment.kinds.runner import Wanted, maximised
from mfhpo.experiment.settings import Settings
from mfhpo.problem import Pull


@dataclass(frozen=True, kw_only=True)
class CurveSettings(Settings):
    """Settings of an experiment whose host decides what to do next.

    Parameters
    ----------
    candidates
        The configurations that are known; others may be suggested.
    n_levels
        Number of levels.
    """

    candidates: Sequence[Mapping[str, Any]]
    n_levels: int

    def runner(self) -> CurveRunner:
        """Return an experiment to which nothing was told."""
        configurations = Configurations(self.candidates, self.describe)
        return CurveRunner(configurations, self.n_levels, self.sign)


class CurveRunner(BlindRunner):
    """Takes what runs show, in the order in which it comes; it wants nothing by itself."""

    def __init__(self, configurations: Configurations, n_levels: int, sign: float) -> None:
        super().__init__(configurations, "level", in_blocks=False)
        self.n_levels = n_levels
        self.observe = partial(maximised, sign=sign)

    @property
    def finished(self) -> bool:
        """False: the host knows when it is over."""
        return False

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return nothing: the host knows what is next."""
        return None

    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim, whose configuration may be a new one."""
        self.configurations.add(begun.configuration)
        return super().adopt(begun)
