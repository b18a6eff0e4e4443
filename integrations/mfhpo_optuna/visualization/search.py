"""The picture of a search and its certificate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mfhpo.certification.certificate import Certificate
from mfhpo.experiment import Answer
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization import style, words
from mfhpo_optuna.visualization.finalists import ROW_HEIGHT, draw_finalists
from mfhpo_optuna.visualization.replay import Evaluation, Replay

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000
_TOP = {"row": 1, "col": 1}
_TOP_HEIGHT, _GAP = 280, 76  # in pixels


def draw_search(known: StudyExperiment, answer: Answer) -> Any:
    """Draw the figure that `plot_race` returns for a search.

    On top, every evaluation over the cost. Below, the finalists of its certificate.
    """
    replay, certificate = Replay(known), answer.certificate
    rows = 0 if certificate is None else ROW_HEIGHT * len(certificate.candidates)
    panels = _TOP_HEIGHT + bool(rows) * (_GAP + rows)
    heights = [_TOP_HEIGHT, rows][: 1 + bool(rows)]
    figure = style.new_figure(
        rows=len(heights), cols=1, row_heights=heights, vertical_spacing=_GAP / panels
    )
    sign, best = known.sign, _best_at_target(replay)
    values = [e.value for e in replay.evaluations if e.has_value]
    own = [e.value for e in replay.evaluations if e.arm == answer.arm and e.has_value]
    reach = words.span([*own, *(e.value for e in best)], values, sign)
    _draw_others(figure, replay, answer.arm)
    if best:
        _draw_best(figure, replay, best)
    _draw_answer(figure, replay, answer)
    failed = [e for e in replay.evaluations if not e.has_value]
    if failed:  # they are shown at the bad edge of the axis
        marker = {"symbol": "x-thin", "size": 7, "line": {"color": style.QUIET, "width": 1.5}}
        points = _points(replay, failed) | {"y": [reach[0 if sign > 0.0 else 1]] * len(failed)}
        style.draw(figure, **points, marker=marker, cliponaxis=False, name="failed")
    again = [e for e in replay.evaluations if e.is_replicate]
    if again:
        style.rule(figure, again[0].begin)
    style.head(figure, "What the search saw" + (", then new evaluations" * bool(rows)))
    if certificate is not None:
        draw_finalists(figure, certificate.to_dict(), sign, 2)
    style.lay_out(figure, _title(known, answer), panels=panels, legend_lines=3)
    unit, end = " in seconds" if known.kind.in_seconds else "", 1.02 * replay.cost
    figure.update_xaxes(title_text=f"cost paid{unit}", range=[0.0, end], nticks=7, **_TOP)
    figure.update_yaxes(title_text=f"value ({words.better(sign)})", range=list(reach), **_TOP)
    figure.update_yaxes(zeroline=False)
    return figure


def _best_at_target(replay: Replay) -> list[Evaluation]:
    """Return the search's evaluations at the target that beat all before them."""
    best: list[Evaluation] = []
    target = replay.known.experiment.runner.n_levels - 1
    for e in (e for e in replay.evaluations if e.is_of_search and e.fidelity == target):
        if not best or replay.known.sign * (e.value - best[-1].value) > 0.0:
            best.append(e)
    return best


def _draw_others(figure: Any, replay: Replay, winner: int | None) -> None:
    others = [e for e in replay.evaluations if e.arm != winner and e.has_value]
    searched = [e for e in others if e.is_of_search]
    n_levels = replay.known.experiment.runner.n_levels
    are_few = len(searched) <= _MOST_DRAWN_ONE_BY_ONE
    add = figure.add_scatter if are_few else figure.add_scattergl
    for level in range(n_levels):
        points = _points(replay, [e for e in searched if e.fidelity == level])
        size, opacity = (7, 1.0) if level == n_levels - 1 else (5, 0.7)
        marker = {"size": size, "opacity": opacity, "color": style.level_colour(level, n_levels)}
        name = words.level_text(replay.known, level) or "evaluated"
        add(**points, mode="markers", marker=marker, name=style.literal(name))
    again = [e for e in others if e.is_replicate]
    if again:
        marker = {"symbol": "diamond-open", "size": 7, "color": style.level_colour(0, 1)}
        style.draw(figure, **_points(replay, again), marker=marker, name="evaluated again")


def _draw_best(figure: Any, replay: Replay, best: Sequence[Evaluation]) -> None:
    level = words.level_text(replay.known, best[-1].fidelity)
    points = _points(replay, [*best, replace(best[-1], end=replay.cost)])
    line = {"color": style.QUIET, "width": 1.8, "shape": "hv"}
    name = style.literal(", ".join(filter(None, ("luckiest value so far", level))))
    style.draw(figure, **points, mode="lines", line=line, name=name)


def _draw_answer(figure: Any, replay: Replay, answer: Answer) -> None:
    own = [e for e in replay.evaluations if e.arm == answer.arm and e.has_value]
    searched, again = [e for e in own if e.is_of_search], [e for e in own if e.is_replicate]
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    kinds = ((again, "diamond", "markers"), (searched, "circle", "lines+markers"))
    state = "certified" if answer.certified else "recommended"
    common = {"name": f"arm {answer.arm}, {state}", "legendgroup": "answer"}
    line = {"color": style.WINNER, "width": 2.5}
    for evaluations, symbol, mode in kinds:
        if evaluations:
            marker = {"symbol": symbol, "size": 9, "color": style.WINNER}
            look: dict[str, Any] = {"mode": mode, "showlegend": evaluations is (searched or again)}
            points = _points(replay, evaluations)
            style.draw(figure, **points, marker=marker, line=line, **common, **look)


def _points(replay: Replay, shown: Sequence[Evaluation]) -> dict[str, Any]:
    return {
        "x": style.rounded([evaluation.end for evaluation in shown]),
        "y": style.rounded([evaluation.value for evaluation in shown]),
        "text": [_text(replay, evaluation) for evaluation in shown],
        **_TOP,
    }


def _text(replay: Replay, evaluation: Evaluation) -> str:
    value = f"{evaluation.value:.5g}" if evaluation.has_value else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    level = words.level_text(replay.known, evaluation.fidelity)
    lines = [f"trial {evaluation.trial}: {value}{purpose}"]
    lines.append(", ".join(filter(None, (f"arm {evaluation.arm}", level))))
    return style.hover([*lines, *words.params_lines(replay.known.values_of(evaluation.arm).params)])


def _title(known: StudyExperiment, answer: Answer) -> tuple[str, ...]:
    luck = "" if answer.certificate is None else _luck(answer.certificate)
    tried = f"{answer.tried:,} configurations, {answer.at_target:,} at the target"
    headline = "A search without an answer yet"
    if answer.arm is not None:
        headline = f"Arm {answer.arm}"
    return words.answer_title(known, answer, headline, luck, tried)


def _luck(certificate: Certificate) -> str:
    """Return how far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    words = f"The search's best, {result.name}, had shown {result.promise:.4g}"
    if not result.evaluations:
        return f"{words}; it was not evaluated again"
    amount = f"{abs(result.gap):.2g} {'better' if result.gap >= 0.0 else 'worse'}"
    return f"{words}, {amount} than its new mean"
