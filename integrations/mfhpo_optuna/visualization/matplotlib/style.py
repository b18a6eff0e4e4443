"""What the figures of matplotlib share: how they begin, their titles, legends and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from mfhpo._validation.missing import missing

# In inches: lines of a title and of a legend, what is around the panels, and between them.
_HEADLINE, _TITLE_LINE, _LEGEND = 0.42, 0.19, 0.6
_WIDTH, _LEFT, _RIGHT, _ABOVE, _BELOW = 9.0, 0.9, 0.15, 0.3, 0.5
_SMALL = 9  # points
_LEGEND_COLUMNS = 5


def import_pyplot(plot: str) -> ModuleType:
    """Matplotlib's pyplot; ImportError if it is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(missing(plot, "matplotlib", "matplotlib")) from error
    return pyplot


def new_figure(
    pyplot: ModuleType,
    title: Sequence[str],
    heights: Sequence[float],
    gap: float,
    **options: Any,
) -> tuple[Any, Any]:
    """A figure with its title, and its panels: rows of these heights, in inches, `gap` apart."""
    top = _HEADLINE + _TITLE_LINE * (len(title) - 1) + _ABOVE
    bottom = _BELOW + _LEGEND
    panels = sum(heights) + gap * (len(heights) - 1)
    total = top + panels + bottom
    figure, axes = pyplot.subplots(
        nrows=len(heights),
        figsize=(_WIDTH, total),
        gridspec_kw={
            "height_ratios": heights,
            "left": _LEFT / _WIDTH,
            "right": 1.0 - _RIGHT / _WIDTH,
            "top": 1.0 - top / total,
            "bottom": bottom / total,
            "hspace": gap * len(heights) / sum(heights),
            "wspace": 0.05,
        },
        squeeze=False,
        **options,
    )
    headline, *lines = map(plain, title)
    left = 0.12 / _WIDTH
    figure.text(left, 1.0 - 0.08 / total, headline, va="top", fontsize=14, fontweight="bold")
    for place, line in enumerate(lines):
        below = _HEADLINE + _TITLE_LINE * place
        figure.text(left, 1.0 - below / total, line, va="top", fontsize=_SMALL)
    return figure, axes


def head(axes: Any, text: str) -> None:
    """Write above a panel what it shows, and thin its frame."""
    axes.set_title(plain(text), loc="left", fontsize=_SMALL, fontweight="bold")
    axes.tick_params(labelsize=_SMALL - 1)
    axes.xaxis.label.set_size(_SMALL)
    axes.yaxis.label.set_size(_SMALL)
    axes.spines[["top", "right"]].set_visible(False)


def add_legend(figure: Any, axes: Iterable[Any]) -> None:
    """Explain the marks of some panels below all of them."""
    explained = [one.get_legend_handles_labels() for one in axes]
    handles = [handle for some, _ in explained for handle in some]
    labels = [label for _, some in explained for label in some]
    figure.legend(
        handles,
        labels,
        loc="lower left",
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize=_SMALL,
        columnspacing=1.2,
    )


def label_rows(axes: Any, labels: Sequence[str], has_winner: bool) -> None:
    """Give each row its label, the first one on top, that of the winner in bold."""
    axes.set_yticks(range(len(labels)), [plain(label) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if has_winner:
        axes.get_yticklabels()[0].set_fontweight("bold")


def reach(mean: float, interval: tuple[float, float]) -> tuple[float, float]:
    """How far an interval goes below and above the mean; 0 if it is not finite."""
    low, high = interval
    return (mean - low, high - mean) if math.isfinite(high - low) else (0.0, 0.0)


def plain(text: str) -> str:
    """The text as it is, no formula of TeX, and one that a legend shows."""
    shown = f" {text}" if text.startswith("_") else text  # legends leave out what begins with _
    return shown.replace("$", r"\$")
