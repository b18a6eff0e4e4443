"""What the figures share: how they begin and are laid out, colours, lines of pieces, and words."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import optuna
from optuna.samplers import BaseSampler

# Light to dark, so that the order of the fidelities survives a grey print and colour blindness;
# the accents differ from all of them in hue and are also told by their shape.
_LEVEL_COLOURS = ("#8fd3c1", "#4db8c4", "#2a8fbd", "#2561a8", "#14307d")
WINNER = "rgb(213, 94, 0)"
INK = "#333333"

LEFT, RIGHT = {"row": 1, "col": 1}, {"row": 1, "col": 2}


@dataclass
class Line:
    """Coordinates of several lines in one trace, with a gap after each."""

    x: list[float | None] = field(default_factory=list)
    y: list[float | None] = field(default_factory=list)
    text: list[str | None] = field(default_factory=list)

    def add(self, points: Sequence[tuple[float, float]], text: Sequence[str] = ()) -> None:
        """Add a line, and what is shown where the mouse is held over its points."""
        if points:
            self.x += [*rounded([x for x, _ in points]), None]
            self.y += [*rounded([y for _, y in points]), None]
            self.text += [*text, None]


def chosen_sampler(
    study: optuna.Study, sampler: BaseSampler | None, kind: type[Any], plot: str, needed: str
) -> Any:
    """The sampler that a plot was given, or the study's.

    Raises TypeError for one of another kind, and ImportError if plotly is not installed: some plots
    compute for long before they draw.
    """
    try:
        import plotly.graph_objects  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{plot} needs plotly, which is not installed; pip install 'mfhpo[plot]'."
        ) from error
    chosen = study.sampler if sampler is None else sampler
    if not isinstance(chosen, kind):
        raise TypeError(
            f"{plot} needs {needed}, but {'study.sampler' if sampler is None else 'sampler'} is a "
            f"{type(chosen).__name__}; pass sampler=, made with the arguments of the study's."
        )
    return chosen


def new_figure(**panels: Any) -> Any:
    """A figure of several panels, by the options of plotly's `make_subplots`."""
    from plotly.subplots import make_subplots

    return make_subplots(**panels)


def lay_out(
    figure: Any,
    title: str,
    *,
    height: int,
    legend_y: float = -0.13,
    top: int = 100,
    right: int = 30,
) -> None:
    """Give a figure its title, its legend below the panels, and what is shown under the mouse."""
    figure.update_traces(
        hovertemplate="%{text}<extra></extra>", selector=lambda trace: trace.text is not None
    )
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "x": 0.01, "xanchor": "left"},
        legend={"orientation": "h", "x": 0.0, "y": legend_y, "yanchor": "top"},
        hovermode="closest",
        margin={"t": top, "r": right},
        height=height,
    )


def annotate(figure: Any, text: str, **place: Any) -> None:
    """Write into the figure, by default above the left panel."""
    above = {"y": 1.0, "yref": "y domain", "yanchor": "bottom"}
    font = {"color": INK, "size": 12}
    figure.add_annotation(text=text, showarrow=False, **({"font": font} | above | place))


def mark_interval(figure: Any, low: float, high: float) -> None:
    """Shade the winner's interval in all panels: whoever reaches into it is not told from it."""
    figure.add_hrect(y0=low, y1=high, fillcolor=WINNER, opacity=0.12, line_width=0, layer="below")


def list_arms(figure: Any, title: str, labels: list[str], **options: Any) -> None:
    """Give the right panel one place for each arm, in this order."""
    figure.update_xaxes(
        title=title,
        type="category",
        categoryorder="array",
        categoryarray=labels,
        tickangle=0,
        showgrid=False,
        **options,
        **RIGHT,
    )


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


def rounded(values: Sequence[float]) -> list[float]:
    """The values with six digits, for a smaller file."""
    return [float(f"{value:.6g}") for value in values]


def wrapped(text: str, width: int) -> str:
    """The text, safe in a figure, in lines of at most `width` characters."""
    return "<br>".join(escape(line) for line in textwrap.wrap(text, width))
