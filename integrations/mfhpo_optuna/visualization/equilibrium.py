"""The picture of a game: what each player would gain by deviating from the recommended profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from scipy.special import ndtri

from mfhpo.experiment import Answer
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.search import OneOf
from mfhpo_optuna.games.study import NashStudy
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.visualization import style
from mfhpo_optuna.visualization.dissatisfaction import game_of, game_title

if TYPE_CHECKING:
    import plotly.graph_objects as go

_FINE = 41  # values of a number's range
_HEIGHT, _GAP = 180, 80  # of a panel and between two, in pixels


def plot_equilibrium(study: optuna.Study, *, sampler: StudySampler | None = None) -> go.Figure:
    """Plot what players would gain by deviating from the recommended profile.

    There is a slice through the profile for each parameter: what its owner would gain by moving it
    alone, with an interval by the likeliest model, at the target fidelity. The star is the
    recommended value. In an equilibrium no line rises above 0 by more than its interval tells.

    The figure and the errors are as for `plot_race`, of `NashSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.
    """
    game, answer = game_of(study, sampler, "plot_equilibrium")
    players, known = game.trials.kind.players, game.policy.actions.parameters
    owned = [
        (player, name)
        for player, names in enumerate(players.owned.values())
        for name in names
        if name in known
    ]
    n_rows = (len(owned) + 1) // 2
    panels = _HEIGHT * n_rows + _GAP * (n_rows - 1)
    figure = style.new_figure(
        rows=n_rows, cols=2, vertical_spacing=_GAP / panels, horizontal_spacing=0.16
    )
    for place, (player, parameter) in enumerate(owned):
        panel = {"row": place // 2 + 1, "col": place % 2 + 1}
        _draw(figure, game, answer, player, parameter, panel)
        style.head(figure, f"gain of {players.names[player]}", panel=place + 1)
    if len(owned) % 2:
        figure.update_xaxes(visible=False, row=n_rows, col=2)
        figure.update_yaxes(visible=False, row=n_rows, col=2)
    style.lay_out(figure, game_title(answer), panels=panels)
    return figure


def _draw(
    figure: Any,
    game: NashStudy,
    answer: Answer,
    player: int,
    parameter: str,
    panel: dict[str, int],
) -> None:
    places, space = _places(game, parameter), game.trials.space
    means, half_widths = _gains_by_moving(game, answer, player, parameter, places)
    is_choice = isinstance(space.distributions[parameter], CategoricalDistribution)

    def shown(value: Any) -> Any:
        """Return a choice as words, which are no markup."""
        return style.literal(str(value)) if is_choice else value

    values = [shown(space.value(parameter, place)) for place in places]
    colour = style.level_colour(1, 2)
    common = {"showlegend": panel == style.LEFT, **panel}
    if not is_choice:
        lower, upper = (means - half_widths).tolist(), (means + half_widths).tolist()
        name = f"interval, probability {game.policy.probability:g}"
        group = {"name": name, "legendgroup": "interval"}
        style.ribbon(figure, values, lower, upper, colour, **group, **common)
    look: dict[str, Any] = {"mode": "lines", "line": {"color": colour, "width": 2}}
    if is_choice:
        bars = {"array": style.rounded(half_widths.tolist())}
        look = {"error_y": bars, "marker": {"color": colour}}
    named = {"name": "gain by moving this parameter alone", "legendgroup": "gain"}
    style.draw(figure, values, style.rounded(means.tolist()), **named, **look, **common)
    edge = {"color": "white", "width": 1}
    star = {"symbol": "star", "size": 13, "color": style.WINNER, "line": edge}
    recommended = {"name": "recommended", "legendgroup": "answer"}
    place = [shown(answer.params[parameter])]
    style.draw(figure, place, [0.0], marker=star, **recommended, **common)
    is_log = bool(getattr(space.distributions[parameter], "log", False))
    kind = "category" if is_choice else "log" if is_log else "linear"
    # As few ticks as a phone has room for.
    ticks = {"dtick": 1} if is_log and values[-1] >= 10.0 * values[0] else {"nticks": 5}
    figure.update_xaxes(title_text=style.literal(parameter), type=kind, **ticks, **panel)
    figure.update_yaxes(zeroline=True, zerolinecolor=style.QUIET, zerolinewidth=1, **panel)


def _places(game: NashStudy, parameter: str) -> list[float]:
    kind = game.policy.actions.parameters[parameter]
    if isinstance(kind, OneOf):
        return [float(index) for index in range(kind.n)]
    if kind.places and len(kind.places) <= 2 * _FINE:
        return list(kind.places)
    even = np.linspace(0.0, 1.0, _FINE)
    return [float(place) for place in np.unique(kind.snapped(even))]


def _gains_by_moving(
    game: NashStudy, answer: Answer, player: int, parameter: str, places: list[float]
) -> tuple[FloatArray, FloatArray]:
    """Return what a player would gain by moving one parameter away from the recommended profile.

    Means and half-widths of the intervals at each of the parameter's places.
    """
    policy, space = game.policy, game.trials.space
    profile = {name: space.place(name, answer.params[name]) for name in policy.actions.parameters}
    moved = [{**profile, parameter: place} for place in places]
    features = policy.actions.space.features([profile, *moved])
    model = policy.models[player]
    means = model.mean(features, model.top)
    covariances = model.covariances(features, model.top)
    # The variance of a difference: what is uncertain of both alike does not count.
    variances = np.diag(covariances)[1:] + covariances[0, 0] - 2.0 * covariances[0, 1:]
    deviations = float(ndtri((1.0 + policy.probability) / 2.0))
    return means[1:] - means[0], deviations * np.sqrt(np.maximum(variances, 0.0))
