"""The picture of a search and its certificate: what was evaluated, and how much of it was luck."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import optuna

from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.samplers.race_sampler import RaceSampler
from mfhpo_optuna.visualization.search_story import Evaluation, SearchStory
from mfhpo_optuna.visualization.shortlist import (
    draw_shortlist,
    say_that_there_is_no_certificate,
    with_margin,
)
from mfhpo_optuna.visualization.style import (
    INK,
    LEFT,
    RIGHT,
    WINNER,
    Line,
    annotate,
    lay_out,
    level_colour,
    new_figure,
    params_text,
    rounded,
    value_text,
    wrapped,
)

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000
_TITLE_WIDTH = 150  # in characters


def plot_search(study: optuna.Study, sampler: RaceSampler) -> Any:
    """The figure that `plot_race` returns for a search."""
    answer = sampler.recommendation(study)  # raises if there is nothing to show
    story = SearchStory(study, sampler)
    figure = new_figure(rows=1, cols=2, column_widths=[0.64, 0.36], horizontal_spacing=0.03)
    span = _span(story)
    _draw_evaluations(figure, story, answer)
    _draw_best(figure, story)
    _draw_answer(figure, story, answer)
    _draw_failures(figure, story, span)
    end = story.cost_of_search()
    if end is not None:
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
        annotate(figure, "search ◂ ", x=end, xref="x", xanchor="right")
        annotate(figure, " ▸ certificate", x=end, xref="x", xanchor="left")
    certificate = story.search.certificate()
    if certificate is None:
        say_that_there_is_no_certificate(figure, answer)
    else:
        draw_shortlist(figure, story, certificate)
    lay_out(figure, _title(story, answer), height=640)
    better = "higher" if story.race.sign > 0.0 else "lower"
    unit = " in seconds" if story.race.fidelity.costs == "measured" else ""
    figure.update_xaxes(title=f"cost paid{unit}", rangemode="tozero", **LEFT)
    figure.update_yaxes(title=f"objective value ({better} is better)", range=list(span), **LEFT)
    figure.update_yaxes(zeroline=False)
    figure.update_yaxes(side="right", **RIGHT)
    return figure


def _span(story: SearchStory) -> tuple[float, float]:
    """Range of the value axis: all values but the worst quarter, and a margin.

    A search begins with bad configurations at low levels; with all of them on the axis, the good
    ones would look alike.
    """
    values = np.array([e.value for e in story.evaluations if math.isfinite(e.value)])
    if not values.size:
        return 0.0, 1.0
    low, high = np.quantile(values, [0.0, 0.75] if story.race.sign < 0.0 else [0.25, 1.0])
    return with_margin(float(low), float(high))


def _draw_evaluations(figure: Any, story: SearchStory, answer: RaceRecommendation) -> None:
    are_few = len(story.evaluations) <= _MOST_DRAWN_ONE_BY_ONE
    add = figure.add_scatter if are_few else figure.add_scattergl
    line = Line()
    for ladder in story.ladders().values():
        if len(ladder) > 1:
            line.add([(e.cost, e.value) for e in ladder])
    add(
        x=line.x,
        y=line.y,
        mode="lines",
        line={"color": "rgba(110, 120, 130, 0.35)", "width": 0.8},
        hoverinfo="skip",
        name="one configuration, from level to level",
        **LEFT,
    )
    n_levels = len(story.race.levels)
    for fidelity in range(n_levels):
        add(
            **_points(story, story.of_search(fidelity)),
            marker={
                "size": 6 if are_few else 4,
                "color": level_colour(fidelity, n_levels),
                "line": {"color": "white", "width": 0.5},
            },
            name=_level_name(story, fidelity),
        )
    again = [e for e in story.replicates() if e.arm != answer.arm]
    if again:
        colour = level_colour(n_levels - 1, n_levels)
        edge = {"color": colour, "width": 1}
        add(
            **_points(story, again),
            marker={"symbol": "diamond-open", "size": 7, "color": colour, "line": edge},
            name="evaluated again, for the certificate",
        )


def _draw_best(figure: Any, story: SearchStory) -> None:
    best = story.best_at_target()
    if not best:
        return
    where = f" at {_level_name(story, len(story.race.levels) - 1)}" if story.has_fidelity else ""
    texts = [_describe(story, evaluation) for evaluation in best]
    figure.add_scatter(
        x=[*(e.cost for e in best), story.evaluations[-1].cost],
        y=[*(e.value for e in best), best[-1].value],
        text=[*texts, texts[-1]],
        mode="lines",
        line={"color": INK, "width": 1.8, "shape": "hv"},
        name=f"luckiest value so far{where}",
        **LEFT,
    )


def _draw_answer(figure: Any, story: SearchStory, answer: RaceRecommendation) -> None:
    ladder = story.ladders().get(-1 if answer.arm is None else answer.arm, [])
    again = [e for e in story.replicates() if e.arm == answer.arm]
    if not ladder and not again:
        return
    common = {
        "legendgroup": "answer",
        "name": f"arm {answer.arm}, {'certified' if answer.certified else 'recommended'}",
    }
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    links = Line()
    links.add([(e.cost, e.value) for e in ladder])
    figure.add_scatter(
        x=links.x,
        y=links.y,
        mode="lines",
        line={"color": WINNER, "width": 2.5},
        hoverinfo="skip",
        showlegend=False,
        **common,
        **LEFT,
    )
    figure.add_scatter(
        **_points(story, [*ladder, *again]),
        marker={
            "symbol": ["circle"] * len(ladder) + ["diamond"] * len(again),
            "size": 9,
            "color": WINNER,
            "line": {"color": "white", "width": 1},
        },
        **common,
    )


def _draw_failures(figure: Any, story: SearchStory, span: tuple[float, float]) -> None:
    failed = [e for e in story.evaluations if not math.isfinite(e.value)]
    if not failed:
        return
    edge = span[0] if story.race.sign > 0.0 else span[1]
    figure.add_scatter(
        x=[e.cost for e in failed],
        y=[edge] * len(failed),
        text=[_describe(story, e) for e in failed],
        mode="markers",
        marker={"symbol": "x-thin-open", "size": 7, "color": INK, "line": {"width": 1.5}},
        cliponaxis=False,
        name="failed",
        **LEFT,
    )


def _points(story: SearchStory, shown: Sequence[Evaluation]) -> dict[str, Any]:
    return {
        "x": rounded([e.cost for e in shown]),
        "y": rounded([e.value for e in shown]),
        "text": [_describe(story, e) for e in shown],
        "mode": "markers",
        **LEFT,
    }


def _title(story: SearchStory, answer: RaceRecommendation) -> str:
    """What was tried, what came of it, and how sure that is."""
    tried = f"{answer.tried} configurations in {answer.trials} trials"
    if answer.arm is None:
        return f"A search: {tried}<br><sup>{wrapped(answer.reason, _TITLE_WIDTH)}</sup>"
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
    return f"{head}<br><sup>{wrapped('; '.join(words), _TITLE_WIDTH)}</sup>"


def _describe(story: SearchStory, evaluation: Evaluation) -> str:
    """Shown where the mouse is held over an evaluation."""
    value = f"{evaluation.value:.5g}" if math.isfinite(evaluation.value) else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    level = f", {_level_name(story, evaluation.fidelity)}" if story.has_fidelity else ""
    return (
        f"trial {evaluation.trial}: {value}{purpose}<br>arm {evaluation.arm}{level}<br>"
        f"{params_text(story.race.arms.params(evaluation.arm))}"
    )


def _level_name(story: SearchStory, fidelity: int) -> str:
    """The fidelity at one of its levels, as the legend calls it."""
    if not story.has_fidelity:
        return "the search's evaluations"
    name, level = story.race.fidelity.name, story.race.levels[fidelity]
    return f"{escape(name)} = {escape(value_text(level))}"
