"""The picture of a study with time limits, drawn by matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.visualization.colours import QUIET, SEVERAL, WINNER
from mfhpo_optuna.visualization.matplotlib.style import (
    add_legend,
    head,
    import_pyplot,
    new_figure,
    plain,
)
from mfhpo_optuna.visualization.stories.choice import NEEDS_LIMITS, chosen_sampler
from mfhpo_optuna.visualization.stories.gain import GainStory, tell_gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHTS, _GAP = (2.9, 1.6), 0.35  # in inches


def plot_gain(study: optuna.Study, *, sampler: LimitSampler | None = None) -> Figure:
    """Plot the gain of a trial under each time limit, and how probably the limit stops it.

    The content, the arguments and the errors are those of
    `mfhpo_optuna.visualization.plot_gain`; ImportError is raised if matplotlib is not installed.
    Colours of texts and backgrounds are those of matplotlib's current style.
    """
    pyplot = import_pyplot("plot_gain")
    story = tell_gain(
        study, chosen_sampler(study, sampler, LimitSampler, "plot_gain", NEEDS_LIMITS)
    )
    figure: Figure
    figure, panels = new_figure(pyplot, story.title, _HEIGHTS, _GAP, sharex=True)
    gains, stops = panels[:, 0]
    for curve, colour in zip(story.curves[1:], SEVERAL, strict=False):
        style = {"color": colour, "linewidth": 1.1}
        gains.plot(
            curve.limits, curve.gains, marker="o", markersize=3, label=plain(curve.label), **style
        )
        stops.plot(curve.survival_limits, curve.survival, **style)
    _draw_recommended(gains, stops, story)
    for axes in (gains, stops):
        axes.axvline(story.limit, color=QUIET, linewidth=1, linestyle=":")
    stops.set_xscale("log")
    stops.set_xlim(*(10.0**power for power in story.limit_range))
    stops.set_xticks(story.limit_ticks, [f"{limit:.3g}" for limit in story.limit_ticks])
    stops.set_xticks([], minor=True)
    stops.set_xlabel("time limit in seconds")
    stops.set_ylabel("share stopped")
    stops.set_ylim(-0.05, 1.05)
    stops.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    gains.set_ylabel(plain(story.gain_axis))
    gains.set_ylim(story.gain_span)
    head(gains, "What a trial gains under each time limit")
    head(stops, "How often the limit stops it")
    add_legend(figure, (gains, stops))
    return figure


def _draw_recommended(gains: Any, stops: Any, story: GainStory) -> None:
    curve = story.curves[0]
    shade = {"color": WINNER, "alpha": 0.16, "linewidth": 0}
    ends = [
        (limit, low, high)
        for limit, (low, high) in zip(curve.limits, curve.intervals, strict=True)
        if math.isfinite(high - low)
    ]
    if ends:
        gains.fill_between(*zip(*ends, strict=True), **shade)
    gains.plot(
        curve.limits, curve.gains, color=WINNER, linewidth=2.5, marker="o", label=plain(curve.label)
    )
    gains.scatter(
        story.limit, story.gain, s=200, marker="*", color=WINNER, zorder=3, label="recommended"
    )
    bounds = [(at.limit, *at.bounds) for at in story.stops]
    stops.fill_between(*zip(*bounds, strict=True), **shade)
    stops.plot(curve.survival_limits, curve.survival, color=WINNER, linewidth=2.5)
    tried = [at for at in story.stops if at.trials]
    stops.scatter(
        [at.limit for at in tried],
        [at.stopped / at.trials for at in tried],
        s=[min(12.0 + at.trials, 90.0) for at in tried],
        marker="x",
        color=WINNER,
        zorder=3,
        label="stopped at exactly this limit",
    )
