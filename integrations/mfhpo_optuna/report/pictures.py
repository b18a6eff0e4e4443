"""The figures of a study, ready to be put into a page."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mfhpo_optuna.report.reading import StudyReading
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.visualization import plot_dissatisfaction, plot_equilibrium, plot_gain, plot_race
from mfhpo_optuna.visualization.finalists import draw_certificate

_HEIGHT = 600  # in pixels, of a figure that names none

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
_CERTIFICATE = (
    "The certificate",
    "A row for each finalist, the winner first: what the search had seen, and its mean in new "
    "evaluations with its interval.",
)
_EQUILIBRIUM = (
    "The equilibrium",
    "For each parameter, what its owner would gain by moving it alone. The star is the answer.",
)
_DISSATISFACTION = (
    "How the search for it went",
    "The largest gain of a player by deviating, over what had been paid.",
)


def pictures_of(reading: StudyReading) -> list[tuple[str, str, str]]:
    """Return title, words and plotly's JSON of all there is to see, on a transparent ground."""
    clear = "rgba(0, 0, 0, 0)"
    found = []
    for title, alt, figure in figures_of(reading):
        height = figure.layout.height or _HEIGHT
        figure.update_layout(paper_bgcolor=clear, plot_bgcolor=clear, height=height)
        found.append((title, alt, figure.to_json()))
    return found


def figures_of(reading: StudyReading) -> Iterator[tuple[str, str, Any]]:
    """Return title, words and figure of all that there is to see."""
    for title, alt, draw in _drawings(reading):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                figure = draw()
            except (ValueError, LookupError, TypeError):
                continue  # nothing to show yet, or a certificate that was damaged
        yield title, alt, figure


def _drawings(reading: StudyReading) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    study, sampler = reading.study, reading.sampler
    if reading.is_of_certify and reading.answer is not None:
        yield *_CERTIFICATE, partial(draw_certificate, reading.answer, reading.sign)
    if isinstance(sampler, FidelitySampler):
        words = _SEARCH if sampler.searches(study) else _RACE
        yield *words, partial(plot_race, study, sampler=sampler)
    elif isinstance(sampler, LimitSampler):
        yield *_GAIN, partial(plot_gain, study, sampler=sampler)
    elif sampler is not None:
        yield *_EQUILIBRIUM, partial(plot_equilibrium, study, sampler=sampler)
        yield *_DISSATISFACTION, partial(plot_dissatisfaction, study, sampler=sampler)
