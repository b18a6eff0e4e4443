"""The picture of a search and its certificate."""

import math
from collections.abc import Iterable
from typing import Any

import optuna

from mfhpo.certification.certificate import Certificate
from mfhpo.racing.recommendation import params_in_words
from mfhpo_optuna.recommendations import SearchRecommendation
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.visualization.colours import QUIET, WINNER, level_colour
from mfhpo_optuna.visualization.finalists import ROW_HEIGHT, draw_finalists
from mfhpo_optuna.visualization.search_replay import Evaluation, SearchReplay
from mfhpo_optuna.visualization.style import (
    head,
    hover,
    lay_out,
    literal,
    new_figure,
    rounded,
    rule,
)
from mfhpo_optuna.visualization.words import (
    better,
    between,
    level_text,
    paid_text,
    params_lines,
    sentence,
    span,
    title,
    value_text,
)

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000
_TOP = {"row": 1, "col": 1}
_TOP_HEIGHT, _GAP = 280, 76  # in pixels


def draw_search(study: optuna.Study, sampler: FidelitySampler) -> Any:
    """Draw the figure that `plot_race` returns for a search; ValueError without anything to show.

    On top, every evaluation over the cost. Below, the finalists of its certificate.
    """
    answer = sampler.recommendation(study)
    assert isinstance(answer, SearchRecommendation)
    replay = SearchReplay(study, sampler)
    certificate = replay.search.certificate()
    rows = 0 if certificate is None else ROW_HEIGHT * len(certificate.candidates)
    panels = _TOP_HEIGHT + bool(rows) * (_GAP + rows)
    figure = new_figure(
        rows=1 + bool(rows),
        cols=1,
        row_heights=[_TOP_HEIGHT, rows][: 1 + bool(rows)],
        vertical_spacing=_GAP / panels,
    )
    sign = replay.race.sign
    values = [e.value for e in replay.evaluations if math.isfinite(e.value)]
    reach = span([e.value for e in replay.best_at_target()], values, sign)
    _draw_evaluations(figure, replay, answer)
    _draw_best(figure, replay)
    _draw_answer(figure, replay, answer)
    # A failure is shown at the bad edge of the axis.
    _draw_failures(figure, replay, reach[0 if sign > 0.0 else 1])
    cost_of_search = replay.cost_of_search()
    if cost_of_search is not None:
        rule(figure, cost_of_search)
    head(figure, "What the search saw" + (", then new evaluations" * bool(rows)))
    if certificate is not None:
        draw_finalists(figure, certificate.to_dict(), sign, 2)
    lay_out(figure, _title(replay, answer, certificate), panels=panels, legend_lines=3)
    unit = " in seconds" if replay.race.in_seconds else ""
    end = 1.02 * (replay.evaluations[-1].cost if replay.evaluations else 0.0)
    figure.update_xaxes(title_text=f"cost paid{unit}", range=[0.0, end], nticks=7, **_TOP)
    figure.update_yaxes(title_text=f"value ({better(sign)})", range=list(reach), **_TOP)
    figure.update_yaxes(zeroline=False)
    return figure


def _draw_evaluations(figure: Any, replay: SearchReplay, answer: SearchRecommendation) -> None:
    n_levels = len(replay.race.levels)
    searched = [
        [e for e in replay.of_search(level) if e.arm != answer.arm] for level in range(n_levels)
    ]
    are_few = sum(map(len, searched)) <= _MOST_DRAWN_ONE_BY_ONE
    add = figure.add_scatter if are_few else figure.add_scattergl
    for level, evaluations in enumerate(searched):
        is_target = level == n_levels - 1
        marker = {
            "size": 7 if is_target else 5,
            "opacity": 1.0 if is_target else 0.7,
            "color": level_colour(level, n_levels),
        }
        name = level_text(replay.race, level) if replay.race.owns_fidelity else "evaluated"
        add(**_points(replay, evaluations), marker=marker, name=literal(name))
    again = [e for e in replay.replicates() if e.arm != answer.arm]
    if again:
        marker = {"symbol": "diamond-open", "size": 7, "color": level_colour(0, 1)}
        figure.add_scatter(**_points(replay, again), marker=marker, name="evaluated again")


def _draw_best(figure: Any, replay: SearchReplay) -> None:
    best = replay.best_at_target()
    if not best:
        return
    points, race = _points(replay, best), replay.race
    level = f", {level_text(race, len(race.levels) - 1)}" if race.owns_fidelity else ""
    figure.add_scatter(
        x=[*points["x"], replay.evaluations[-1].cost],
        y=[*points["y"], points["y"][-1]],
        text=[*points["text"], points["text"][-1]],
        mode="lines",
        line={"color": QUIET, "width": 1.8, "shape": "hv"},
        name=literal(f"luckiest value so far{level}"),
        **_TOP,
    )


def _draw_answer(figure: Any, replay: SearchReplay, answer: SearchRecommendation) -> None:
    searched = replay.of_arm(answer.arm)
    again = [e for e in replay.replicates() if e.arm == answer.arm]
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    for evaluations, symbol, mode in (
        (again, "diamond", "markers"),
        (searched, "circle", "lines+markers"),
    ):
        if evaluations:
            figure.add_scatter(
                **_points(replay, evaluations) | {"mode": mode},
                marker={"symbol": symbol, "size": 9, "color": WINNER},
                line={"color": WINNER, "width": 2.5},
                legendgroup="answer",
                showlegend=evaluations is (searched or again),
                name=f"arm {answer.arm}, {'certified' if answer.certified else 'recommended'}",
            )


def _draw_failures(figure: Any, replay: SearchReplay, edge: float) -> None:
    failed = [e for e in replay.evaluations if not math.isfinite(e.value)]
    if failed:
        marker = {"symbol": "x-thin", "size": 7, "line": {"color": QUIET, "width": 1.5}}
        points = _points(replay, failed) | {"y": [edge] * len(failed)}
        figure.add_scatter(**points, marker=marker, cliponaxis=False, name="failed")


def _points(replay: SearchReplay, evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    shown = list(evaluations)
    return {
        "x": rounded([evaluation.cost for evaluation in shown]),
        "y": rounded([evaluation.value for evaluation in shown]),
        "text": [_text(replay, evaluation) for evaluation in shown],
        "mode": "markers",
        **_TOP,
    }


def _text(replay: SearchReplay, evaluation: Evaluation) -> str:
    value = f"{evaluation.value:.5g}" if math.isfinite(evaluation.value) else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    race = replay.race
    level = f", {level_text(race, evaluation.fidelity)}" if race.owns_fidelity else ""
    lines = [f"trial {evaluation.trial}: {value}{purpose}", f"arm {evaluation.arm}{level}"]
    return hover([*lines, *params_lines(replay.race.arms.params(evaluation.arm))])


def _title(
    replay: SearchReplay, answer: SearchRecommendation, certificate: Certificate | None
) -> tuple[str, ...]:
    paid = (
        f"{answer.tried:,} configurations, {answer.at_target:,} at the target; "
        f"{paid_text(answer.cost, replay.race.in_seconds, answer.trials, answer.failures)}"
    )
    if answer.arm is None:
        return title("A search without an answer yet", sentence(answer.reason), paid)
    state = "wins, certified" if answer.certified else "leads, not certified"
    at = f" at {replay.race.fidelity.name} = {value_text(answer.level)}"
    return title(
        f"Arm {answer.arm} {state}",
        params_in_words(answer.params),
        f"{answer.mean:.4g} {between(answer.interval)}".rstrip() + at * replay.race.owns_fidelity,
        "" if answer.certified else sentence(answer.reason),
        "" if certificate is None else _luck(certificate),
        paid,
    )


def _luck(certificate: Certificate) -> str:
    """Return how far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    words = f"The search's best, {result.name}, had shown {result.promise:.4g}"
    if not result.evaluations:
        return f"{words}; it was not evaluated again"
    amount = f"{abs(result.gap):.2g} {'better' if result.gap >= 0.0 else 'worse'}"
    return f"{words}, {amount} than its new mean"
