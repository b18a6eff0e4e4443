"""The pictures of a search and of a certificate, each with a row for every finalist."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from mfhpo.experiment import Answer
from mfhpo.racing.text import cut, name_in_words, params_in_words
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization import style
from mfhpo_optuna.visualization.reading import Evaluation, told_again

_TOP = {"row": 1, "col": 1}
_TOP_HEIGHT, _GAP, _ROW_HEIGHT = 280, 76, 36  # in pixels

Candidate: TypeAlias = Mapping[str, Any]


def draw_search(known: StudyExperiment, answer: Answer) -> Any:
    """Draw a search: on top every evaluation over the cost, below the finalists."""
    certificate, sign = answer.certificate, known.sign
    rows = 0 if certificate is None else _ROW_HEIGHT * len(certificate.candidates)
    panels = _TOP_HEIGHT + bool(rows) * (_GAP + rows)
    heights = [_TOP_HEIGHT, rows][: 1 + bool(rows)]
    figure = style.new_figure(
        rows=len(heights), cols=1, row_heights=heights, vertical_spacing=_GAP / panels
    )
    evaluations = [each for _, new in told_again(known) for each in new]
    cost = evaluations[-1].end if evaluations else 0.0
    valued = [e for e in evaluations if e.has_value]
    best: list[Evaluation] = []  # of the search at the target, those that beat all before them
    for e in valued:
        beats = not best or sign * (e.value - best[-1].value) > 0.0
        if beats and e.fidelity == known.experiment.runner.n_levels - 1 and not e.is_replicate:
            best.append(e)
    own = [e for e in valued if e.arm == answer.arm]
    reach = style.span([e.value for e in (*own, *best)], [e.value for e in valued], sign)
    _draw_others(figure, known, [e for e in valued if e.arm != answer.arm])
    if best:
        level = style.level_text(known, best[-1].fidelity)
        name = style.literal(", ".join(filter(None, ("luckiest value so far", level))))
        line = {"color": style.QUIET, "width": 1.8, "shape": "hv"}
        steps = [*best, replace(best[-1], end=cost)]
        _draw(figure, known, steps, mode="lines", line=line, name=name)
    if own:
        name = name_in_words(known.values_of(own[0].arm).params, own[0].arm)
        name += ", certified" if answer.certified else ", recommended"
        symbols = ["diamond" if e.is_replicate else "circle" for e in own]
        marker = {"symbol": symbols, "size": 9, "color": style.WINNER}
        _draw(figure, known, own, marker=marker, name=name)
    if failed := [e for e in evaluations if not e.has_value]:  # at the bad edge of the axis
        marker = {"symbol": "x-thin", "size": 7, "line": {"color": style.QUIET, "width": 1.5}}
        edge = [reach[0 if sign > 0.0 else 1]] * len(failed)
        _draw(figure, known, failed, y=edge, marker=marker, cliponaxis=False, name="failed")
    if again := [e for e in evaluations if e.is_replicate]:
        figure.add_vline(again[0].begin, **style.DOTTED, **_TOP)
    style.head(figure, "What the search saw" + (", then new evaluations" * bool(rows)))
    if certificate is not None:
        _draw_finalists(figure, certificate.to_dict(), sign, 2)
    style.lay_out(figure, style.answer_title(answer, "luckiest"), panels=panels, legend_lines=3)
    unit = " in seconds" if known.kind.in_seconds else ""
    figure.update_xaxes(title_text=f"cost paid{unit}", range=[0.0, 1.02 * cost], nticks=7, **_TOP)
    figure.update_yaxes(title_text=f"value ({style.better(sign)})", range=list(reach), **_TOP)
    figure.update_yaxes(zeroline=False)
    return figure


def _draw_others(figure: Any, known: StudyExperiment, others: Sequence[Evaluation]) -> None:
    n_levels = known.experiment.runner.n_levels
    for level in range(n_levels):
        size, opacity = (7, 1.0) if level == n_levels - 1 else (5, 0.7)
        marker = {"size": size, "opacity": opacity, "color": style.level_colour(level, n_levels)}
        name = style.literal(style.level_text(known, level) or "evaluated")
        shown = [e for e in others if e.fidelity == level and not e.is_replicate]
        _draw(figure, known, shown, marker=marker, name=name)
    if again := [e for e in others if e.is_replicate]:
        marker = {"symbol": "diamond-open", "size": 7, "color": style.level_colour(0, 1)}
        _draw(figure, known, again, marker=marker, name="evaluated again")


def _draw(figure: Any, known: StudyExperiment, shown: Sequence[Evaluation], **look: Any) -> None:
    texts = []
    for e in shown:
        value = f"{e.value:.5g}" if e.has_value else "failed"
        purpose = ", for the certificate" if e.is_replicate else ""
        level = style.level_text(known, e.fidelity)
        lines = [f"trial {e.trial}: {value}{purpose}", *([level] if level else [])]
        lines += style.params_lines(known.values_of(e.arm).params)
        texts.append(style.hover(lines))
    points: dict[str, Any] = {
        "x": [e.end for e in shown],
        "y": [e.value for e in shown],
        "text": texts,
    }
    style.draw(figure, **points | look | _TOP)


def draw_certificate(certificate: Mapping[str, Any], sign: float) -> Any:
    """Draw a certificate that is given as plain JSON values."""
    figure = style.new_figure(rows=1, cols=1)
    _draw_finalists(figure, certificate, sign, 1)
    style.lay_out(
        figure,
        _title_of_certificate(certificate),
        panels=_ROW_HEIGHT * len(certificate["candidates"]),
        legend_lines=0,
        left=14,
    )
    return figure


def _title_of_certificate(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    cost = f"{certificate['evaluations']:,} new evaluations"
    if certificate["winner"] is None:
        return style.title("No answer", style.sentence(certificate["reason"]), cost)
    best = certificate["candidates"][certificate["winner"]]
    state = "wins, certified" if certificate["certified"] else "leads, not certified"
    mean, interval = _worth(best)
    return style.title(
        f"{style.sentence(best['name'])} {state}",
        params_in_words(best["params"]),
        f"{mean:.4g} {style.between(interval)}",
        style.sentence((certificate.get("baseline") or {}).get("words", "")),
        "" if certificate["certified"] else style.sentence(certificate["reason"]),
        cost,
    )


def _draw_finalists(figure: Any, certificate: Mapping[str, Any], sign: float, row: int) -> None:
    """Draw a row for each finalist in a row of panels, the winner first, then from the best."""
    candidates, winner = certificate["candidates"], certificate["winner"]
    # A baseline may be new to the search, which has promised nothing of it then.
    unclaimed = {"claim": math.nan}
    candidates = [one if one["claim"] is not None else one | unclaimed for one in candidates]

    def key(place: int) -> tuple[bool, bool, float]:
        one = candidates[place]
        value = one["mean"] if one["evaluations"] else one["claim"]
        return place != winner, not one["evaluations"], -sign * value

    ordered = [candidates[place] for place in sorted(range(len(candidates)), key=key)]
    panel = {"row": row, "col": 1}
    texts = [style.hover(_lines(one)) for one in ordered]
    worth = [_worth(one) for one in ordered]
    known = [place for place, (mean, _) in enumerate(worth) if math.isfinite(mean)]
    values = [worth[place][0] for place in known]
    dot = {"color": style.level_colour(0, 1), "size": 8}
    bars = style.error_bars([worth[place] for place in known], 2.5) | {"color": dot["color"]}
    seen = [texts[place] for place in known]
    style.draw(figure, values, known, text=seen, error_x=bars, marker=dot, **panel)
    has_winner = winner is not None
    if has_winner and known[:1] == [0]:
        style.star(figure, (values[0], worth[0][1]), texts[0], panel)
    claims = [one["claim"] for one in ordered]
    circle = {"symbol": "circle-open", "size": 9, "color": style.QUIET, "line_width": 2}
    style.draw(figure, claims, range(len(ordered)), text=texts, marker=circle, **panel)
    style.head(figure, "The finalists (○ what the search had seen)", panel=row)
    ends = [end for _, interval in worth for end in interval]
    whole = style.span([*ends, *claims], (), sign)
    axis = f"value ({style.better(sign)})"
    figure.update_xaxes(title_text=axis, range=list(whole), zeroline=False, nticks=7, **panel)
    today = (certificate.get("baseline") or {}).get("name")
    labels = [_label(one, is_baseline=one["name"] == today) for one in ordered]
    style.label_rows(figure, labels, has_winner, row)


def _label(candidate: Candidate, *, is_baseline: bool) -> str:
    name, params = candidate["name"], params_in_words(candidate["params"])
    called = name if name == params or not params else f"{name}: {params}"
    return cut(f"{called} (baseline)" if is_baseline and name != "baseline" else called)


def _worth(candidate: Candidate) -> tuple[float, tuple[float, float]]:
    """Return mean and interval; NaN and infinite where plain JSON has None."""
    mean, (low, high) = candidate["mean"], candidate["interval"]
    if mean is None or low is None or high is None:
        return math.nan if mean is None else mean, (-math.inf, math.inf)
    return mean, (low, high)


def _lines(candidate: Candidate) -> list[str]:
    name, claim, new = candidate["name"], candidate["claim"], candidate["evaluations"]
    seen = f"the search had seen {claim:.5g}" if math.isfinite(claim) else "not of the search"
    lines = [f"{name}: {candidate['standing']}", seen]
    if new:
        mean, interval = _worth(candidate)
        times = style.counted(new, "new evaluation")
        lines.append(f"{times}: {mean:.5g} {style.between(interval)}")
    else:
        lines.append("not evaluated again yet")
    return [*lines, *style.params_lines(candidate["params"])]
