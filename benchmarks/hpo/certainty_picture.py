"""A picture of what answers cost, and how far off they are."""

from collections.abc import Sequence
from typing import Any

from benchmarks.hpo.certainty_contenders import CONTENDERS
from benchmarks.hpo.certainty_summary import Row

_COLOURS = {
    "halving": "#000000",
    "shortlist": "#009e73",
    "once": "#999999",
    "SE": "#0072b2",
    "IISE": "#56b4e9",
    "IISE-gamma": "#cc79a7",
    "MF-LUCB": "#d55e00",
    "MF-GRAD": "#e69f00",
    "MFTopTwo": "#8b4513",
}
_SYMBOLS = {"none": "circle", "known": "star", "declared": "diamond", "estimated": "x"}


def picture(rows: Sequence[Row]) -> Any:
    """Cost against regret; a row of panels for each setting, a column for each kind of tasks."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    settings = list(dict.fromkeys(row["setting"] for row in rows))
    groups = list(dict.fromkeys(row["tasks"] for row in rows))
    figure = make_subplots(
        rows=len(settings),
        cols=len(groups),
        subplot_titles=[
            f"{group}: {setting}"
            if any((row["setting"], row["tasks"]) == (setting, group) for row in rows)
            else ""
            for setting in settings
            for group in groups
        ],
        vertical_spacing=0.25 / len(settings),
    )
    shown: set[str] = set()
    for row in rows:
        contender = CONTENDERS[row["contender"]]
        figure.add_trace(
            go.Scatter(
                x=[row["cost"]],
                y=[row["regret"]],
                error_x={
                    "array": [row["cost_quartiles"][1] - row["cost"]],
                    "arrayminus": [row["cost"] - row["cost_quartiles"][0]],
                    "thickness": 1,
                },
                name=row["contender"],
                legendgroup=row["contender"],
                showlegend=row["contender"] not in shown,
                mode="markers",
                marker={
                    "color": _COLOURS[contender.rule],
                    "symbol": _SYMBOLS[contender.source],
                    "size": 10,
                },
                hovertext=f"largest regret {row['regret_largest']:g}, {row['wrong']} wrong of "
                f"{row['certified']} certificates",
            ),
            row=settings.index(row["setting"]) + 1,
            col=groups.index(row["tasks"]) + 1,
        )
        shown.add(row["contender"])
    figure.update_xaxes(type="log", title_text="cost in full evaluations: median, quartiles")
    figure.update_yaxes(title_text="regret in %, mean", rangemode="tozero")
    figure.update_layout(
        template="plotly_white",
        height=420 * len(settings),
        title="The best of 200 random configurations: what answers cost, and how far off they are",
    )
    return figure
