"""Parts that the figures share: titles, legends, colours, words and ranges."""

import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from mfhpo._validation.missing import missing
from mfhpo.experiment import Answer
from mfhpo.racing.text import clean, cut
from mfhpo_optuna.study.study_experiment import StudyExperiment

# Colours that can be told apart on white and on black, in a grey print, and by the colour-blind.
# Each has a contrast of at least 3 to both backgrounds, so that a figure may change its template.

# From the cheapest level to the target: from green to violet, and from light to dark.
_LEVELS = ("#24a08c", "#1f8fb8", "#3b78c4", "#5a5fd0", "#7048c8")
WINNER = "#d55e00"
QUIET = "#808080"  # what is beside the point
DOTTED = {"line_color": QUIET, "line_width": 1, "line_dash": "dot"}
# Okabe and Ito's, darkened where they vanish on white: players of a game, arms beside the winner.
SEVERAL = ("#0077c0", "#00966c", "#c0609a", "#9a7d0a", "#8a6fd1")

Worth: TypeAlias = tuple[float, tuple[float, float]]  # a mean and its interval

# Browsers draw so many points one by one without delay; more go to the graphics card.
_MOST_DRAWN_ONE_BY_ONE = 1000

LEFT, RIGHT = {"row": 1, "col": 1}, {"row": 1, "col": 2}

# Of an answer in words, those in the title of its figure.
_ROWS = ["mean", "value", "gain", "baseline", "interval", "stopped", "because", "cost", "paid"]
_LINE = 60  # characters for which a report on a phone has room, below the headline of a figure

# In pixels: lines of a title and of a legend, and what is between them and the panels.
_HEADLINE, _TITLE_LINE, _LEGEND_LINE = 34, 16, 20
_ABOVE, _BELOW = 26, 50
_LABEL = 0.42  # of a row's height, from the middle of its marks to that of its label


def needed(caller: str, module: str, package: str, extra: str) -> Any:
    """Return a module, or raise an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(missing(caller, package, extra)) from error


def require_plotly(plot: str) -> None:
    """Raise ImportError if plotly is not installed, before a plot computes for long."""
    for module in ("plotly.graph_objects", "plotly.offline"):
        needed(plot, module, "plotly", "plot")


def new_figure(**panels: Any) -> Any:
    """Return a figure of several panels, by the options of plotly's `make_subplots`."""
    from plotly.subplots import make_subplots

    return make_subplots(**panels)


def lay_out(
    figure: Any, title: Sequence[str], *, panels: int, legend_lines: int = 2, left: int = 60
) -> None:
    """Give a figure its title, its legend below, and its height: `panels` pixels and these.

    `left` is the room for ticks and their title. The template is what the user has made plotly's
    default; plotly's own is replaced by a white one. Texts have the template's colours, so that it
    can be changed afterwards.
    """
    import plotly.io

    default = plotly.io.templates.default
    top = _HEADLINE + _TITLE_LINE * (len(title) - 1) + _ABOVE
    bottom = _BELOW + _LEGEND_LINE * legend_lines
    figure.update_traces(
        hovertemplate="%{text}<extra></extra>", selector=lambda trace: trace.text is not None
    )
    headline, *lines = map(literal, title)
    text = "<br>".join([f"<b style='font-size:17px'>{headline}</b>", *lines])
    corner = {"x": 0.0, "xref": "container", "yref": "container", "xanchor": "left"}
    above = {"y": 1.0, "yanchor": "top", "pad": {"t": 18, "l": 10}, "font": {"size": 12}}
    below = {"y": 0.0, "yanchor": "bottom", "orientation": "h", "font": {"size": 11}}
    figure.update_layout(
        template="plotly_white" if default == "plotly" else default,
        title=corner | above | {"text": text},
        legend=corner | below,
        hovermode="closest",
        hoverlabel={"align": "left"},
        margin={"t": top, "b": bottom, "l": left, "r": 14},
        height=top + panels + bottom,
    )
    figure.update_xaxes(tickfont={"size": 11}, title_font={"size": 12}, title_standoff=6)
    figure.update_yaxes(tickfont={"size": 11}, title_font={"size": 12}, title_standoff=8)


def head(figure: Any, text: str, panel: int = 1) -> None:
    """Write above a panel, by its number, what it shows."""
    axis = "" if panel == 1 else f"{panel}"
    place = {"x": 0.0, "xref": f"x{axis} domain", "xanchor": "left"}
    above = {"y": 1.0, "yref": f"y{axis} domain", "yanchor": "bottom", "font": {"size": 12}}
    figure.add_annotation(text=f"<b>{literal(text)}</b>", showarrow=False, **place, **above)


def label_rows(figure: Any, labels: Sequence[str], has_winner: bool, row: int) -> None:
    """Write above the marks of each row what it is about, the first one on top, in bold if it won.

    Beside the panels, at the ticks, the long names of configurations would take their room.
    """
    axis = "" if row == 1 else f"{row}"
    place = {"x": 0.0, "xref": f"x{axis} domain", "xanchor": "left", "yref": f"y{axis}"}
    for line, label in enumerate(labels):
        text = f"<b>{literal(label)}</b>" if has_winner and line == 0 else literal(label)
        look = {"showarrow": False, "font": {"size": 11}, "borderpad": 0}
        figure.add_annotation(text=text, y=line - _LABEL, **place, **look)
    ends = [len(labels) - 0.5, -2.0 * _LABEL]
    hidden = {"showticklabels": False, "showgrid": False, "zeroline": False}
    figure.update_yaxes(range=ends, **hidden, row=row)


def draw(figure: Any, x: Collection[Any], y: Collection[Any], **look: Any) -> None:
    """Add marks, or what `mode` says; the legend has those that are given a name."""
    common = {"mode": "markers", "showlegend": "name" in look}
    add = figure.add_scatter if len(x) <= _MOST_DRAWN_ONE_BY_ONE else figure.add_scattergl
    add(x=rounded(x), y=rounded(y), **common | look)


def ribbon(
    figure: Any, ends: Sequence[tuple[Any, float, float]], colour: str, **options: Any
) -> None:
    """Shade what lies between two curves: each place with both ends there."""
    x, lower, upper = zip(*ends, strict=True) if ends else ((), (), ())
    look = {"mode": "lines", "fill": "toself", "fillcolor": faded(colour, 0.18), "line_width": 0}
    y = [*upper, *reversed(lower)]
    draw(figure, [*x, *reversed(x)], y, hoverinfo="skip", **look | options)


def star(figure: Any, worth: Worth, text: str, panel: dict[str, int], **options: Any) -> None:
    """Mark what the winner is worth in the first row of a panel, and shade its interval."""
    value, interval = worth
    if math.isfinite(interval[1] - interval[0]):
        look = {"fillcolor": WINNER, "opacity": 0.16, "line_width": 0, "layer": "below"}
        figure.add_vrect(*interval, **look, **panel)
    bars = error_bars([worth], 5) | {"color": WINNER}
    marker = {"symbol": "star", "size": 16, "color": WINNER}
    draw(figure, [value], [0], text=[text], error_x=bars, marker=marker, **panel, **options)


def error_bars(worth: Sequence[Worth], thickness: float) -> Any:
    """Return bars from means to the ends of their intervals, none for those that are infinite."""
    ends = [
        (mean, low, high) if math.isfinite(high - low) else (mean, mean, mean)
        for mean, (low, high) in worth
    ]
    return {
        "array": rounded([high - mean for mean, _, high in ends]),
        "arrayminus": rounded([mean - low for mean, low, _ in ends]),
        "thickness": thickness,
        "width": 0,
    }


def literal(text: str) -> str:
    """Return the text for plotly, which then shows it as it is: nothing in it is markup."""
    return escape(clean(text), quote=False)  # plotly does not know &quot;, and would show it


def hover(lines: Sequence[str]) -> str:
    """Return what is shown where the mouse is held over a mark."""
    return "<br>".join(literal(line) for line in lines)


def rounded(values: Iterable[Any]) -> list[Any]:
    """Return numbers with six digits, for a smaller file, and other values as they are."""
    return [float(f"{value:.6g}") if isinstance(value, float) else value for value in values]


def level_colour(level: int, n_levels: int) -> str:
    """Return the colour of a level by its index: the target's is always the darkest."""
    share = level / (n_levels - 1) if n_levels > 1 else 1.0
    places = np.linspace(0.0, 1.0, len(_LEVELS))
    mixed = [np.interp(share, places, part) for part in zip(*map(_rgb, _LEVELS), strict=True)]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def faded(colour: str, opacity: float) -> str:
    """Return the colour as one that is seen through."""
    red, green, blue = _rgb(colour)
    return f"rgba({red}, {green}, {blue}, {opacity})"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def title(headline: str, *sentences: str) -> tuple[str, ...]:
    """Return a headline and the lines below it, each short enough for a phone."""
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, _LINE)]
    return headline, *lines


def value_text(value: object) -> str:
    """Return a parameter's value, a number with four digits, a text cut where it is long."""
    return f"{value:.4g}" if isinstance(value, float) else cut(str(value))


def level_text(known: StudyExperiment, level: int) -> str:
    """Return the fidelity at one of a study's levels; "" if there is none."""
    fidelity = known.kind.fidelity
    return "" if fidelity is None else f"{fidelity.name} = {value_text(known.trials.levels[level])}"


def params_lines(params: Mapping[str, Any]) -> list[str]:
    """Return one line for each parameter."""
    return [f"{clean(name)} = {value_text(value)}" for name, value in params.items()]


def between(interval: tuple[float, float]) -> str:
    """Return the interval in words; "" if it is not finite."""
    low, high = interval
    return f"in [{low:.4g}, {high:.4g}]" if math.isfinite(high - low) else ""


def sentence(text: str) -> str:
    """Return the text with a capital letter, unless it begins with a name such as ``epsilon=``."""
    first = text.split(maxsplit=1)[0] if text else ""
    return text[:1].upper() + text[1:] if first.isalpha() else text


def answer_title(answer: Answer, *more: str) -> tuple[str, ...]:
    """Return an answer's first line, and its rows about worth and cost and `more`, by labels."""
    first, *rows = str(answer).splitlines()
    headline, _, params = first.partition(": ")
    parts = [row[2:].partition("  ") for row in rows]
    chosen = [f"{label}: {text.strip()}" for label, _, text in parts if label in (*_ROWS, *more)]
    return title(headline, params, *chosen)


def counted(number: int, thing: str) -> str:
    """Return how many there are of a thing, in the plural unless it is one."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def better(sign: float) -> str:
    """Return which direction is better."""
    return "higher is better" if sign > 0.0 else "lower is better"


def span(needed: Iterable[float], wanted: Sequence[float], sign: float) -> tuple[float, float]:
    """Return the range of an axis: all `needed` values, the `wanted` ones without outliers.

    Outliers are those more than one and a half times the middle half's width beyond it, on the bad
    side; `sign` is 1 where higher is better.
    """
    shown = [value for value in needed if math.isfinite(value)]
    ordered = sorted(sign * value for value in wanted if math.isfinite(value))
    if ordered:
        lower, upper = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
        fence = lower - 1.5 * (upper - lower)
        shown += [sign * value for value in ordered if value >= fence]
    if not shown:
        return 0.0, 1.0
    low, high = min(shown), max(shown)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin
