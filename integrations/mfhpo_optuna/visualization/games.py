"""The pictures of a game: what deviating would gain, at the recommendation and on the way to it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from scipy.special import ndtri

from mfhpo.experiment import Answer
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.search import OneOf
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.games.sampler import NashStudy
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.visualization import style
from mfhpo_optuna.visualization.reading import told, told_again

if TYPE_CHECKING:
    import plotly.graph_objects as go

_FINE = 41  # values of a number's range
_HEIGHT, _GAP = 180, 80  # of a panel and between two, in pixels
_STAGES = 20  # recommendations that are computed anew


def plot_equilibrium(study: optuna.Study, *, sampler: StudySampler | None = None) -> go.Figure:
    """Plot what players would gain by deviating from the recommended profile.

    There is a slice through the profile for each parameter: what its owner would gain by moving it
    alone, with an interval by the likeliest model. In an equilibrium no line rises above 0 by more
    than its interval tells. The figure and the errors are as for `plot_race`, of `NashSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.
    """
    game, answer = _game_of(study, sampler, "plot_equilibrium")
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
        _draw_slice(figure, game, answer, player, parameter, panel)
        style.head(figure, f"gain of {players.names[player]}", panel=place + 1)
    if len(owned) % 2:
        figure.update_xaxes(visible=False, row=n_rows, col=2)
        figure.update_yaxes(visible=False, row=n_rows, col=2)
    style.lay_out(figure, _title(answer), panels=panels)
    return figure


def _draw_slice(
    figure: Any, game: NashStudy, answer: Answer, player: int, parameter: str, panel: dict[str, int]
) -> None:
    space, kind = game.trials.space, game.policy.actions.parameters[parameter]
    if isinstance(kind, OneOf):
        places = [float(index) for index in range(kind.n)]
    elif kind.places and len(kind.places) <= 2 * _FINE:
        places = list(kind.places)
    else:
        places = [float(place) for place in np.unique(kind.snapped(np.linspace(0.0, 1.0, _FINE)))]
    means, half_widths = _gains_by_moving(game, answer, player, parameter, places)
    is_choice = isinstance(space.distributions[parameter], CategoricalDistribution)

    def shown(value: Any) -> Any:
        """Return a choice as words, which are no markup."""
        return style.literal(str(value)) if is_choice else value

    values = [shown(space.value(parameter, place)) for place in places]
    colour = style.level_colour(1, 2)
    common = {"showlegend": panel == style.LEFT, **panel}
    if not is_choice:
        name = f"interval, probability {game.policy.probability:g}"
        group = {"name": name, "legendgroup": "interval"}
        ends = list(zip(values, means - half_widths, means + half_widths, strict=True))
        style.ribbon(figure, ends, colour, **group, **common)
    look: dict[str, Any] = {"mode": "lines", "line": {"color": colour, "width": 2}}
    if is_choice:
        bars = {"array": style.rounded(half_widths)}
        look = {"error_y": bars, "marker": {"color": colour}}
    named = {"name": "gain by moving this parameter alone", "legendgroup": "gain"}
    style.draw(figure, values, means, **named, **look, **common)
    edge = {"color": "white", "width": 1}
    star = {"symbol": "star", "size": 13, "color": style.WINNER, "line": edge}
    recommended = {"name": "recommended", "legendgroup": "answer"}
    place = [shown(answer.params[parameter])]
    style.draw(figure, place, [0.0], marker=star, **recommended, **common)
    is_log = bool(getattr(space.distributions[parameter], "log", False))
    scale = "category" if is_choice else "log" if is_log else "linear"
    figure.update_xaxes(title_text=style.literal(parameter), type=scale, nticks=5, **panel)
    figure.update_yaxes(zeroline=True, zerolinecolor=style.QUIET, zerolinewidth=1, **panel)


def _gains_by_moving(
    game: NashStudy, answer: Answer, player: int, parameter: str, places: list[float]
) -> tuple[FloatArray, FloatArray]:
    """Return what a player would gain by moving one parameter: means and half-widths by place."""
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


def plot_dissatisfaction(study: optuna.Study, *, sampler: StudySampler | None = None) -> go.Figure:
    """Plot what players would gain by deviating from the recommended profile, over the cost.

    Gains are in standard deviations of each player's objective. The thick line is the largest mean
    of all players, in a band from the largest lower end to the largest upper end of their
    intervals; thin lines are each player's mean. Some twenty recommendations are computed anew.
    The figure and the errors are as for `plot_race`, of `NashSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.
    """
    known, answer = _game_of(study, sampler, "plot_dissatisfaction")
    stages = _stages(known)
    costs = [stage.cost for stage in stages]
    gains = [stage.dissatisfaction or {} for stage in stages]
    lower = [max(gain.relative_interval[0] for gain in of.values()) for of in gains]
    ends = [(stage.cost, low, stage.at_most) for stage, low in zip(stages, lower, strict=True)]
    figure = style.new_figure()
    style.ribbon(figure, ends, style.WINNER, name="interval")
    for name, colour in zip(gains[-1], itertools.cycle(style.SEVERAL)):
        line = {"color": colour, "width": 1.3, "dash": "dot"}
        means = [of[name].relative for of in gains]
        style.draw(figure, costs, means, mode="lines", line=line, name=style.literal(name))
    largest = [stage.epsilon for stage in stages]
    texts = [style.hover(_title(stage)) for stage in stages]
    look = {"mode": "lines+markers", "line": {"color": style.WINNER, "width": 3}}
    style.draw(figure, costs, largest, text=texts, name="largest of all players", **look)
    style.head(figure, "What deviating alone would gain")
    style.lay_out(figure, _title(answer), panels=300)
    figure.update_xaxes(title_text="cost paid", rangemode="tozero")
    # Nobody is sure of anything at first: intervals of that time would hide what came of it.
    later = [stage.at_most for stage in stages[len(stages) // 2 :]]
    seen = filter(math.isfinite, [*(stage.epsilon for stage in stages), *later])
    unit = "standard deviations of the objective"
    top = 1.05 * max(seen, default=0.0) or 1.0
    figure.update_yaxes(title_text=unit, range=[0.0, top], zeroline=False)
    return figure


def _title(answer: Answer) -> tuple[str, ...]:
    return style.answer_title(answer, "claim", *(answer.dissatisfaction or ()))


def _game_of(
    study: optuna.Study, sampler: StudySampler | None, plot: str
) -> tuple[NashStudy, Answer]:
    """Return a study's game and its answer; ValueError if no trial has given values yet."""
    known, answer = told(study, sampler, GameKind, plot, "a NashSampler")
    assert isinstance(known, NashStudy)
    if not answer.params:
        raise ValueError(f"study {study.study_name!r} has nothing to show yet: {answer.reason}.")
    return known, answer


def _stages(known: NashStudy) -> list[Answer]:
    """Return what was recommended on the way; each takes as long as the answer does."""
    stages, last = [], len(known.experiment.history())
    shown = set(np.linspace(1, last, _STAGES).round().astype(int).tolist())
    n_told = 0
    for runner, learned in told_again(known):
        n_told += len(learned)
        if n_told not in shown:
            continue
        answer = runner.answer()
        if answer.params:
            stages.append(replace(answer, params=known.params_of(answer)))
    return stages
