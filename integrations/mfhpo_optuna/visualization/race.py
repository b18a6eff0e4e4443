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
    WINNER,
    Line,
    faded,
    import_plotly,
    level_colour,
    params_text,
    value_text,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_race"]


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
    go, make_subplots = import_plotly()
    chosen = study.sampler if sampler is None else sampler
    if not isinstance(chosen, FidelitySampler):
        raise TypeError(
            f"plot_race needs a sampler that runs races, such as IISESampler, but "
            f"{'study.sampler' if sampler is None else 'sampler'} is a "
            f"{type(chosen).__name__}; pass sampler=, made with the arguments of the race."
        )
    if isinstance(chosen, RaceSampler):
        return plot_search(go, make_subplots, study, chosen)
    answer = chosen.recommendation(study)  # raises if there is nothing to show
    story = RaceStory()
    story.race = chosen.replay(study, story.listen)
    story.end()

    ranking = _ranking(story, answer.arm)
    span = _span(story)
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.64, 0.36], horizontal_spacing=0.015
    )
    for fidelity in range(len(story.race.levels)):
        _draw_curves(go, figure, story, fidelity, span)
        _draw_last_intervals(go, figure, story, fidelity, ranking)
    _draw_winner(go, figure, story, answer, span)
    _draw_exits(go, figure, story, span)
    _lay_out(figure, story, answer, ranking, span)
    return figure


# What is drawn.
#
# One trace per fidelity holds the curves of all arms, separated by gaps: a figure of 32 arms has
# a dozen traces rather than hundreds, and a click on the legend shows or hides a fidelity.


def _draw_curves(
    go: Any, figure: Any, story: RaceStory, fidelity: int, span: tuple[float, float]
) -> None:
    band = Line()
    curve = Line()
    for points in story.points.values():
        run = story.shown(points)[fidelity]
        curve.add([(p.cost, p.mean) for p in run], [_describe(story, p) for p in run])
        band.add(_outline(run, span))
    colour = _colour(story, fidelity)
    group = f"level {fidelity}"
    _draw_bands(go, figure, band, colour, group)
    figure.add_trace(
        go.Scatter(
            x=curve.x,
            y=curve.y,
            text=curve.text,
            hovertemplate="%{text}<extra></extra>",
            mode="lines+markers",
            line={"color": colour, "width": 1.2},
            marker={"size": 3.5},
            name=_level_name(story, fidelity),
            legendgroup=group,
        ),
        row=1,
        col=1,
    )


def _draw_bands(go: Any, figure: Any, band: Line, colour: str, group: str) -> None:
    figure.add_trace(
        go.Scatter(
            x=band.x,
            y=band.y,
            mode="lines",
            line={"color": faded(colour, 0.45), "width": 0.6},
            fill="toself",
            fillcolor=faded(colour, 0.08),
            hoverinfo="skip",
            legendgroup=group,
            showlegend=False,
        ),
        row=1,
        col=1,
    )


def _draw_last_intervals(
    go: Any, figure: Any, story: RaceStory, fidelity: int, ranking: Sequence[int]
) -> None:
    shown = [
        (f"{arm}", point)
        for arm in ranking
        if (point := story.standing(arm)) is not None and point.fidelity == fidelity
    ]
    colour = _colour(story, fidelity)
    figure.add_trace(
        go.Scatter(
            x=[label for label, _ in shown],
            y=[point.mean for _, point in shown],
            error_y={
                "array": [p.radius if math.isfinite(p.radius) else 0.0 for _, p in shown],
                "thickness": 3,
                "width": 0,
            },
            text=[_describe(story, point) for _, point in shown],
            hovertemplate="%{text}<extra></extra>",
            mode="markers",
            marker={"color": colour, "size": 7, "line": {"color": "white", "width": 1}},
            legendgroup=f"level {fidelity}",
            showlegend=False,
        ),
        row=1,
        col=2,
    )


def _draw_exits(go: Any, figure: Any, story: RaceStory, span: tuple[float, float]) -> None:
    kinds = {
        "eliminated": ("eliminated", "x-thin-open", 8),
        "failed": ("left by failing", "triangle-down-open", 10),
        "duplicate": ("same as another arm", "circle-open", 9),
    }
    for reason, (name, symbol, size) in kinds.items():
        exits = {a: e for a, e in story.exits.items() if e.reason == reason}
        if not exits:
            continue
        marks = []
        for arm, exit_ in exits.items():
            points = story.points.get(arm)
            # An arm that never gave a value, or left beyond the axis, is marked at its edge.
            mean = points[-1].mean if points else span[0]
            marks.append((exit_.cost, min(max(mean, span[0]), span[1]), arm))
        figure.add_trace(
            go.Scatter(
                x=[cost for cost, _, _ in marks],
                y=[mean for _, mean, _ in marks],
                text=[
                    f"arm {arm}: {name} at {_level_name(story, exits[arm].fidelity)}, "
                    f"cost {cost:.6g}<br>{_params(story, arm)}"
                    for cost, _, arm in marks
                ],
                hovertemplate="%{text}<extra></extra>",
                mode="markers",
                marker={
                    "symbol": symbol,
                    "size": size,
                    "color": INK,
                    "line": {"color": INK, "width": 2},
                },
                cliponaxis=False,
                name=name,
            ),
            row=1,
            col=1,
        )


def _draw_winner(
    go: Any,
    figure: Any,
    story: RaceStory,
    answer: StudyRecommendation,
    span: tuple[float, float],
) -> None:
    points = story.points.get(-1 if answer.arm is None else answer.arm)
    if not points:
        return
    last = story.standing(points[0].arm)
    assert last is not None
    # The level where most is known of it stands out, and only its band is drawn.
    thick, thin, band = Line(), Line(), Line()
    for fidelity, run in enumerate(story.shown(points)):
        curve = thick if fidelity == last.fidelity else thin
        curve.add([(p.cost, p.mean) for p in run], [_describe(story, p) for p in run])
        if curve is thick:
            band.add(_outline(run, span))
    _draw_bands(go, figure, band, WINNER, "winner")
    for curve, width in ((thin, 1.5), (thick, 3.5)):
        figure.add_trace(
            go.Scatter(
                x=curve.x,
                y=curve.y,
                text=curve.text,
                hovertemplate="%{text}<extra></extra>",
                mode="lines",
                line={"color": WINNER, "width": width},
                name=f"arm {answer.arm}, {'certified' if answer.certified else 'leading'}",
                legendgroup="winner",
                showlegend=curve is thick,
            ),
            row=1,
            col=1,
        )
    figure.add_trace(
        go.Scatter(
            x=[f"{answer.arm}"],
            y=[last.mean],
            text=[_describe(story, last)],
            hovertemplate="%{text}<extra></extra>",
            mode="markers",
            marker={"symbol": "star", "color": WINNER, "size": 14},
            showlegend=False,
        ),
        row=1,
        col=2,
    )
    if math.isfinite(last.radius):
        # Across both panels: who reaches into the winner's interval is not told from it.
        figure.add_hrect(
            y0=last.mean - last.radius,
            y1=last.mean + last.radius,
            fillcolor=WINNER,
            opacity=0.12,
            line_width=0,
            layer="below",
        )


def _lay_out(
    figure: Any,
    story: RaceStory,
    answer: StudyRecommendation,
    ranking: Sequence[int],
    span: tuple[float, float],
) -> None:
    better = "higher" if story.race.sign > 0.0 else "lower"
    policy = story.race.policy
    assert policy is not None
    figure.update_layout(
        template="plotly_white",
        title={"text": _title(story, answer), "x": 0.01, "xanchor": "left"},
        legend={"orientation": "h", "x": 0.0, "y": -0.13, "yanchor": "top"},
        hovermode="closest",
        margin={"t": 90, "r": 30},
        height=600,
    )
    # Most of a race happens early: on a linear axis the finalists would take all the room.
    begin = 0.97 * _beginning(story)
    end = 1.03 * max(policy.cost, begin)
    figure.update_xaxes(
        title="cost paid",
        type="log",
        range=[math.log10(begin), math.log10(end)],
        tickvals=_ticks(begin, end),
        tickformat="~s",
        row=1,
        col=1,
    )
    figure.update_xaxes(
        title=f"arm (the {'last to leave' if story.exits else 'best'} on the left)",
        type="category",
        categoryorder="array",
        categoryarray=[f"{arm}" for arm in ranking],
        tickangle=0,
        dtick=1,
        tickfont={"size": 10 if len(ranking) <= 24 else 8},
        showgrid=False,
        row=1,
        col=2,
    )
    figure.update_yaxes(range=list(span), zeroline=False)
    figure.update_yaxes(title=f"mean objective value ({better} is better)", row=1, col=1)
    figure.update_yaxes(showticklabels=False, row=1, col=2)
    if not policy.piloting and story.pilot_cost:
        figure.add_annotation(
            text=f"◂ pilot: {story.pilot_cost:.4g}",
            x=0.0,
            y=1.0,
            xref="x domain",
            yref="y domain",
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"color": INK, "size": 12},
        )


# Words.


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
        f"{count}<br>{_params(story, point.arm)}"
    )


def _params(story: RaceStory, arm: int) -> str:
    return params_text(story.race.arms.params(arm))


def _level_name(story: RaceStory, fidelity: int) -> str:
    return f"{escape(story.race.fidelity.name)} = {escape(value_text(story.race.levels[fidelity]))}"


# Geometry.


def _outline(run: Sequence[Point], span: tuple[float, float]) -> list[tuple[float, float]]:
    """The polygon around the intervals, save those that are wider than the axis."""
    known = [point for point in run if 2.0 * point.radius <= span[1] - span[0]]
    upper = [(point.cost, point.mean + point.radius) for point in known]
    lower = [(point.cost, point.mean - point.radius) for point in known]
    return upper + lower[::-1]


def _beginning(story: RaceStory) -> float:
    """The cost at which the picture begins: that of the pilot, or of its first round."""
    assert story.race.policy is not None
    if story.pilot_cost and not story.race.policy.piloting:
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


def _colour(story: RaceStory, fidelity: int) -> str:
    return level_colour(fidelity, len(story.race.levels))
