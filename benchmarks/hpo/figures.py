"""Pictures of a comparison: regret along the way, and critical differences of mean ranks."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hpo.scores import Curves
from benchmarks.hpo.statistics import Ranking

_OURS = "#d55e00"
_OTHERS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31")  # Okabe and Ito
_REST = "#c4c4c4"
_DASHES = ("", "7 3", "2 3", "9 3 2 3")


class Style(NamedTuple):
    """How a method is drawn: the methods beyond the named ones share one."""

    colour: str
    width: float
    dash: str
    named: bool


class Panel(NamedTuple):
    """One set of curves."""

    title: str
    methods: Sequence[str]
    curves: Curves


def styles_of(methods: Sequence[str], ours: Sequence[str]) -> dict[str, Style]:
    """Styles by method.

    Parameters
    ----------
    methods
        The best one first: the first few of the others get a colour, and "random" gets black.
    ours
        Those of this project.
    """
    styles = {}
    dashes = iter(_DASHES)
    colours = iter(_OTHERS)
    for name in methods:
        if name in ours:
            styles[name] = Style(_OURS, 2.6, next(dashes, _DASHES[-1]), True)
        elif name == "random":
            styles[name] = Style("#222222", 1.6, "4 3", True)
        else:
            colour = next(colours, _REST)
            styles[name] = Style(colour, 1.6, "", colour != _REST)
    return styles


def curves_figure(panel: Panel, styles: Mapping[str, Style], unit: str) -> Any:
    """Mean normalised regret over the budget, with 95 % bands, as a Plotly figure."""
    import plotly.graph_objects as go

    figure = go.Figure()
    curves = panel.curves
    for index, name in enumerate(panel.methods):
        style = styles[name]
        low, high = curves.ends[index]
        figure.add_scatter(
            x=[*curves.budgets, *curves.budgets[::-1]],
            y=[*high, *low[::-1]],
            fill="toself",
            fillcolor=style.colour,
            opacity=0.12,
            line={"width": 0},
            hoverinfo="skip",
            legendgroup=name,
            showlegend=False,
        )
        figure.add_scatter(
            x=curves.budgets,
            y=curves.means[index],
            mode="lines",
            name=name,
            legendgroup=name,
            line={
                "color": style.colour,
                "width": style.width,
                "dash": style.dash.replace(" ", "px,") + "px" if style.dash else "solid",
            },
        )
    figure.update_xaxes(title=unit, type="log")
    figure.update_yaxes(title="regret, % of the median random configuration's", type="log")
    figure.update_layout(height=520, hovermode="x")
    return figure


def ranking_figure(methods: Sequence[str], ranking: Ranking) -> Any:
    """Critical-difference diagram as a Plotly figure: bars join methods that do not differ."""
    import plotly.graph_objects as go

    figure = go.Figure()
    order = ranking.order
    rows = math.ceil(len(order) / 2)
    depth = 0.25 * (len(ranking.cliques) + 1)
    first = math.floor(min(ranking.ranks))
    last = max(first + 1, math.ceil(max(ranking.ranks)))
    span = last - first
    margin = 0.04 * span
    for place, index in enumerate(order):
        rank = ranking.ranks[index]
        left = place < rows
        level = -depth - 0.4 * (place if left else len(order) - 1 - place)
        end = first - margin if left else last + margin
        figure.add_scatter(
            x=[rank, rank, end],
            y=[0, level, level],
            mode="lines",
            line={"color": "#444444", "width": 1},
            hoverinfo="skip",
        )
        figure.add_annotation(
            x=end,
            y=level,
            text=f"{escape(methods[index])} ({rank:.2f})",
            xanchor="right" if left else "left",
            showarrow=False,
        )
    for number, (start, end_place) in enumerate(ranking.cliques, 1):
        height = -0.25 * number
        figure.add_scatter(
            x=[
                ranking.ranks[order[start]] - margin / 4,
                ranking.ranks[order[end_place]] + margin / 4,
            ],
            y=[height, height],
            mode="lines",
            line={"color": "#111111", "width": 5},
            hoverinfo="skip",
        )
    figure.update_xaxes(
        title="mean rank (1 is best)",
        side="top",
        range=[first - 0.6 * span - margin, last + 0.6 * span + margin],
        tickvals=list(range(first, last + 1)),
        showgrid=False,
        showline=True,
        linecolor="#444444",
        ticks="outside",
        zeroline=False,
    )
    figure.update_yaxes(visible=False, range=[-depth - 0.4 * rows, 0])
    figure.update_layout(
        showlegend=False, height=140 + 34 * rows + 20 * len(ranking.cliques), plot_bgcolor="white"
    )
    return figure


_WIDTH, _HEIGHT, _TOP, _LEFT, _GAP = 400, 270, 34, 56, 62
_LINE = 18


def overview(
    panels: Sequence[Panel],
    styles: Mapping[str, Style],
    caption: str,
    unit: str = "cost in full evaluations",
) -> str:
    """Curves of a few groups of tasks, two side by side, as an SVG file's text.

    Parameters
    ----------
    panels
        From left to right, and then below.
    styles
        By method, the best one first; those that are not named share a line of the legend.
    caption
        Said below the picture.
    unit
        Of the budgets, in words.
    """
    named = [name for name, style in styles.items() if style.named]
    legend = [(name, styles[name]) for name in named]
    if len(named) < len(styles):
        legend.append(("other optimisers", Style(_REST, 1.6, "", False)))
    columns = 3 if len(panels) > 1 else 1
    lines = math.ceil(len(legend) / columns)
    across = min(2, len(panels))
    row = _TOP + _HEIGHT + 56
    width = _LEFT + across * (_WIDTH + _GAP)
    below = row * math.ceil(len(panels) / across)
    height = below + _LINE * lines + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f"<title>{escape(caption)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        left, top = _LEFT + number % across * (_WIDTH + _GAP), _TOP + number // across * row
        parts += _panel(panel, styles, (left, top), unit)
    for number, (name, style) in enumerate(legend):
        x = _LEFT + (number // lines) * (width - _LEFT) // columns
        y = below + _LINE * (number % lines)
        parts.append(_path([(x, y - 4), (x + 26, y - 4)], style))
        weight = ' font-weight="bold"' if style.colour == _OURS else ""
        parts.append(f'<text x="{x + 33}" y="{y}"{weight}>{escape(name)}</text>')
    parts.append(f'<text x="{_LEFT}" y="{height - 12}" fill="#555555">{escape(caption)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    panel: Panel, styles: Mapping[str, Style], corner: tuple[float, float], unit: str
) -> list[str]:
    left, top = corner
    curves = panel.curves
    shown = curves.means[np.isfinite(curves.means) & (curves.means > 0)]
    low = math.log10(min(shown.min(initial=10.0), 50.0))
    high = math.log10(max(shown.max(initial=10.0), 100.0))
    first, last = np.log10(curves.budgets[[0, -1]])

    def across(budget: float) -> float:
        return left + _WIDTH * float((math.log10(budget) - first) / (last - first))

    def down(percent: float) -> float:
        share = (high - math.log10(min(max(percent, 10**low), 10**high))) / (high - low)
        return top + _HEIGHT * share

    parts = [
        f'<text x="{left + _WIDTH / 2:.0f}" y="{top - 14}" text-anchor="middle" font-size="14" '
        f'font-weight="bold">{escape(panel.title)}</text>'
    ]
    for budget in (1, 2, 5, 10, 20, 50, 100):
        if curves.budgets[0] <= budget <= curves.budgets[-1] * 1.001:
            x = across(budget)
            parts.append(_rule(x, top, x, top + _HEIGHT))
            parts.append(
                f'<text x="{x:.1f}" y="{top + _HEIGHT + 16}" text-anchor="middle">{budget}</text>'
            )
    for percent in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200):
        if 10**low <= percent <= 10**high * 1.001:
            y = down(percent)
            parts.append(_rule(left, y, left + _WIDTH, y))
            parts.append(
                f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent:g} %</text>'
            )
    parts.append(
        f'<text x="{left + _WIDTH / 2:.0f}" y="{top + _HEIGHT + 33}" text-anchor="middle" '
        f'fill="#555555">{escape(unit)}</text>'
    )
    # Bands of more than ours and the best of the others would hide one another.
    best_other = next((name for name in styles if styles[name].colour in _OTHERS), None)
    banded = {best_other, *(name for name in styles if styles[name].colour == _OURS)}
    # Ours last, so that they are drawn over the others.
    for name in sorted(panel.methods, key=lambda name: styles[name].width):
        index = list(panel.methods).index(name)
        style = styles[name]
        points = [
            (across(budget), down(percent))
            for budget, percent in zip(curves.budgets, curves.means[index], strict=True)
        ]
        if name in banded:
            low_end, high_end = curves.ends[index]
            band = [(across(x), down(y)) for x, y in zip(curves.budgets, high_end, strict=True)]
            band += [
                (across(x), down(y))
                for x, y in zip(curves.budgets[::-1], low_end[::-1], strict=True)
            ]
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in band)
            parts.append(f'<polygon points="{corners}" fill="{style.colour}" opacity="0.1"/>')
        parts.append(_path(points, style))
    return parts


def _path(points: Sequence[tuple[float, float]], style: Style) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    return (
        f'<polyline points="{corners}" fill="none" stroke="{style.colour}" '
        f'stroke-width="{style.width:g}"{dash}/>'
    )


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" '
        'stroke="#e4e4e4" stroke-width="1"/>'
    )
