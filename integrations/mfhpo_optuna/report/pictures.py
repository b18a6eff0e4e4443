"""The figures of a study, ready to be put into a page."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mfhpo_optuna.report.reading import StudyReading
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.visualization import (
    plot_dissatisfaction,
    plot_equilibrium,
    plot_gain,
    plot_race,
)

_HEIGHT = 600  # in pixels, of a figure that names none


@dataclass(frozen=True)
class Picture:
    """A figure as plotly's JSON, with the words for those who do not see it."""

    title: str
    alt: str
    json: str


_SEARCH = (
    "The search and its certificate",
    "Above: every evaluation over what had been paid, with the best value so far as a step line. "
    "Below, once there are finalists: what the search had seen of each, and its mean in new "
    "evaluations with its interval.",
)
_RACE = (
    "The race",
    "A row for each configuration, the winner first. Left: its mean with its interval. Right: its "
    "evaluations, each as long as its cost, up to where it left.",
)
_GAIN = (
    "Gain by time limit",
    "Top: estimated gain of a trial under each time limit, with intervals. Bottom: how probably a "
    "trial runs beyond the limit.",
)
_EQUILIBRIUM = (
    "The equilibrium",
    "Of two players with one parameter each: over both parameters, the largest gain that any of "
    "them has by deviating alone, and each player's objective. Of other games: for each parameter, "
    "what its owner would gain by moving it alone. The star is the answer.",
)
_DISSATISFACTION = (
    "How the search for it went",
    "The largest gain of a player by deviating, over what had been paid.",
)


def pictures_of(reading: StudyReading) -> list[Picture]:
    """Draw what there is to see of a study, on a transparent ground, for a page.

    Nothing where its sampler is not known.
    """
    clear = "rgba(0, 0, 0, 0)"
    found = []
    for title, alt, figure in figures_of(reading):
        height = figure.layout.height or _HEIGHT
        figure.update_layout(paper_bgcolor=clear, plot_bgcolor=clear, height=height)
        found.append(Picture(title, alt, figure.to_json()))
    return found


def figures_of(reading: StudyReading) -> list[tuple[str, str, Any]]:
    """Title, words and figure of all that there is to see; without what has nothing to show yet."""
    return [
        (title, alt, figure)
        for title, alt, draw in _drawings(reading)
        if (figure := _drawn(draw, reading)) is not None
    ]


def _drawings(reading: StudyReading) -> list[tuple[str, str, Callable[..., Any]]]:
    if reading.sampler is None:
        return []
    if isinstance(reading.sampler, FidelitySampler):
        return [(*(_SEARCH if reading.sampler.searches(reading.study) else _RACE), plot_race)]
    if isinstance(reading.sampler, LimitSampler):
        return [(*_GAIN, plot_gain)]
    return [(*_EQUILIBRIUM, plot_equilibrium), (*_DISSATISFACTION, plot_dissatisfaction)]


def _drawn(draw: Callable[..., Any], reading: StudyReading) -> Any:
    """The figure, or None where there is nothing to show yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return draw(reading.study, sampler=reading.sampler)
        except ValueError:
            return None
