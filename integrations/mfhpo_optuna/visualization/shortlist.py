"""The picture of a shortlist: what the search had promised, and how much of it was luck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mfhpo.certification.candidates import CandidateResult
from mfhpo.certification.certificate import Certificate
from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.visualization.search_layout import add_trace, with_margin
from mfhpo_optuna.visualization.search_story import SearchStory
from mfhpo_optuna.visualization.search_words import describe_candidate, luck_of, radius_of, wrapped
from mfhpo_optuna.visualization.style import INK, WINNER, faded, level_colour

__all__ = ["draw_shortlist", "say_that_there_is_no_certificate"]

_NOTE_WIDTH = 44  # in characters


def draw_shortlist(go: Any, figure: Any, story: SearchStory, certificate: Certificate) -> None:
    """Draw what the search had promised of each candidate, and what the certificate measured."""
    order = _order(story, certificate)
    labels = [f"{story.search.shortlist[place]}" for place in order]
    results = [certificate.candidates[place] for place in order]
    texts = [describe_candidate(story, result) for result in results]
    lucky_x: list[str | None] = []
    lucky_y: list[float | None] = []
    for label, result in zip(labels, results, strict=True):
        if result.evaluations and math.isfinite(result.claim):
            lucky_x += [label, label, None]
            lucky_y += [result.claim, result.mean, None]
    colour = level_colour(len(story.race.levels) - 1, len(story.race.levels))
    add_trace(
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
    add_trace(
        figure,
        go.Scatter(
            x=labels,
            y=[result.mean if result.evaluations else None for result in results],
            error_y={
                "array": [radius_of(result) for result in results],
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
        add_trace(
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
    add_trace(
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
    _note(figure, luck_of(story, certificate), y=1.0, yanchor="bottom", size=12)


def say_that_there_is_no_certificate(figure: Any, answer: RaceRecommendation) -> None:
    """Write in the panel why there is nothing to draw in it yet."""
    figure.update_xaxes(visible=False, row=1, col=2)
    figure.update_yaxes(visible=False, row=1, col=2)
    reason = wrapped(answer.reason, _NOTE_WIDTH)
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


def _shortlist_span(results: Sequence[CandidateResult]) -> tuple[float, float]:
    """Range of the shortlist's axis; intervals much wider than what they are of run beyond it."""
    points = [result.claim for result in results if math.isfinite(result.claim)]
    points += [result.mean for result in results if result.evaluations]
    if not points:
        return 0.0, 1.0
    radii = [radius_of(result) for result in results if result.evaluations]
    reach = min(max(radii, default=0.0), 2.0 * (max(points) - min(points)) or math.inf)
    means = [result.mean for result in results if result.evaluations]
    low = min([*points, *(mean - reach for mean in means)])
    high = max([*points, *(mean + reach for mean in means)])
    return with_margin(low, high)
