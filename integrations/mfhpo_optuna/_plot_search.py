"""The picture of a search and its certificate: what was evaluated, and how much of it was luck."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import optuna

from mfhpo.certification import CandidateResult, Certificate
from mfhpo_optuna._plot_style import (
    INK,
    WINNER,
    Line,
    faded,
    level_colour,
    params_text,
    value_text,
)
from mfhpo_optuna._race_recommendation import RaceRecommendation
from mfhpo_optuna._race_sampler import RaceSampler
from mfhpo_optuna._search_story import Evaluation, SearchStory

__all__ = ["plot_search"]

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000
_TITLE_WIDTH, _NOTE_WIDTH = 150, 44  # in characters


def plot_search(go: Any, make_subplots: Any, study: optuna.Study, sampler: RaceSampler) -> Any:
    """The figure that `plot_race` returns for a search.

    Parameters
    ----------
    go, make_subplots
        Plotly's.
    study
        The study.
    sampler
        What it was run with.
    """
    answer = sampler.recommendation(study)  # raises if there is nothing to show
    story = SearchStory(study, sampler)
    certificate = story.search.certificate()
    figure = make_subplots(rows=1, cols=2, column_widths=[0.64, 0.36], horizontal_spacing=0.03)
    span = _span(story)
    _draw_ladders(go, figure, story)
    for fidelity in range(len(story.race.levels)):
        _draw_level(go, figure, story, fidelity)
    _draw_replicates(go, figure, story, answer)
    _draw_best(go, figure, story)
    _draw_answer(go, figure, story, answer)
    _draw_failures(go, figure, story, span)
    _draw_phases(figure, story)
    if certificate is None:
        _say_that_there_is_no_certificate(figure, answer)
    else:
        _draw_shortlist(go, figure, story, certificate)
    _lay_out(figure, story, answer, span)
    return figure


# The search.


def _draw_ladders(go: Any, figure: Any, story: SearchStory) -> None:
    line = Line()
    for ladder in story.ladders().values():
        if len(ladder) > 1:
            line.add([(e.cost, e.value) for e in ladder])
    _add(
        figure,
        _kind(go, story)(
            x=line.x,
            y=line.y,
            mode="lines",
            line={"color": "rgba(110, 120, 130, 0.35)", "width": 0.8},
            hoverinfo="skip",
            name="one configuration, from level to level",
        ),
    )


def _draw_level(go: Any, figure: Any, story: SearchStory, fidelity: int) -> None:
    shown = story.of_search(fidelity)
    _add(
        figure,
        _kind(go, story)(
            **_points(story, shown),
            marker={
                "size": 6 if len(story.evaluations) <= _MOST_DRAWN_ONE_BY_ONE else 4,
                "color": level_colour(fidelity, len(story.race.levels)),
                "line": {"color": "white", "width": 0.5},
            },
            name=_level_name(story, fidelity),
        ),
    )


def _draw_replicates(go: Any, figure: Any, story: SearchStory, answer: RaceRecommendation) -> None:
    shown = [e for e in story.replicates() if e.arm != answer.arm]
    if not shown:
        return
    target = len(story.race.levels) - 1
    colour = level_colour(target, len(story.race.levels))
    _add(
        figure,
        _kind(go, story)(
            **_points(story, shown),
            marker={
                "symbol": "diamond-open",
                "size": 7,
                "color": colour,
                "line": {"color": colour, "width": 1},
            },
            name="evaluated again, for the certificate",
        ),
    )


def _draw_best(go: Any, figure: Any, story: SearchStory) -> None:
    best = story.best_at_target()
    if not best:
        return
    end = story.evaluations[-1].cost
    where = f" at {_level_name(story, len(story.race.levels) - 1)}" if story.has_fidelity else ""
    texts = [_describe(story, evaluation) for evaluation in best]
    _add(
        figure,
        go.Scatter(
            x=[*(e.cost for e in best), end],
            y=[*(e.value for e in best), best[-1].value],
            text=[*texts, texts[-1]],
            hovertemplate="%{text}<extra></extra>",
            mode="lines",
            line={"color": INK, "width": 1.8, "shape": "hv"},
            name=f"luckiest value so far{where}",
        ),
    )


def _draw_answer(go: Any, figure: Any, story: SearchStory, answer: RaceRecommendation) -> None:
    ladder = story.ladders().get(-1 if answer.arm is None else answer.arm, [])
    again = [e for e in story.replicates() if e.arm == answer.arm]
    if not ladder and not again:
        return
    line = Line()
    for run in (ladder, again):
        line.add([(e.cost, e.value) for e in run], [_describe(story, e) for e in run])
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    links = Line()
    links.add([(e.cost, e.value) for e in ladder])
    name = f"arm {answer.arm}, {'certified' if answer.certified else 'recommended'}"
    common = {"legendgroup": "answer", "name": name}
    _add(
        figure,
        go.Scatter(
            x=links.x,
            y=links.y,
            mode="lines",
            line={"color": WINNER, "width": 2.5},
            hoverinfo="skip",
            showlegend=False,
            **common,
        ),
    )
    symbols = ["circle"] * (len(ladder) + bool(ladder)) + ["diamond"] * (len(again) + bool(again))
    _add(
        figure,
        go.Scatter(
            x=line.x,
            y=line.y,
            text=line.text,
            hovertemplate="%{text}<extra></extra>",
            mode="markers",
            marker={
                "symbol": symbols,
                "size": 9,
                "color": WINNER,
                "line": {"color": "white", "width": 1},
            },
            **common,
        ),
    )


def _draw_failures(go: Any, figure: Any, story: SearchStory, span: tuple[float, float]) -> None:
    failed = [e for e in story.evaluations if not math.isfinite(e.value)]
    if not failed:
        return
    edge = span[0] if story.race.sign > 0.0 else span[1]
    _add(
        figure,
        go.Scatter(
            x=[e.cost for e in failed],
            y=[edge] * len(failed),
            text=[_describe(story, e) for e in failed],
            hovertemplate="%{text}<extra></extra>",
            mode="markers",
            marker={"symbol": "x-thin-open", "size": 7, "color": INK, "line": {"width": 1.5}},
            cliponaxis=False,
            name="failed",
        ),
    )


def _draw_phases(figure: Any, story: SearchStory) -> None:
    end = story.cost_of_search()
    if end is None:
        return
    # Drawn by hand: plotly's own vertical lines begin a new search for axes at every call.
    figure.add_shape(
        type="line",
        x0=end,
        x1=end,
        y0=0.0,
        y1=1.0,
        xref="x",
        yref="y domain",
        line={"color": INK, "width": 1, "dash": "dot"},
    )
    for text, anchor in (("search ◂ ", "right"), (" ▸ certificate", "left")):
        figure.add_annotation(
            text=text,
            x=end,
            y=1.0,
            xref="x",
            yref="y domain",
            xanchor=anchor,
            yanchor="bottom",
            showarrow=False,
            font={"color": INK, "size": 12},
        )


# The certificate.


def _draw_shortlist(go: Any, figure: Any, story: SearchStory, certificate: Certificate) -> None:
    order = _order(story, certificate)
    labels = [f"{story.search.shortlist[place]}" for place in order]
    results = [certificate.candidates[place] for place in order]
    texts = [_describe_candidate(story, result) for result in results]
    lucky_x: list[str | None] = []
    lucky_y: list[float | None] = []
    for label, result in zip(labels, results, strict=True):
        if result.evaluations and math.isfinite(result.claim):
            lucky_x += [label, label, None]
            lucky_y += [result.claim, result.mean, None]
    colour = level_colour(len(story.race.levels) - 1, len(story.race.levels))
    _add(
        figure,
        go.Scatter(
            x=lucky_x,
            y=lucky_y,
            mode="lines",
            line={"color": INK, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
        ),
        col=2,
    )
    common = {"hovertemplate": "%{text}<extra></extra>", "mode": "markers"}
    _add(
        figure,
        go.Scatter(
            x=labels,
            y=[result.mean if result.evaluations else None for result in results],
            error_y={
                "array": [_radius(result) for result in results],
                "thickness": 3,
                "width": 0,
                "color": faded(colour, 0.55),
            },
            text=texts,
            marker={"size": 8, "color": colour, "line": {"color": "white", "width": 1}},
            name="mean of the new evaluations, with interval",
            **common,
        ),
        col=2,
    )
    if certificate.winner is not None:  # the first in order, if there is one
        _add(
            figure,
            go.Scatter(
                x=labels[:1],
                y=[results[0].mean],
                text=texts[:1],
                marker={"symbol": "star", "size": 15, "color": WINNER},
                showlegend=False,
                **common,
            ),
            col=2,
        )
    _add(
        figure,
        go.Scatter(
            x=labels,
            y=[result.claim for result in results],
            text=texts,
            marker={
                "symbol": "circle-open",
                "size": 9,
                "color": INK,
                "line": {"color": INK, "width": 1.5},
            },
            name="what the search had seen",
            **common,
        ),
        col=2,
    )
    low, high = certificate.interval
    if math.isfinite(high - low):
        # Across both panels: the value to expect, beside those that the search has seen.
        for axis in ("", "2"):
            figure.add_shape(
                type="rect",
                x0=0.0,
                x1=1.0,
                y0=low,
                y1=high,
                xref=f"x{axis} domain",
                yref=f"y{axis}",
                fillcolor=WINNER,
                opacity=0.12,
                line_width=0,
                layer="below",
            )
    figure.update_xaxes(
        title="shortlist: arms, the best on the left",
        type="category",
        categoryorder="array",
        categoryarray=labels,
        tickangle=0,
        showgrid=False,
        row=1,
        col=2,
    )
    figure.update_yaxes(range=list(_shortlist_span(results)), row=1, col=2)
    _note(figure, _luck(story, certificate), y=1.0, yanchor="bottom", size=12)


def _say_that_there_is_no_certificate(figure: Any, answer: RaceRecommendation) -> None:
    figure.update_xaxes(visible=False, row=1, col=2)
    figure.update_yaxes(visible=False, row=1, col=2)
    reason = _wrapped(answer.reason, _NOTE_WIDTH)
    _note(figure, f"<b>No certificate yet</b><br>{reason}", y=0.5, yanchor="middle", size=14)


def _note(figure: Any, text: str, *, y: float, yanchor: str, size: int) -> None:
    figure.add_annotation(
        text=text,
        x=0.5,
        y=y,
        xref="x2 domain",
        yref="y2 domain",
        xanchor="center",
        yanchor=yanchor,
        showarrow=False,
        font={"color": INK, "size": size},
    )


def _order(story: SearchStory, certificate: Certificate) -> list[int]:
    """The winner's place in the shortlist, then the others' from best to worst."""

    def key(place: int) -> tuple[bool, bool, float]:
        result = certificate.candidates[place]
        value = result.mean if result.evaluations else result.claim
        return place != certificate.winner, not result.evaluations, -story.race.sign * value

    return sorted(range(len(certificate.candidates)), key=key)


def _radius(result: CandidateResult) -> float:
    low, high = result.interval
    return (high - low) / 2.0 if math.isfinite(high - low) else 0.0


# Layout.


def _lay_out(
    figure: Any, story: SearchStory, answer: RaceRecommendation, span: tuple[float, float]
) -> None:
    better = "higher" if story.race.sign > 0.0 else "lower"
    unit = " in seconds" if story.race.fidelity.costs == "measured" else ""
    figure.update_layout(
        template="plotly_white",
        title={"text": _title(story, answer), "x": 0.01, "xanchor": "left"},
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


def _span(story: SearchStory) -> tuple[float, float]:
    """Range of the value axis: all values but the worst quarter, and a margin.

    A search begins with bad configurations at low levels; with all of them on the axis, the good
    ones would look alike.
    """
    values = np.array([e.value for e in story.evaluations if math.isfinite(e.value)])
    if not values.size:
        return 0.0, 1.0
    low, high = np.quantile(values, [0.0, 0.75] if story.race.sign < 0.0 else [0.25, 1.0])
    return _with_margin(float(low), float(high))


def _shortlist_span(results: Sequence[CandidateResult]) -> tuple[float, float]:
    """Range of the shortlist's axis; intervals much wider than what they are of run beyond it."""
    points = [result.claim for result in results if math.isfinite(result.claim)]
    points += [result.mean for result in results if result.evaluations]
    if not points:
        return 0.0, 1.0
    radii = [_radius(result) for result in results if result.evaluations]
    reach = min(max(radii, default=0.0), 2.0 * (max(points) - min(points)) or math.inf)
    means = [result.mean for result in results if result.evaluations]
    low = min([*points, *(mean - reach for mean in means)])
    high = max([*points, *(mean + reach for mean in means)])
    return _with_margin(low, high)


def _with_margin(low: float, high: float) -> tuple[float, float]:
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


# Words.


def _title(story: SearchStory, answer: RaceRecommendation) -> str:
    tried = f"{answer.tried} configurations in {answer.trials} trials"
    if answer.arm is None:
        return f"A search: {tried}<br><sup>{_wrapped(answer.reason, _TITLE_WIDTH)}</sup>"
    state = "is certified" if answer.certified else "leads, not certified"
    head = f"Arm {answer.arm} {state}: {tried}"
    words = []
    low, high = answer.interval
    where = f" in [{low:.4g}, {high:.4g}]" if math.isfinite(high - low) else ""
    at = f" at {story.race.fidelity.name} = {value_text(answer.level)}"
    words.append(f"mean {answer.mean:.4g}{where}{at if story.has_fidelity else ''}")
    if answer.certified:
        words.append(
            f"within ε = {answer.epsilon:.3g} of the best of the shortlist, wrong with "
            f"probability ≤ {answer.delta:g}"
        )
    else:
        words.append(answer.reason)
    return f"{head}<br><sup>{_wrapped('; '.join(words), _TITLE_WIDTH)}</sup>"


def _luck(story: SearchStory, certificate: Certificate) -> str:
    """How far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    arm = story.search.shortlist[certificate.luckiest]
    words = f"luckiest: arm {arm} had promised {result.claim:.4g}"
    if not result.evaluations:
        return words
    amount = "too much" if result.gap >= 0.0 else "too little"
    return f"{words},<br>by {abs(result.gap):.3g} {amount}: it is {_mean_text(result)}"


def _describe(story: SearchStory, evaluation: Evaluation) -> str:
    value = f"{evaluation.value:.5g}" if math.isfinite(evaluation.value) else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    level = f", {_level_name(story, evaluation.fidelity)}" if story.has_fidelity else ""
    return (
        f"trial {evaluation.trial}: {value}{purpose}<br>arm {evaluation.arm}{level}<br>"
        f"{params_text(story.race.arms.params(evaluation.arm))}"
    )


def _describe_candidate(story: SearchStory, result: CandidateResult) -> str:
    lines = [f"{escape(result.name)}: {result.standing}", f"promised {result.claim:.5g}"]
    if result.evaluations:
        times = f"{result.evaluations} new evaluation{'s' * (result.evaluations != 1)}"
        lines.append(f"is {_mean_text(result)}, in {times}")
    else:
        lines.append("not evaluated again yet")
    return "<br>".join([*lines, params_text(result.params)])


def _mean_text(result: CandidateResult) -> str:
    radius = _radius(result)
    return f"{result.mean:.4g}" + (f" ± {radius:.2g}" if radius else "")


def _level_name(story: SearchStory, fidelity: int) -> str:
    if not story.has_fidelity:
        return "the search's evaluations"
    name, level = story.race.fidelity.name, story.race.levels[fidelity]
    return f"{escape(name)} = {escape(value_text(level))}"


def _wrapped(text: str, width: int) -> str:
    return "<br>".join(escape(line) for line in textwrap.wrap(text, width))


# Traces.


def _kind(go: Any, story: SearchStory) -> Any:
    return go.Scatter if len(story.evaluations) <= _MOST_DRAWN_ONE_BY_ONE else go.Scattergl


def _points(story: SearchStory, shown: Sequence[Evaluation]) -> dict[str, Any]:
    return {
        "x": [float(f"{e.cost:.6g}") for e in shown],
        "y": [float(f"{e.value:.6g}") for e in shown],
        "text": [_describe(story, e) for e in shown],
        "hovertemplate": "%{text}<extra></extra>",
        "mode": "markers",
    }


def _add(figure: Any, trace: Any, col: int = 1) -> None:
    figure.add_trace(trace, row=1, col=col)
