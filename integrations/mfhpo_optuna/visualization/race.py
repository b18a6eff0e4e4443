"""The picture of a race among given arms: who won, who left when (of a search: `search.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna

from mfhpo_optuna.recommendations import StudyRecommendation
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.samplers.race_sampler import RaceSampler
from mfhpo_optuna.visualization.race_story import Point, RaceStory
from mfhpo_optuna.visualization.search import plot_search
from mfhpo_optuna.visualization.style import (
    INK,
    LEFT,
    RIGHT,
    WINNER,
    Line,
    annotate,
    chosen_sampler,
    faded,
    lay_out,
    level_colour,
    list_arms,
    mark_interval,
    new_figure,
    params_text,
    value_text,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Why arms left: the words for it, and the mark with its size.
_EXITS = {
    "eliminated": ("eliminated", "x-thin-open", 8),
    "failed": ("left by failing", "triangle-down-open", 10),
    "duplicate": ("same as another arm", "circle-open", 9),
}


def plot_race(study: optuna.Study, *, sampler: FidelitySampler | None = None) -> go.Figure:
    """Plot a race over what it cost, and where each arm stood in the end.

    Of a race among given arms: on the left, mean and confidence interval of every arm after each of
    its evaluations, one line for each level of the fidelity, in its colour; a cross marks an
    elimination. On the right, the last interval of every arm, at the level where most was spent on
    it, in the order in which they left, the winner first; samplers that maximise the reward may
    eliminate nobody. Intervals hold at the level that they were measured at. Those that are
    infinite still, from too few evaluations, are not drawn.

    Of a search by `RaceSampler`: on the left, every evaluation in the colour of its level, those of
    one configuration joined by a thin line; the step line is the best value at the target so far,
    which is what a search without a certificate would promise. Diamonds were evaluated again, for
    the certificate. A double click shows the worst quarter of the values, too. On the right, the
    shortlist: what the search had seen of each configuration, and its mean in new evaluations with
    its interval. What lies between the two was luck, as far as the interval can tell.

    Parameters
    ----------
    study
        A study that was run with one of mfhpo's samplers; it need not have ended.
    sampler
        The sampler that it was run with, or one made with the same arguments. None: the study's.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; ``figure.write_html("race.html")`` saves it.

    Raises
    ------
    ImportError
        If plotly is not installed.
    TypeError
        If the sampler does not run races.
    ValueError
        If no trial has told the levels of the fidelity yet.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import IISESampler, plot_race
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 9)
    ...     return x**2 + np.random.default_rng(trial.number).normal(0, 0.1 / epochs)
    >>> study = optuna.create_study(sampler=IISESampler("epochs", arms=4, epsilon=0.1, seed=0))
    >>> study.optimize(objective)
    >>> plot_race(study).layout.xaxis.title.text
    'cost paid'
    """
    needed = "a sampler that runs races, such as IISESampler"
    chosen: FidelitySampler = chosen_sampler(study, sampler, FidelitySampler, "plot_race", needed)
    if isinstance(chosen, RaceSampler):
        return plot_search(study, chosen)
    answer = chosen.recommendation(study)  # raises if there is nothing to show
    return _Picture(RaceStory(study, chosen), answer).figure


class _Picture:
    """A race's figure.

    One trace for each fidelity holds the curves of all arms, separated by gaps: a figure of 32 arms
    has a dozen traces rather than hundreds, and a click on the legend shows or hides a fidelity.
    """

    def __init__(self, story: RaceStory, answer: StudyRecommendation) -> None:
        self.figure = new_figure(
            rows=1, cols=2, shared_yaxes=True, column_widths=[0.64, 0.36], horizontal_spacing=0.015
        )
        self._story = story
        self._answer = answer
        self._ranking = _ranking(story, answer.arm)
        self._span = _span(story)
        for fidelity in range(len(story.race.levels)):
            self._draw_curves(fidelity)
            self._draw_last_intervals(fidelity)
        self._draw_winner()
        self._draw_exits()
        self._lay_out()

    def _draw_curves(self, fidelity: int) -> None:
        curve, band = Line(), Line()
        for points in self._story.points.values():
            self._add_run(self._story.shown(points)[fidelity], curve, band)
        colour = level_colour(fidelity, len(self._story.race.levels))
        group = f"level {fidelity}"
        self._draw_bands(band, colour, group)
        self._draw_lines(
            curve,
            mode="lines+markers",
            line={"color": colour, "width": 1.2},
            marker={"size": 3.5},
            name=_level_name(self._story, fidelity),
            legendgroup=group,
        )

    def _add_run(self, run: Sequence[Point], curve: Line, band: Line | None) -> None:
        curve.add([(p.cost, p.mean) for p in run], [_describe(self._story, p) for p in run])
        if band is not None:
            band.add(_outline(run, self._span))

    def _draw_lines(self, curve: Line, **options: Any) -> None:
        self.figure.add_scatter(x=curve.x, y=curve.y, text=curve.text, **LEFT, **options)

    def _draw_bands(self, band: Line, colour: str, group: str) -> None:
        self.figure.add_scatter(
            x=band.x,
            y=band.y,
            mode="lines",
            line={"color": faded(colour, 0.45), "width": 0.6},
            fill="toself",
            fillcolor=faded(colour, 0.08),
            hoverinfo="skip",
            legendgroup=group,
            showlegend=False,
            **LEFT,
        )

    def _draw_last_intervals(self, fidelity: int) -> None:
        standings = [self._story.standing(arm) for arm in self._ranking]
        shown = [p for p in standings if p is not None and p.fidelity == fidelity]
        radii = [p.radius if math.isfinite(p.radius) else 0.0 for p in shown]
        colour = level_colour(fidelity, len(self._story.race.levels))
        self.figure.add_scatter(
            x=[f"{p.arm}" for p in shown],
            y=[p.mean for p in shown],
            error_y={"array": radii, "thickness": 3, "width": 0},
            text=[_describe(self._story, p) for p in shown],
            mode="markers",
            marker={"color": colour, "size": 7, "line": {"color": "white", "width": 1}},
            legendgroup=f"level {fidelity}",
            showlegend=False,
            **RIGHT,
        )

    def _draw_exits(self) -> None:
        low, high = self._span
        edge = {"color": INK, "width": 2}
        for reason, (name, symbol, size) in _EXITS.items():
            exits = {arm: e for arm, e in self._story.exits.items() if e.reason == reason}
            if not exits:
                continue
            # An arm that never gave a value, or left beyond the axis, is marked at its edge.
            means = [
                points[-1].mean if (points := self._story.points.get(arm)) else low for arm in exits
            ]
            self.figure.add_scatter(
                x=[e.cost for e in exits.values()],
                y=[min(max(mean, low), high) for mean in means],
                text=[
                    f"arm {arm}: {name} at {_level_name(self._story, e.fidelity)}, cost "
                    f"{e.cost:.6g}<br>{params_text(self._story.race.arms.params(arm))}"
                    for arm, e in exits.items()
                ],
                mode="markers",
                marker={"symbol": symbol, "size": size, "color": INK, "line": edge},
                cliponaxis=False,
                name=name,
                **LEFT,
            )

    def _draw_winner(self) -> None:
        points = self._story.points.get(-1 if self._answer.arm is None else self._answer.arm)
        if not points:
            return
        last = self._story.standing(points[0].arm)
        assert last is not None
        # The level where most is known of it stands out, and only its band is drawn.
        thick, thin, band = Line(), Line(), Line()
        for fidelity, run in enumerate(self._story.shown(points)):
            if fidelity == last.fidelity:
                self._add_run(run, thick, band)
            else:
                self._add_run(run, thin, None)
        self._draw_bands(band, WINNER, "winner")
        state = "certified" if self._answer.certified else "leading"
        for curve, width in ((thin, 1.5), (thick, 3.5)):
            self._draw_lines(
                curve,
                mode="lines",
                line={"color": WINNER, "width": width},
                name=f"arm {self._answer.arm}, {state}",
                legendgroup="winner",
                showlegend=curve is thick,
            )
        self.figure.add_scatter(
            x=[f"{self._answer.arm}"],
            y=[last.mean],
            text=[_describe(self._story, last)],
            mode="markers",
            marker={"symbol": "star", "color": WINNER, "size": 14},
            showlegend=False,
            **RIGHT,
        )
        if math.isfinite(last.radius):
            mark_interval(self.figure, last.mean - last.radius, last.mean + last.radius)

    def _lay_out(self) -> None:
        policy, pilot_cost = self._story.policy, self._story.pilot_cost
        figure = self.figure
        lay_out(figure, _title(self._story, self._answer), height=600, top=90)
        # Most of a race happens early: on a linear axis the finalists would take all the room.
        begin = 0.97 * _beginning(self._story)
        end = 1.03 * max(policy.cost, begin)
        figure.update_xaxes(
            title="cost paid",
            type="log",
            range=[math.log10(begin), math.log10(end)],
            tickvals=_ticks(begin, end),
            tickformat="~s",
            **LEFT,
        )
        title = f"arm (the {'last to leave' if self._story.exits else 'best'} on the left)"
        font = {"size": 10 if len(self._ranking) <= 24 else 8}
        list_arms(figure, title, [f"{arm}" for arm in self._ranking], dtick=1, tickfont=font)
        better = "higher" if self._story.race.sign > 0.0 else "lower"
        figure.update_yaxes(range=list(self._span), zeroline=False)
        figure.update_yaxes(title=f"mean objective value ({better} is better)", **LEFT)
        figure.update_yaxes(showticklabels=False, **RIGHT)
        if not policy.piloting and pilot_cost:
            annotate(figure, f"◂ pilot: {pilot_cost:.4g}", x=0.0, xref="x domain", xanchor="left")


def _title(story: RaceStory, answer: StudyRecommendation) -> str:
    arms = len(story.race.arms)
    if answer.arm is None:
        return f"A race of {arms} arms<br><sup>{answer.reason}</sup>"
    low, high = answer.interval
    where = f"in [{low:.4g}, {high:.4g}]" if math.isfinite(high - low) else "not bounded yet"
    if answer.certified:
        head = f"Arm {answer.arm} of {arms} is certified after {answer.trials} trials"
        claim = (
            f"within ε = {answer.epsilon:.3g} of the best, wrong with probability ≤ "
            f"{answer.delta:g}"
        )
    else:
        head = f"Arm {answer.arm} of {arms} leads after {answer.trials} trials"
        if answer.certifies:
            head += ", not certified"
        claim = answer.reason
    name = story.race.fidelity.name
    target = f"{name} = {value_text(story.race.levels[-1])}"
    if answer.certified:
        mean = f"mean {answer.mean:.4g} {where} at {target}"
    else:
        values = f"{answer.mean:.4g} at {name} = {value_text(answer.level)}"
        mean = f"mean {where} at {target}; average of its values {values}"
    return f"{escape(head)}<br><sup>{escape(f'{mean}; {claim}')}</sup>"


def _describe(story: RaceStory, point: Point) -> str:
    radius = f" ± {point.radius:.3g}" if math.isfinite(point.radius) else ""
    count = f"{point.count} trial" + ("s" if point.count > 1 else "")
    return (
        f"arm {point.arm}: {point.mean:.4g}{radius}<br>{_level_name(story, point.fidelity)}, "
        f"{count}<br>{params_text(story.race.arms.params(point.arm))}"
    )


def _level_name(story: RaceStory, fidelity: int) -> str:
    return f"{escape(story.race.fidelity.name)} = {escape(value_text(story.race.levels[fidelity]))}"


def _outline(run: Sequence[Point], span: tuple[float, float]) -> list[tuple[float, float]]:
    """The polygon around the intervals, save those that are wider than the axis."""
    known = [point for point in run if 2.0 * point.radius <= span[1] - span[0]]
    upper = [(point.cost, point.mean + point.radius) for point in known]
    lower = [(point.cost, point.mean - point.radius) for point in known]
    return upper + lower[::-1]


def _beginning(story: RaceStory) -> float:
    """The cost at which the picture begins: that of the pilot, or of its first round."""
    if story.pilot_cost and not story.policy.piloting:
        return story.pilot_cost
    costs = sorted(points[0].cost for points in story.points.values())
    return costs[len(costs) // 4] if costs else 1.0


def _ticks(begin: float, end: float) -> list[float]:
    """The round numbers in a range: 1, 2, 5, 10, 20, 50 and so on."""
    powers = range(math.floor(math.log10(begin)), math.ceil(math.log10(end)) + 1)
    round_numbers = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [number for number in round_numbers if begin <= number <= end]


def _span(story: RaceStory) -> tuple[float, float]:
    """Range of the value axis: the means, save for outliers on the bad side, and a margin."""
    means = np.array([point.mean for points in story.points.values() for point in points])
    if not means.size:
        return 0.0, 1.0
    low, high = np.quantile(means, [0.0, 0.95] if story.race.sign < 0.0 else [0.05, 1.0])
    margin = 0.12 * float(high - low) or 0.1 * abs(float(high)) or 1.0
    return float(low) - margin, float(high) + margin


def _ranking(story: RaceStory, winner: int | None) -> list[int]:
    """All arms: the winner, the others still in the race from best to worst, then by exit."""

    def key(arm: int) -> tuple[bool, float, float]:
        point = story.standing(arm)
        value = math.inf if point is None else -story.race.sign * point.mean
        exit_ = story.exits.get(arm)
        return arm != winner, -exit_.cost if exit_ else -math.inf, value

    return sorted(range(len(story.race.arms)), key=key)
