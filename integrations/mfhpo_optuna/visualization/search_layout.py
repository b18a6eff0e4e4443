"""What holds the two panels of a search together: title, legend, axes and their ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.visualization.search_story import SearchStory
from mfhpo_optuna.visualization.search_words import title_of

__all__ = ["add_trace", "lay_out", "span_of", "with_margin"]


def lay_out(
    figure: Any, story: SearchStory, answer: RaceRecommendation, span: tuple[float, float]
) -> None:
    """Give the figure its title, its legend and the axes of both panels."""
    better = "higher" if story.race.sign > 0.0 else "lower"
    unit = " in seconds" if story.race.fidelity.costs == "measured" else ""
    figure.update_layout(
        template="plotly_white",
        title={"text": title_of(story, answer), "x": 0.01, "xanchor": "left"},
        legend={"orientation": "h", "x": 0.0, "y": -0.13, "yanchor": "top"},
        hovermode="closest",
        margin={"t": 100, "r": 30},
        height=640,
    )
    figure.update_xaxes(title=f"cost paid{unit}", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(
        title=f"objective value ({better} is better)", range=list(span), row=1, col=1
    )
    figure.update_yaxes(zeroline=False)
    figure.update_yaxes(side="right", row=1, col=2)


def span_of(story: SearchStory) -> tuple[float, float]:
    """Range of the value axis: all values but the worst quarter, and a margin.

    A search begins with bad configurations at low levels; with all of them on the axis, the good
    ones would look alike.
    """
    values = np.array([e.value for e in story.evaluations if math.isfinite(e.value)])
    if not values.size:
        return 0.0, 1.0
    low, high = np.quantile(values, [0.0, 0.75] if story.race.sign < 0.0 else [0.25, 1.0])
    return with_margin(float(low), float(high))


def with_margin(low: float, high: float) -> tuple[float, float]:
    """The range, a little wider; of a single value, a range around it."""
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def add_trace(figure: Any, trace: Any, col: int = 1) -> None:
    """Add a trace to the panel of the search, or to that of the shortlist (`col=2`)."""
    figure.add_trace(trace, row=1, col=col)
