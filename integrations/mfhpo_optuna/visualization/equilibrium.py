"""The picture of a game: what players get, and where none of them wants to deviate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import optuna

from mfhpo.games import GamePolicy
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.visualization.games.heat_maps import draw_heat_maps
from mfhpo_optuna.visualization.games.slices import draw_slices
from mfhpo_optuna.visualization.games.story import NashStory
from mfhpo_optuna.visualization.style import require_plotly

if TYPE_CHECKING:
    import plotly.graph_objects as go


def plot_equilibrium(study: optuna.Study, *, sampler: NashSampler | None = None) -> go.Figure:
    """Plot a game as it is believed to be, and the profile that is recommended.

    Of two players with one parameter each: a map of the largest gain that a player may have by
    deviating alone, by the means of the model at the target fidelity; lighter is better. On it,
    each player's best response to the other, which cross where nobody wants to deviate, the
    profiles that were evaluated, in the colour of their level, and the recommended one, the star.
    Below, maps of each player's objective.

    Of all other games: slices through the recommended profile. For each parameter, what its owner
    would gain by moving it alone, with an interval by the likeliest model. In an equilibrium no
    line rises above 0 by more than its interval tells.

    The figure and the errors are as for `plot_race`, of `NashSampler`.

    Parameters
    ----------
    study, sampler
        See `plot_race`.

    Examples
    --------
    >>> import optuna
    >>> from mfhpo_optuna import NashSampler, plot_equilibrium
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    ...     return (x - 0.6 * y) ** 2, (y - 0.5) ** 2
    >>> sampler = NashSampler({"row": ["x"], "column": ["y"]}, budget=6, seed=0)
    >>> study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    >>> study.optimize(objective)
    >>> plot_equilibrium(study).layout.xaxis.title.text
    'x (row)'
    """
    require_plotly("plot_equilibrium")
    story = NashStory(study, sampler, "plot_equilibrium", shows_way=False)
    draw = draw_heat_maps if _has_map(story.policy) else draw_slices
    return draw(story)


def _has_map(policy: GamePolicy) -> bool:
    """Whether there are two players with one parameter each."""
    return len(policy.actions) == 2 and len(policy.actions.parameters) == 2
