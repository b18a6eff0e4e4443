"""What the pictures of races share: colours, lines of several pieces, words, and plotly itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

__all__ = [
    "INK",
    "WINNER",
    "Line",
    "faded",
    "import_plotly",
    "level_colour",
    "params_text",
    "value_text",
]

# Light to dark, so that the order of the fidelities survives a grey print and colour blindness;
# the accents differ from all of them in hue and are also told by their shape.
_LEVEL_COLOURS = ("#8fd3c1", "#4db8c4", "#2a8fbd", "#2561a8", "#14307d")
WINNER = "rgb(213, 94, 0)"
INK = "#333333"


@dataclass
class Line:
    """Coordinates of several lines in one trace, with a gap after each."""

    x: list[float | None] = field(default_factory=list)
    y: list[float | None] = field(default_factory=list)
    text: list[str | None] = field(default_factory=list)

    def add(self, points: Sequence[tuple[float, float]], text: Sequence[str] = ()) -> None:
        """Add a line, and what is shown where the mouse is held over its points."""
        if points:
            self.x += [*(float(f"{x:.6g}") for x, _ in points), None]
            self.y += [*(float(f"{y:.6g}") for _, y in points), None]
            self.text += [*text, None]


def level_colour(fidelity: int, n_levels: int) -> str:
    """From light for the cheapest fidelity to dark for the target."""
    steps = max(1, n_levels - 1)
    place = 1.0 - (n_levels - 1 - fidelity) / steps * (1.0 if steps > 2 else 0.75)
    position = place * (len(_LEVEL_COLOURS) - 1)
    index = min(int(position), len(_LEVEL_COLOURS) - 2)
    share = position - index
    mixed = [
        round((1.0 - share) * a + share * b)
        for a, b in zip(_rgb(_LEVEL_COLOURS[index]), _rgb(_LEVEL_COLOURS[index + 1]), strict=True)
    ]
    return f"rgb({mixed[0]}, {mixed[1]}, {mixed[2]})"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def faded(colour: str, opacity: float) -> str:
    """The colour, as one sees through it."""
    return colour.replace("rgb(", "rgba(").replace(")", f", {opacity})")


def params_text(params: Mapping[str, Any]) -> str:
    """One line for each parameter."""
    return "<br>".join(f"{escape(str(k))} = {escape(value_text(v))}" for k, v in params.items())


def value_text(value: object) -> str:
    """A parameter's value, a number with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def import_plotly() -> tuple[Any, Any]:
    """Plotly's graph objects, and what makes figures of several panels."""
    try:
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError(
            "plot_race needs plotly, which is not installed; pip install 'mfhpo[plot]'."
        ) from error
    return go, make_subplots
