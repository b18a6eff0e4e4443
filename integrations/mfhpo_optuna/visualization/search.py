"""The picture of a search and its certificate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mfhpo.certification.certificate import Certificate
from mfhpo.experiment import Answer
from mfhpo.racing.text import name_in_words
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization import style, words
from mfhpo_optuna.visualization.finalists import ROW_HEIGHT, draw_finalists
from mfhpo_optuna.visualization.replay import Evaluation, evaluations_of

_TOP = {"row": 1, "col": 1}
_TOP_HEIGHT, _GAP = 280, 76  # in pixels


def draw_search(known: StudyExperiment, answer: Answer) -> Any:
    """Draw the figure that `plot_race` returns for a search.

    On top, every evaluation over the cost. Below, the finalists of its certificate.
    """
    certificate, sign = answer.certificate, known.sign
    rows = 0 if certificate is None else ROW_HEIGHT * len(certificate.candidates)
    panels = _TOP_HEIGHT + bool(rows) * (_GAP + rows)
    heights = [_TOP_HEIGHT, rows][: 1 + bool(rows)]
    figure = style.new_figure(
        rows=len(heights), cols=1, row_heights=heights, vertical_spacing=_GAP / panels
    )
    evaluations = evaluations_of(known)
    cost = evaluations[-1].end if evaluations else 0.0
    valued = [e for e in evaluations if e.has_value]
    best = _best_at_target(known, valued)
    own = [e for e in valued if e.arm == answer.arm]
    reach = words.span([e.value for e in (*own, *best)], [e.value for e in valued], sign)
    _draw_others(figure, known, [e for e in valued if e.arm != answer.arm])
    if best:
        level = words.level_text(known, best[-1].fidelity)
        name = style.literal(", ".join(filter(None, ("luckiest value so far", level))))
        line = {"color": style.QUIET, "width": 1.8, "shape": "hv"}
        steps = [*best, replace(best[-1], end=cost)]
        _draw(figure, known, steps, mode="lines", line=line, name=name)
    _draw_answer(figure, known, own, "certified" if answer.certified else "recommended")
    if failed := [e for e in evaluations if not e.has_value]:  # at the bad edge of the axis
        marker = {"symbol": "x-thin", "size": 7, "line": {"color": style.QUIET, "width": 1.5}}
        edge = [reach[0 if sign > 0.0 else 1]] * len(failed)
        _draw(figure, known, failed, y=edge, marker=marker, cliponaxis=False, name="failed")
    if again := [e for e in evaluations if e.is_replicate]:
        style.rule(figure, again[0].begin)
    style.head(figure, "What the search saw" + (", then new evaluations" * bool(rows)))
    if certificate is not None:
        draw_finalists(figure, certificate.to_dict(), sign, 2)
    style.lay_out(figure, _title(known, answer), panels=panels, legend_lines=3)
    unit = " in seconds" if known.kind.in_seconds else ""
    figure.update_xaxes(title_text=f"cost paid{unit}", range=[0.0, 1.02 * cost], nticks=7, **_TOP)
    figure.update_yaxes(title_text=f"value ({words.better(sign)})", range=list(reach), **_TOP)
    figure.update_yaxes(zeroline=False)
    return figure


def _best_at_target(known: StudyExperiment, valued: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the search's evaluations at the target that beat all before them."""
    best: list[Evaluation] = []
    target = known.experiment.runner.n_levels - 1
    for e in valued:
        beats = not best or known.sign * (e.value - best[-1].value) > 0.0
        if beats and e.fidelity == target and not e.is_replicate:
            best.append(e)
    return best


def _draw_others(figure: Any, known: StudyExperiment, others: Sequence[Evaluation]) -> None:
    n_levels = known.experiment.runner.n_levels
    for level in range(n_levels):
        size, opacity = (7, 1.0) if level == n_levels - 1 else (5, 0.7)
        marker = {"size": size, "opacity": opacity, "color": style.level_colour(level, n_levels)}
        name = style.literal(words.level_text(known, level) or "evaluated")
        shown = [e for e in others if e.fidelity == level and not e.is_replicate]
        _draw(figure, known, shown, marker=marker, name=name)
    if again := [e for e in others if e.is_replicate]:
        marker = {"symbol": "diamond-open", "size": 7, "color": style.level_colour(0, 1)}
        _draw(figure, known, again, marker=marker, name="evaluated again")


def _draw_answer(
    figure: Any, known: StudyExperiment, own: Sequence[Evaluation], state: str
) -> None:
    look: dict[str, Any] = {"line": {"color": style.WINNER, "width": 2.5}, "legendgroup": "answer"}
    # Replicates are no ladder: a line from one to the next would say that one leads to the other.
    for again, symbol, mode in ((True, "diamond", "markers"), (False, "circle", "lines+markers")):
        if shown := [e for e in own if e.is_replicate == again]:
            marker = {"symbol": symbol, "size": 9, "color": style.WINNER}
            is_named = not again or len(shown) == len(own)
            name = f"{name_in_words(known.values_of(shown[0].arm).params, shown[0].arm)}, {state}"
            named = {"name": name, "showlegend": is_named}
            _draw(figure, known, shown, mode=mode, marker=marker, **named, **look)


def _draw(figure: Any, known: StudyExperiment, shown: Sequence[Evaluation], **look: Any) -> None:
    points: dict[str, Any] = {
        "x": style.rounded([e.end for e in shown]),
        "y": style.rounded([e.value for e in shown]),
        "text": [_text(known, e) for e in shown],
    }
    style.draw(figure, **points | look | _TOP)


def _text(known: StudyExperiment, evaluation: Evaluation) -> str:
    value = f"{evaluation.value:.5g}" if evaluation.has_value else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    level = words.level_text(known, evaluation.fidelity)
    lines = [f"trial {evaluation.trial}: {value}{purpose}"]
    lines += [level] if level else []
    return style.hover([*lines, *words.params_lines(known.values_of(evaluation.arm).params)])


def _title(known: StudyExperiment, answer: Answer) -> tuple[str, ...]:
    luck = "" if answer.certificate is None else _luck(answer.certificate)
    tried = f"{answer.tried:,} configurations, {answer.at_target:,} at the target"
    headline = "A search without an answer yet" if answer.arm is None else "The answer"
    return words.answer_title(known, answer, headline, luck, tried)


def _luck(certificate: Certificate) -> str:
    """Return how far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    words = f"The search's best, {result.name}, had shown {result.promise:.4g}"
    if not result.evaluations:
        return f"{words}; it was not evaluated again"
    amount = f"{abs(result.gap):.2g} {'better' if result.gap >= 0.0 else 'worse'}"
    return f"{words}, {amount} than its new mean"
