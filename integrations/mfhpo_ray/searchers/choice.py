"""`MFSearch`: the policy that suits the problem, as a searcher of Ray Tune."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mfhpo import Policy, Problem
from mfhpo.certification.choice import (
    LOSSES_ARE_MAXIMISED,
    PolicyChoice,
    check_parts,
    make_best_policy,
    recommend_policy,
)
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import runs
from mfhpo_ray.searchers.arms import ArmsLike
from mfhpo_ray.searchers.fidelity_search import DeclaredSearch
from mfhpo_ray.searchers.options import MFSearchOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["MFSearch"]

_logger = logging.getLogger("mfhpo_ray")


@runs(MFTopTwo, MFSearchOptions, aim="best arm", epsilon=None, measure=None, seed_key="seed")
class MFSearch(DeclaredSearch):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. Which one is chosen depends on the
    aim, the number of arms and levels, and what is declared; it is made known in one line of the
    log "mfhpo_ray", and `choice` tells which and why.

    What it guarantees: what the chosen policy does. With ``aim="best arm"`` that is what
    `IISESearch` describes. With the other aims nothing is certified, and the run ends when the
    budget is spent.

    Parameters
    ----------
    fidelity, arms
        See `IISESearch`.
    **options
        See `mfhpo.racing.options.ChoiceOptions` and
        `mfhpo_ray.searchers.options.FidelitySearchOptions`. Without `measure`, the winner for
        "best arm" gets 10 evaluations.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As `IISESearch` does, and for an option that has no part in the aim.

    Examples
    --------
    >>> from ray import tune
    >>> from mfhpo_ray import MFSearch
    >>> space = {"x": tune.uniform(-1, 1), "epochs": tune.randint(1, 28)}
    >>> search = MFSearch("epochs", arms=8, metric="loss", mode="min", space=space, seed=0)
    >>> config = search.suggest("trial_0")
    >>> search.choice.policy.__name__
    'MFTopTwo'
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[MFSearchOptions]
    ) -> None:
        check_parts(options)
        self._choice: PolicyChoice | None = None
        super().__init__(fidelity, arms, options)

    @property
    def choice(self) -> PolicyChoice:
        """Which policy was chosen, and why; ValueError before the first suggestion."""
        if self._choice is None:
            raise ValueError(
                "no policy is chosen yet: it is, with the number of arms and levels, in the first "
                "suggestion."
            )
        return self._choice

    def _make_policy(self, n_arms: int, sign: float) -> Policy:
        aim = self._options["aim"]
        choice = recommend_policy(self._declaration.problem(n_arms, self._levels, sign), aim)
        if self._choice is None:
            _logger.info("%s is chosen: %s.", choice.policy.__name__, choice.reason.rstrip("."))
            if aim == "reward per pull" and sign < 0.0:
                warnings.warn(LOSSES_ARE_MAXIMISED.format(self._metric), stacklevel=4)
        self._choice = choice
        return super()._make_policy(n_arms, sign)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        return make_best_policy(problem, sign, options)
