"""The settings that all kinds of experiments have: what their users declare, checked once."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mfhpo.experiment.configurations import Configurations, Describe, described
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.knowledge.fidelity import Fidelity

_NUMBER = "number of the candidate"  # no parameter has such a name


@dataclass(frozen=True, kw_only=True)
class Settings(abc.ABC):
    """The settings that all kinds of experiments have.

    Parameters
    ----------
    seed
        Of what is drawn.
    sign
        -1 where the objective is minimised.
    lease_seconds
        How long an evaluation may take before its worker is taken for dead; None: any time.
    about_evaluations
        What evaluations are, as the first of the assumptions of an answer; else empty.
    describe
        See `mfhpo.experiment.key_of`.
    """

    seed: int = 0
    sign: float = 1.0
    lease_seconds: float | None = None
    about_evaluations: str = ""
    describe: Describe = described

    @abc.abstractmethod
    def runner(self) -> Runner:
        """Return a runner to which nothing was told."""


def levels_in_words(fidelity: Fidelity, levels: Sequence[Any]) -> Callable[[int], str]:
    """Return what names the levels of a fidelity."""
    return lambda level: f"{fidelity.name}={levels[level]!r}"


def shown_value(sign: float) -> Callable[[float], float]:
    """Return what undoes that values are maximised."""
    return lambda value: sign * value + 0.0  # the sum makes 0 of -0


def numbered(arms: Configurations) -> list[dict[str, Any]]:
    """Return configurations as a `DeclaredSearch` takes them: none looks like another.

    1, 1.0 and True are one to a model, and are different configurations.
    """
    return [{**arms[arm], _NUMBER: str(arm)} for arm in range(len(arms))]
