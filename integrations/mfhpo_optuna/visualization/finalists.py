"""The picture of a certificate: what was promised of each finalist, and what it is worth."""

import math
from collections.abc import Mapping
from typing import Any

from mfhpo.racing.text import params_in_words
from mfhpo_optuna.visualization import style, words

ROW_HEIGHT = 26  # in pixels

Candidate = Mapping[str, Any]


def draw_certificate(certificate: Mapping[str, Any], sign: float) -> Any:
    """Draw a certificate that is given as plain JSON values."""
    figure = style.new_figure(rows=1, cols=1)
    draw_finalists(figure, certificate, sign, 1)
    style.lay_out(figure, _title(certificate), panels=ROW_HEIGHT * len(certificate["candidates"]))
    return figure


def _title(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    cost = f"{certificate['evaluations']:,} new evaluations"
    if certificate["winner"] is None:
        return words.title("No answer", words.sentence(certificate["reason"]), cost)
    best = certificate["candidates"][certificate["winner"]]
    state = "wins, certified" if certificate["certified"] else "leads, not certified"
    mean, interval = _worth(best)
    return words.title(
        f"{words.sentence(best['name'])} {state}",
        params_in_words(best["params"]),
        f"{mean:.4g} {words.between(interval)}",
        words.sentence((certificate.get("baseline") or {}).get("words", "")),
        "" if certificate["certified"] else words.sentence(certificate["reason"]),
        cost,
    )


def draw_finalists(figure: Any, certificate: Mapping[str, Any], sign: float, row: int) -> None:
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
    luck = [(place, ordered[place]["claim"], worth[place][0]) for place in known]
    luck = [each for each in luck if math.isfinite(each[1])]
    lines = [end for _, claim, mean in luck for end in (claim, mean, None)]
    rows = [end for place, _, _ in luck for end in (place, place, None)]
    dotted = {"color": style.QUIET, "width": 1, "dash": "dot"}
    style.draw(figure, lines, rows, mode="lines", line=dotted, hoverinfo="skip", **panel)
    values = style.rounded([worth[place][0] for place in known])
    dot = {"color": style.level_colour(0, 1), "size": 8}
    bars = style.error_bars([worth[place] for place in known], 2.5) | {"color": dot["color"]}
    seen = [texts[place] for place in known]
    style.draw(figure, values, known, text=seen, error_x=bars, marker=dot, **panel)
    has_winner = winner is not None
    if has_winner and known[:1] == [0]:
        style.star(figure, values[0], worth[0][1], texts[0], panel)
    claims = style.rounded([one["claim"] for one in ordered])
    circle = {"symbol": "circle-open", "size": 9, "color": style.QUIET, "line_width": 2}
    style.draw(figure, claims, range(len(ordered)), text=texts, marker=circle, **panel)
    style.head(figure, "The finalists (○ what the search had seen)", panel=row)
    ends = [end for _, interval in worth for end in interval]
    whole = words.span([*ends, *claims], (), sign)
    axis = f"value ({words.better(sign)})"
    figure.update_xaxes(title_text=axis, range=list(whole), zeroline=False, nticks=7, **panel)
    today = (certificate.get("baseline") or {}).get("name")
    names = (one["name"] for one in ordered)
    labels = [f"{name} (baseline)" if name == today != "baseline" else name for name in names]
    style.label_rows(figure, labels, has_winner, panel)


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
        times = words.counted(new, "new evaluation")
        lines.append(f"{times}: {mean:.5g} {words.between(interval)}")
    else:
        lines.append("not evaluated again yet")
    return [*lines, *words.params_lines(candidate["params"])]
