"""The picture of a study with time limits: what each limit earns, and how often it stops trials."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import optuna

from mfhpo import Observation, Pull
from mfhpo.censored import ZoomingRCUCB
from mfhpo_optuna._limit_sampler import LimitSampler
from mfhpo_optuna._limited_race import LimitedRace
from mfhpo_optuna._recommendation import short
from mfhpo_optuna._study_race import Listener

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_gain"]

# Okabe and Ito's colours, which colour-blind readers tell apart too: one for each arm shown.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_INK = "#333333"


def plot_gain(study: optuna.Study, *, sampler: LimitSampler | None = None) -> go.Figure:
    """Plot what a trial is worth under each time limit, and how probably the limit stops it.

    Top: estimated worth of a trial over its time limit, for the arms with most trials, six at
    most; intervals hold for all of them and at any time; a star marks the recommendation. Bottom:
    estimated probability of running beyond the limit, and as a cross the share of an arm's trials
    at exactly this limit that were stopped, with their numbers where the mouse is held over it.

    Parameters
    ----------
    study
        A study that was run with `RCUCBSampler` or `ZoomingRCUCBSampler`; it need not have ended.
    sampler
        The sampler that it was run with, or one made with the same arguments. None: the study's.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; ``figure.write_html("gain.html")`` saves it.

    Raises
    ------
    ImportError
        If plotly is not installed.
    TypeError
        If the sampler does not choose time limits.
    ValueError
        If there is no answer yet: nothing was observed, or limits are still being derived.

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
    go, make_subplots = _import_plotly()
    chosen = study.sampler if sampler is None else sampler
    if not isinstance(chosen, LimitSampler):
        raise TypeError(
            f"plot_gain needs a sampler that chooses time limits, such as RCUCBSampler, but "
            f"{'study.sampler' if sampler is None else 'sampler'} is a "
            f"{type(chosen).__name__}; pass sampler=, made with the arguments of the study."
        )
    chosen.best_limit(study)  # raises if there is nothing to show
    answer = chosen.recommendation(study)
    outcomes = _Outcomes()
    race = chosen.replay(study, outcomes.listen)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.04)
    shown = outcomes.most_played(answer.arm)
    for arm, colour in zip(shown, _COLOURS, strict=False):
        for row, trace in enumerate(_traces(race, outcomes, arm), start=1):
            drawn = go.Scatter(**trace, legendgroup=f"arm {arm}", line_color=colour)
            drawn.marker.color = colour
            figure.add_trace(drawn, row=min(row, 2), col=1)
    star = {"symbol": "star", "size": 16, "color": _INK}
    figure.add_trace(
        go.Scatter(
            x=[answer.limit], y=[answer.gain], mode="markers", marker=star, name="recommended"
        ),
        row=1,
        col=1,
    )
    better = "higher" if race.sign > 0.0 else "lower"
    figure.update_xaxes(type="log", showgrid=False)
    figure.update_xaxes(title_text="time limit in seconds", row=2, col=1)
    figure.update_yaxes(title_text=f"worth of a trial ({better} is better)", row=1, col=1)
    figure.update_yaxes(title_text="share stopped", range=[-0.05, 1.05], row=2, col=1)
    figure.update_layout(
        template="plotly_white",
        font={"color": _INK},
        title_text=(
            f"After {answer.trials} trials, {answer.censored:.0%} of them stopped: "
            f"{len(shown)} of {len(race.arms)} arms"
        ),
    )
    return figure


class _Outcomes:
    """Collects how often each arm was played at each limit, and how often that was stopped."""

    def __init__(self) -> None:
        self.stopped: dict[int, dict[float, list[bool]]] = {}

    def listen(self, race: LimitedRace) -> Listener:
        """Return what is to be called after each observation."""
        return self._hear

    def _hear(self, pull: Pull, observation: Observation) -> None:
        if not observation.failed:
            limits = self.stopped.setdefault(pull.arm, {})
            if pull.limit is not None:
                limits.setdefault(pull.limit, []).append(observation.censored_at is not None)

    def most_played(self, first: int | None) -> list[int]:
        """The arms in the order of their trials, but `first` before all; as many as colours."""

        def order(arm: int) -> tuple[bool, int]:
            return arm != first, -sum(map(len, self.stopped[arm].values()))

        return sorted(self.stopped, key=order)[: len(_COLOURS)]


def _traces(race: LimitedRace, outcomes: _Outcomes, arm: int) -> list[dict[str, Any]]:
    """Worth over limits, survival over limits, and what came of the trials at each limit."""
    policy = race.policy
    if arm not in policy.active:
        return []  # it failed, or repeats another arm
    limits = _limits(race, arm)
    gains = policy.estimate(arm)
    intervals = np.array([policy.interval(arm, point) for point in range(len(limits))])
    known = ~np.isnan(gains)
    ends = np.sort(race.sign * intervals, axis=1)
    worth = race.sign * gains
    params = ", ".join(
        f"{escape(name)}={escape(short(value))}" for name, value in race.arms.params(arm).items()
    )
    tried = sorted(outcomes.stopped[arm].items())
    return [
        {
            "x": limits[known].tolist(),
            "y": worth[known].tolist(),
            "error_y": {
                "array": (ends[:, 1] - worth)[known].tolist(),
                "arrayminus": (worth - ends[:, 0])[known].tolist(),
                "thickness": 1,
                "width": 3,
            },
            "mode": "lines+markers",
            "name": f"arm {arm}: {params}",
        },
        {
            "x": limits.tolist(),
            "y": policy.survival(arm).tolist(),
            "mode": "lines",
            "line_shape": "hv",
            "showlegend": False,
            "hoverinfo": "skip",
        },
        {
            "x": [limit for limit, _ in tried],
            "y": [float(np.mean(stopped)) for _, stopped in tried],
            "text": [f"{sum(stopped)} of {len(stopped)} stopped" for _, stopped in tried],
            "mode": "markers",
            "marker": {"symbol": "x", "size": 8},
            "showlegend": False,
        },
    ]


def _limits(race: LimitedRace, arm: int) -> npt.NDArray[np.float64]:
    policy = race.policy
    limits = policy.points(arm) if isinstance(policy, ZoomingRCUCB) else policy.limits
    return np.array([]) if limits is None else limits


def _import_plotly() -> tuple[Any, Any]:
    try:
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError(
            "plot_gain needs plotly, which is not installed; pip install 'mfhpo[plot]'."
        ) from error
    return go, make_subplots
