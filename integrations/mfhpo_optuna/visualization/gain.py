"""The picture of a study with time limits: the gain under each, and how often it stops trials."""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import optuna

from mfhpo import Observation, Pull
from mfhpo.censored import ZoomingRCUCB
from mfhpo.racing.recommendation import short
from mfhpo_optuna.recommendations import StudyLimitRecommendation
from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.study.limited_race import LimitedRace
from mfhpo_optuna.visualization.style import INK, chosen_sampler, new_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's colours, which colour-blind readers tell apart too: one for each arm shown.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")

# Of each arm, at each limit: whether its trials were stopped there.
_Stopped: TypeAlias = dict[int, dict[float, list[bool]]]

# Shares of the axis of limits: room at either end, between ticks, and between two arms' bars.
_MARGIN = 0.06
_TICK_GAP = 0.07
_STEP = 0.01
# Room at either end of a single limit, in powers of ten.
_LEAST_MARGIN = 0.1


def plot_gain(study: optuna.Study, *, sampler: LimitSampler | None = None) -> go.Figure:
    """Plot the gain of a trial under each time limit, and how probably the limit stops it.

    Top: estimated gain of a trial over its time limit, for the recommended arm and those with most
    trials, six at most; intervals hold for all of them and at any time. Those of different arms are
    drawn side by side. A star marks the recommendation: the pair whose interval has the best worse
    end. Bottom: estimated probability of running beyond the limit, for the recommended arm with
    bounds, and as a cross the share of an arm's trials at exactly this limit that were stopped,
    with their numbers where the mouse is held over it.

    The arguments, the figure and the errors are as for `plot_race`, of `RCUCBSampler` and
    `ZoomingRCUCBSampler`.

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
    needed = "a sampler that chooses time limits, such as RCUCBSampler"
    chosen: LimitSampler = chosen_sampler(study, sampler, LimitSampler, "plot_gain", needed)
    chosen.best_limit(study)  # raises if there is nothing to show
    answer = chosen.recommendation(study)
    stopped: _Stopped = {}

    def hear(trial_number: int, pull: Pull, observation: Observation) -> None:
        if not observation.failed:
            limits = stopped.setdefault(pull.arm, {})
            if pull.limit is not None:
                limits.setdefault(pull.limit, []).append(observation.censored_at is not None)

    race = chosen.replay(study, lambda race: hear)
    shown = _most_played(stopped, answer.arm, race.policy.active.tolist())
    figure = new_figure(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.04)
    axis = _Axis(np.concatenate([_limits(race, arm) for arm in shown]))
    for place, (arm, colour) in enumerate(zip(shown, _COLOURS, strict=False)):
        common = {"legendgroup": f"arm {arm}", "line_color": colour, "marker_color": colour}
        figure.add_scatter(**_gain(race, arm, axis, place), **common, row=1, col=1)
        bounds = _survival_bounds(answer) if arm == answer.arm else {}
        figure.add_scatter(
            x=_limits(race, arm).tolist(),
            **({"y": race.policy.survival(arm).tolist()} | bounds),
            mode="lines",
            line_shape="hv",
            showlegend=False,
            hoverinfo="skip",
            **common,
            row=2,
            col=1,
        )
        tried = sorted(stopped[arm].items())
        figure.add_scatter(
            x=[limit for limit, _ in tried],
            y=[float(np.mean(were)) for _, were in tried],
            text=[f"{sum(were)} of {len(were)} stopped" for _, were in tried],
            mode="markers",
            marker={"symbol": "x", "size": 8},
            showlegend=False,
            **common,
            row=2,
            col=1,
        )
    surest = "highest lower end" if race.sign > 0.0 else "lowest upper end"
    figure.add_scatter(
        x=[answer.limit],
        y=[answer.gain],
        mode="markers",
        marker={"symbol": "star", "size": 16, "color": INK},
        name=f"recommended: {surest}",
        row=1,
        col=1,
    )
    better = "higher" if race.sign > 0.0 else "lower"
    figure.update_xaxes(
        type="log",
        showgrid=False,
        range=axis.range,
        tickvals=axis.ticks,
        ticktext=[f"{limit:.3g}" for limit in axis.ticks],
    )
    figure.update_xaxes(title_text="time limit in seconds", row=2, col=1)
    figure.update_yaxes(title_text=f"gain of a trial ({better} is better)", row=1, col=1)
    figure.update_yaxes(title_text="share stopped", range=[-0.05, 1.05], row=2, col=1)
    figure.update_layout(
        template="plotly_white",
        font={"color": INK},
        title_text=(
            f"After {answer.trials} trials, {answer.censored:.0%} of them stopped: "
            f"{len(shown)} of {len(race.arms)} arms"
        ),
    )
    return figure


def _most_played(stopped: _Stopped, first: int | None, active: Collection[int]) -> list[int]:
    """Active arms in the order of their trials, `first` before all; as many as colours."""

    def order(arm: int) -> tuple[bool, int]:
        return arm != first, -sum(map(len, stopped[arm].values()))

    return sorted(stopped.keys() & set(active), key=order)[: len(_COLOURS)]


class _Axis:
    """A logarithmic axis of limits in seconds: its range, legible ticks, places of arms."""

    def __init__(self, limits: npt.NDArray[np.float64]) -> None:
        logs = np.log10(np.unique(limits))
        margin = max(_MARGIN * (logs[-1] - logs[0]), _LEAST_MARGIN)
        low, high = float(logs[0] - margin), float(logs[-1] + margin)
        self.range = [low, high]
        self._width = high - low
        self.ticks: list[float] = []
        for limit in np.unique(limits)[::-1].tolist():
            if not self.ticks or np.log10(self.ticks[-1] / limit) >= _TICK_GAP * self._width:
                self.ticks.append(limit)
        self.ticks.reverse()

    def beside(self, limits: npt.NDArray[np.float64], place: int) -> npt.NDArray[np.float64]:
        """Where to draw an arm's limits: at them for the first arm, beside them for others."""
        steps = (place + 1) // 2 * (1 if place % 2 else -1)
        moved: npt.NDArray[np.float64] = limits * 10.0 ** (_STEP * self._width * steps)
        return moved


def _gain(race: LimitedRace, arm: int, axis: _Axis, place: int) -> dict[str, Any]:
    """Estimated gain of an arm over its limits, with intervals."""
    limits, gains = _limits(race, arm), race.policy.estimate(arm)
    known = np.flatnonzero(~np.isnan(gains))
    intervals = np.array([race.policy.interval(arm, point) for point in known.tolist()])
    ends = np.sort(race.sign * intervals.reshape(-1, 2), axis=1)
    gains = race.sign * gains[known]
    params = ", ".join(
        f"{escape(name)}={escape(short(value))}" for name, value in race.arms.params(arm).items()
    )
    return {
        "x": axis.beside(limits[known], place).tolist(),
        "y": gains.tolist(),
        "error_y": _bars(ends[:, 1] - gains, gains - ends[:, 0]),
        "mode": "lines+markers",
        "name": f"arm {arm}: {params}",
        "text": [f"{limit:.4g} s" for limit in limits[known]],
        "hovertemplate": "%{text}: %{y:.4g}",  # x is beside the limit
    }


def _survival_bounds(answer: StudyLimitRecommendation) -> dict[str, Any]:
    """The recommended arm's probabilities, with bounds on them."""
    low, middle, high = np.array([(p.low, p.probability, p.high) for p in answer.survival]).T
    return {"y": middle.tolist(), "error_y": _bars(high - middle, middle - low)}


def _bars(above: npt.NDArray[np.float64], below: npt.NDArray[np.float64]) -> dict[str, Any]:
    return {"array": above.tolist(), "arrayminus": below.tolist(), "thickness": 1, "width": 3}


def _limits(race: LimitedRace, arm: int) -> npt.NDArray[np.float64]:
    policy = race.policy
    limits = policy.points(arm) if isinstance(policy, ZoomingRCUCB) else policy.limits
    return np.array([]) if limits is None else limits
