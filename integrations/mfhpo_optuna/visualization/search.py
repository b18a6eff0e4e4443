"""The picture of a search and its certificate: what was evaluated, and how much of it was luck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import optuna

from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.samplers.race_sampler import RaceSampler
from mfhpo_optuna.visualization.search_layout import add_trace, lay_out, span_of
from mfhpo_optuna.visualization.search_story import Evaluation, SearchStory
from mfhpo_optuna.visualization.search_words import describe, level_name
from mfhpo_optuna.visualization.shortlist import draw_shortlist, say_that_there_is_no_certificate
from mfhpo_optuna.visualization.style import INK, WINNER, Line, level_colour

__all__ = ["plot_search"]

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000


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
    span = span_of(story)
    _draw_ladders(go, figure, story)
    for fidelity in range(len(story.race.levels)):
        _draw_level(go, figure, story, fidelity)
    _draw_replicates(go, figure, story, answer)
    _draw_best(go, figure, story)
    _draw_answer(go, figure, story, answer)
    _draw_failures(go, figure, story, span)
    _draw_phases(figure, story)
    if certificate is None:
        say_that_there_is_no_certificate(figure, answer)
    else:
        draw_shortlist(go, figure, story, certificate)
    lay_out(figure, story, answer, span)
    return figure


def _draw_ladders(go: Any, figure: Any, story: SearchStory) -> None:
    line = Line()
    for ladder in story.ladders().values():
        if len(ladder) > 1:
            line.add([(e.cost, e.value) for e in ladder])
    add_trace(
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
    add_trace(
        figure,
        _kind(go, story)(
            **_points(story, shown),
            marker={
                "size": 6 if len(story.evaluations) <= _MOST_DRAWN_ONE_BY_ONE else 4,
                "color": level_colour(fidelity, len(story.race.levels)),
                "line": {"color": "white", "width": 0.5},
            },
            name=level_name(story, fidelity),
        ),
    )


def _draw_replicates(go: Any, figure: Any, story: SearchStory, answer: RaceRecommendation) -> None:
    shown = [e for e in story.replicates() if e.arm != answer.arm]
    if not shown:
        return
    target = len(story.race.levels) - 1
    colour = level_colour(target, len(story.race.levels))
    add_trace(
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
    where = f" at {level_name(story, len(story.race.levels) - 1)}" if story.has_fidelity else ""
    texts = [describe(story, evaluation) for evaluation in best]
    add_trace(
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
        line.add([(e.cost, e.value) for e in run], [describe(story, e) for e in run])
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    links = Line()
    links.add([(e.cost, e.value) for e in ladder])
    name = f"arm {answer.arm}, {'certified' if answer.certified else 'recommended'}"
    common = {"legendgroup": "answer", "name": name}
    add_trace(
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
    add_trace(
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
    add_trace(
        figure,
        go.Scatter(
            x=[e.cost for e in failed],
            y=[edge] * len(failed),
            text=[describe(story, e) for e in failed],
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


def _kind(go: Any, story: SearchStory) -> Any:
    return go.Scatter if len(story.evaluations) <= _MOST_DRAWN_ONE_BY_ONE else go.Scattergl


def _points(story: SearchStory, shown: Sequence[Evaluation]) -> dict[str, Any]:
    return {
        "x": [float(f"{e.cost:.6g}") for e in shown],
        "y": [float(f"{e.value:.6g}") for e in shown],
        "text": [describe(story, e) for e in shown],
        "hovertemplate": "%{text}<extra></extra>",
        "mode": "markers",
    }
