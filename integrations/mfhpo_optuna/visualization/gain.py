"""The picture of a study with time limits: the gain under each, and how often it stops trials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna

from mfhpo.censored import ZoomingRCUCB
from mfhpo.experiment import Answer
from mfhpo.racing.text import name_in_words
from mfhpo_optuna.samplers.rcucb import LimitKind
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization import style
from mfhpo_optuna.visualization.reading import told

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TOP, _BOTTOM = {"row": 1, "col": 1}, {"row": 2, "col": 1}
_HEIGHTS, _GAP = (280, 150), 36  # in pixels


def plot_gain(study: optuna.Study, *, sampler: StudySampler | None = None) -> go.Figure:
    """Plot the gain of a trial under each time limit, and how probably the limit stops it.

    On top, the estimated gain of a trial over its time limit: for the recommended arm with its
    intervals as a band, and for the others with most trials as thin lines. The star is the
    recommendation: the pair whose interval has the best worse end. The figure and the errors are as
    for `plot_race`, of `RCUCBSampler` and `ZoomingRCUCBSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.
    """
    needed = "a sampler that chooses time limits, such as RCUCBSampler"
    known, answer = told(study, sampler, LimitKind, "plot_gain", needed)
    if answer.arm is None or answer.limit is None:
        raise ValueError(f"there is no best limit yet: {answer.reason}.")
    # The recommended arm, then the active ones with most trials; more lines are a thicket.
    counts = {arm: known.policy.summary(arm)[0] for arm in known.policy.active.tolist()}
    others = [arm for arm, count in counts.items() if count and arm != answer.arm]
    others.sort(key=lambda arm: -counts[arm])
    panels = sum(_HEIGHTS) + _GAP
    figure = style.new_figure(
        rows=2, cols=1, shared_xaxes=True, row_heights=_HEIGHTS, vertical_spacing=_GAP / panels
    )
    for arm, colour in zip(others, style.SEVERAL, strict=False):
        _draw_arm(figure, known, answer, arm, colour, 1.3)
    _draw_arm(figure, known, answer, answer.arm, style.WINNER, 3.0)
    lines = style.answer_title(answer)
    star = {"symbol": "star", "size": 18, "color": style.WINNER}
    at, gain = [answer.limit], [answer.gain]
    style.draw(figure, at, gain, text=[style.hover(lines)], marker=star, name="recommended", **_TOP)
    shares = [(point.limit, point.low, point.high) for point in answer.survival]
    style.ribbon(figure, shares, style.WINNER, **_BOTTOM)
    figure.add_vline(answer.limit, **style.DOTTED)
    style.head(figure, "What a trial gains under each time limit")
    style.head(figure, "How often the limit stops it", panel=2)
    style.lay_out(figure, lines, panels=panels)
    figure.update_xaxes(type="log", nticks=8, showgrid=False)
    figure.update_xaxes(title_text="time limit in seconds", **_BOTTOM)
    axis = f"gain of a trial ({style.better(known.sign)})"
    figure.update_yaxes(title_text=axis, zeroline=False, **_TOP)
    figure.update_yaxes(
        title_text="share stopped", range=[-0.05, 1.05], tickformat=".0%", zeroline=False, **_BOTTOM
    )
    return figure


def _draw_arm(
    figure: Any, known: StudyExperiment, answer: Answer, arm: int, colour: str, width: float
) -> None:
    policy, sign = known.policy, known.sign
    limits = policy.points(arm) if isinstance(policy, ZoomingRCUCB) else policy.limits
    limits = [] if limits is None else np.asarray(limits).tolist()
    shares, gains = policy.survival(arm).tolist(), (sign * policy.estimate(arm)).tolist()
    ends = [sorted(sign * end for end in policy.interval(arm, at)) for at in range(len(limits))]
    if arm == answer.arm:
        shares = [point.probability for point in answer.survival]
        band = [at for at, (low, high) in enumerate(ends) if math.isfinite(high - low)]
        style.ribbon(figure, [(limits[at], *ends[at]) for at in band], colour, **_TOP)
    label = name_in_words(known.values_of(arm).params, arm)
    common = {"legendgroup": label, "line": {"color": colour, "width": width}}
    look: dict[str, Any] = {
        "name": label,
        "mode": "lines+markers",
        "marker": {"color": colour, "size": 3.0 + 1.5 * width},
        "text": [
            style.hover([f"{label} with {limit:.4g} s", f"{gain:.4g} {style.between((low, high))}"])
            for limit, gain, (low, high) in zip(limits, gains, ends, strict=True)
        ],
    }
    style.draw(figure, limits, gains, **look, **common, **_TOP)
    look = {"mode": "lines", "hoverinfo": "skip"}
    style.draw(figure, limits, shares, **look, **common, **_BOTTOM)
