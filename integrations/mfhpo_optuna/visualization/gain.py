"""The picture of a study with time limits: the gain under each, and how often it stops trials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.visualization.colours import SEVERAL, WINNER, faded
from mfhpo_optuna.visualization.stories.choice import NEEDS_LIMITS, chosen_sampler
from mfhpo_optuna.visualization.stories.gain import Curve, GainStory, tell_gain
from mfhpo_optuna.visualization.style import (
    head,
    hover,
    lay_out,
    literal,
    new_figure,
    require_plotly,
    rounded,
    rule,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TOP, _BOTTOM = {"row": 1, "col": 1}, {"row": 2, "col": 1}
_HEIGHTS, _GAP = (280, 150), 36  # in pixels


def plot_gain(study: optuna.Study, *, sampler: LimitSampler | None = None) -> go.Figure:
    """Plot the gain of a trial under each time limit, and how probably the limit stops it.

    On top, the estimated gain of a trial over its time limit, for the recommended arm with its
    intervals as a band, and for the others with most trials as thin lines, whose intervals appear
    under the mouse. The star is the recommendation: the pair whose interval has the best worse
    end. Below, the estimated probability of running beyond the limit, for the recommended arm with
    bounds; a cross is the share of its trials at exactly this limit that were stopped, the larger
    the more trials.

    The figure and the errors are as for `plot_race`, of `RCUCBSampler` and `ZoomingRCUCBSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.

    Examples
    --------
    >>> import optuna
    >>> from mfhpo_optuna import RCUCBSampler, plot_gain, time_limited
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=RCUCBSampler(arms=3, limits=[0.5, 1.0], seed=0))
    >>> with time_limited(lambda trial: trial.suggest_float("x", 0, 1)) as limited:
    ...     study.optimize(limited, n_trials=10)
    >>> plot_gain(study).layout.xaxis2.title.text
    'time limit in seconds'
    """
    require_plotly("plot_gain")
    story = tell_gain(
        study, chosen_sampler(study, sampler, LimitSampler, "plot_gain", NEEDS_LIMITS)
    )
    panels = sum(_HEIGHTS) + _GAP
    figure = new_figure(
        rows=2, cols=1, shared_xaxes=True, row_heights=_HEIGHTS, vertical_spacing=_GAP / panels
    )
    first, *others = story.curves
    for curve, colour in zip(others, SEVERAL, strict=False):
        _draw_arm(figure, curve, colour, 1.3)
    _draw_band(figure, first)
    _draw_arm(figure, first, WINNER, 3.0)
    _draw_recommendation(figure, story)
    _draw_stops(figure, story)
    for axis in ("", "2"):
        rule(figure, story.limit, axis)
    head(figure, "What a trial gains under each time limit")
    head(figure, "How often the limit stops it", panel=2)
    lay_out(figure, story.title, panels=panels, legend_lines=2)
    figure.update_xaxes(
        type="log",
        range=list(story.limit_range),
        tickvals=list(story.limit_ticks),
        ticktext=[f"{limit:.3g}" for limit in story.limit_ticks],
        showgrid=False,
    )
    figure.update_xaxes(title_text="time limit in seconds", **_BOTTOM)
    figure.update_yaxes(
        title_text=story.gain_axis, range=list(story.gain_span), zeroline=False, **_TOP
    )
    figure.update_yaxes(
        title_text="share stopped", range=[-0.05, 1.05], tickformat=".0%", zeroline=False, **_BOTTOM
    )
    return figure


def _draw_arm(figure: Any, curve: Curve, colour: str, width: float) -> None:
    common = {"legendgroup": curve.label, "line": {"color": colour, "width": width}}
    figure.add_scatter(
        x=list(curve.limits),
        y=rounded(curve.gains),
        text=[
            hover([f"{curve.label} with {limit:.4g} s", f"{gain:.4g} in [{low:.4g}, {high:.4g}]"])
            for limit, gain, (low, high) in zip(
                curve.limits, curve.gains, curve.intervals, strict=True
            )
        ],
        mode="lines+markers",
        marker={"color": colour, "size": 3.0 + 1.5 * width},
        name=literal(curve.label),
        **common,
        **_TOP,
    )
    figure.add_scatter(
        x=list(curve.survival_limits),
        y=rounded(curve.survival),
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        **common,
        **_BOTTOM,
    )


def _draw_band(figure: Any, curve: Curve) -> None:
    """Draw the intervals of the recommended arm."""
    ends = [
        (limit, *interval)
        for limit, interval in zip(curve.limits, curve.intervals, strict=True)
        if math.isfinite(interval[1] - interval[0])
    ]
    figure.add_scatter(
        x=[limit for limit, _, _ in ends] + [limit for limit, _, _ in reversed(ends)],
        y=rounded([high for _, _, high in ends] + [low for _, low, _ in reversed(ends)]),
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=faded(WINNER, 0.16),
        hoverinfo="skip",
        legendgroup=curve.label,
        showlegend=False,
        **_TOP,
    )


def _draw_recommendation(figure: Any, story: GainStory) -> None:
    figure.add_scatter(
        x=[story.limit],
        y=[story.gain],
        text=[hover(story.title)],
        mode="markers",
        marker={"symbol": "star", "size": 18, "color": WINNER},
        name="recommended",
        **_TOP,
    )


def _draw_stops(figure: Any, story: GainStory) -> None:
    figure.add_scatter(
        x=[stops.limit for stops in story.stops] + [stops.limit for stops in story.stops[::-1]],
        y=rounded(
            [stops.bounds[1] for stops in story.stops]
            + [stops.bounds[0] for stops in story.stops[::-1]]
        ),
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=faded(WINNER, 0.16),
        hoverinfo="skip",
        showlegend=False,
        **_BOTTOM,
    )
    tried = [stops for stops in story.stops if stops.trials]
    figure.add_scatter(
        x=[stops.limit for stops in tried],
        y=rounded([stops.stopped / stops.trials for stops in tried]),
        text=[f"{stops.stopped} of {stops.trials} stopped" for stops in tried],
        mode="markers",
        marker={
            "symbol": "x",
            "size": [min(4.0 + math.sqrt(stops.trials), 12.0) for stops in tried],
            "color": WINNER,
        },
        name="stopped at exactly this limit",
        **_BOTTOM,
    )
