"""The picture of a shortlist: what the search had promised, and how much of it was luck."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from mfhpo.certification.candidates import CandidateResult
from mfhpo.certification.certificate import Certificate
from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.visualization.search_story import SearchStory
from mfhpo_optuna.visualization.style import (
    INK,
    RIGHT,
    WINNER,
    annotate,
    faded,
    level_colour,
    list_arms,
    mark_interval,
    params_text,
    wrapped,
)

_NOTE_WIDTH = 44  # in characters
_CENTRE = {"x": 0.5, "xref": "x2 domain", "xanchor": "center", "yref": "y2 domain"}


def draw_shortlist(figure: Any, story: SearchStory, certificate: Certificate) -> None:
    """Draw what the search had promised of each candidate, and what the certificate measured."""
    order = _order(story, certificate)
    labels = [f"{story.search.shortlist[place]}" for place in order]
    results = [certificate.candidates[place] for place in order]
    texts = [_describe(story, result) for result in results]
    lucky_x: list[str | None] = []
    lucky_y: list[float | None] = []
    for label, result in zip(labels, results, strict=True):
        if result.evaluations and math.isfinite(result.claim):
            lucky_x += [label, label, None]
            lucky_y += [result.claim, result.mean, None]
    colour = level_colour(len(story.race.levels) - 1, len(story.race.levels))
    figure.add_scatter(
        x=lucky_x,
        y=lucky_y,
        mode="lines",
        line={"color": INK, "width": 1, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
        **RIGHT,
    )
    common = {"mode": "markers", **RIGHT}
    radii = [_radius(result) for result in results]
    figure.add_scatter(
        x=labels,
        y=[result.mean if result.evaluations else None for result in results],
        error_y={"array": radii, "thickness": 3, "width": 0, "color": faded(colour, 0.55)},
        text=texts,
        marker={"size": 8, "color": colour, "line": {"color": "white", "width": 1}},
        name="mean of the new evaluations, with interval",
        **common,
    )
    if certificate.winner is not None:  # the first in order, if there is one
        figure.add_scatter(
            x=labels[:1],
            y=[results[0].mean],
            text=texts[:1],
            marker={"symbol": "star", "size": 15, "color": WINNER},
            showlegend=False,
            **common,
        )
    edge = {"color": INK, "width": 1.5}
    figure.add_scatter(
        x=labels,
        y=[result.claim for result in results],
        text=texts,
        marker={"symbol": "circle-open", "size": 9, "color": INK, "line": edge},
        name="what the search had seen",
        **common,
    )
    low, high = certificate.interval
    if math.isfinite(high - low):
        mark_interval(figure, low, high)
    list_arms(figure, "shortlist: arms, the best on the left", labels)
    figure.update_yaxes(range=list(_shortlist_span(results)), **RIGHT)
    annotate(figure, _luck(story, certificate), **_CENTRE)


def say_that_there_is_no_certificate(figure: Any, answer: RaceRecommendation) -> None:
    """Write in the panel why there is nothing to draw in it yet."""
    figure.update_xaxes(visible=False, **RIGHT)
    figure.update_yaxes(visible=False, **RIGHT)
    annotate(
        figure,
        f"<b>No certificate yet</b><br>{wrapped(answer.reason, _NOTE_WIDTH)}",
        **(_CENTRE | {"y": 0.5, "yanchor": "middle", "font": {"color": INK, "size": 14}}),
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
    radii = [_radius(result) for result in results if result.evaluations]
    reach = min(max(radii, default=0.0), 2.0 * (max(points) - min(points)) or math.inf)
    means = [result.mean for result in results if result.evaluations]
    low = min([*points, *(mean - reach for mean in means)])
    high = max([*points, *(mean + reach for mean in means)])
    return with_margin(low, high)


def with_margin(low: float, high: float) -> tuple[float, float]:
    """The range, a little wider; of a single value, a range around it."""
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _luck(story: SearchStory, certificate: Certificate) -> str:
    """How far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    arm = story.search.shortlist[certificate.luckiest]
    words = f"luckiest: arm {arm} had promised {result.claim:.4g}"
    if not result.evaluations:
        return words
    amount = "too much" if result.gap >= 0.0 else "too little"
    return f"{words},<br>by {abs(result.gap):.3g} {amount}: it is {_mean_text(result)}"


def _describe(story: SearchStory, result: CandidateResult) -> str:
    """Shown where the mouse is held over a candidate of the shortlist."""
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


def _radius(result: CandidateResult) -> float:
    """Half the width of the interval around the mean; 0 if there is no finite one."""
    low, high = result.interval
    return (high - low) / 2.0 if math.isfinite(high - low) else 0.0
