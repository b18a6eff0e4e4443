"""The trials of a race as a user of a search declares it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.utils import flatten_dict

from mfhpo.certification.choice import (
    LOSSES_ARE_MAXIMISED,
    PolicyChoice,
    choose_blocks,
    recommend_policy,
)
from mfhpo.experiment import SearchSettings
from mfhpo.experiment.kinds.race import DeclaredRace, MakePolicy
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.regret import MFElimination
from mfhpo.search import BudgetedSearch
from mfhpo_ray.experiment.metric import check_aim
from mfhpo_ray.experiment.options import FidelitySearchOptions
from mfhpo_ray.experiment.space import Config
from mfhpo_ray.searchers.trials import Source, Trials, own_and_host


class RaceTrials(Trials):
    """Trials of a race of given configurations over levels: see `DeclaredRace.of`.

    If it `chooses`, the policy suits the problem, and planned looks compare finalists.
    """

    def __init__(
        self,
        search: Any,
        fidelity: str | Fidelity,
        options: Mapping[str, Any],
        make: MakePolicy | None = None,
        chooses: bool = False,
    ) -> None:
        own, host = own_and_host(search, options, FidelitySearchOptions)
        self._name, self._chooses = type(search).__name__, chooses
        given = {name: options[name] for name in options.keys() - host.keys()}
        check_aim(host["metric"], host["mode"])
        signs = {"max": (1.0,), "min": (-1.0,)}.get(host["mode"], (1.0, -1.0))
        policy = search._policy_class
        making = make or (lambda problem, sign, options: policy(problem, **options))
        compares = "" if chooses else policy.__name__
        self.race = DeclaredRace.of(fidelity, own, given, making, compares)
        self.race.rehearse(self.race.fidelity.levels or (), signs)
        paid, seeded = host.pop("prices"), host.pop("seed_key")
        replicate = self.race.replicate
        super().__init__(self.race.fidelity, prices=paid, replicate=replicate, seed_key=seeded)
        self.host = host

    def settings(self, source: Source, **common: Any) -> Settings:
        """Return the settings of the race, or of the search for its finalists."""
        assert isinstance(source, list)
        known = _described(source, self.keys[0])
        return self.race.settings(source, self.levels, known=known, **common)

    def objection(self) -> str | None:
        """Return what is wrong with the budget."""
        declared = self.race.declaration
        return declared.objection_to(self.race.options["budget"], self.levels)

    def announcement(self, settings: Any, metric: str) -> list[str]:
        """Return which policy is chosen, and what cheap levels are used for; warn of losses."""
        words = self.race.in_words(len(settings.candidates), self.levels)
        said = [f"{self._name}: {words}."] if words else []
        if isinstance(settings, SearchSettings):
            return said
        if settings.sign < 0.0 and isinstance(settings.runner().policy, MFElimination):
            warnings.warn(LOSSES_ARE_MAXIMISED.format(metric), stacklevel=5)
        if self._chooses:
            choice = self.choice(settings)
            said.append(f"{choice.policy.__name__} is chosen: {choice.reason.rstrip('.')}.")
        return said

    def choice(self, settings: Any) -> PolicyChoice:
        """Return the policy that suits the problem, and why."""
        n_arms = len(settings.candidates)
        if isinstance(settings, SearchSettings):
            return PolicyChoice(BudgetedSearch, self.race.in_words(n_arms, self.levels))
        if settings.in_blocks:
            return choose_blocks()
        problem = self.race.declaration.problem(n_arms, self.levels, settings.sign)
        return recommend_policy(problem, self.race.options["aim"])

    def digest(self) -> dict[str, Any]:
        """Return what must be the same after a restart."""
        words = f"{self.race.fidelity.costs_of(self.levels)} and {self.race.declaration.bias}"
        return {"levels": repr(list(self.levels)), "costs and bias": words}


def _described(arms: Sequence[Config], name: str) -> list[Config]:
    """Return what a model may learn from: the arms' scalars by key, or nothing but their numbers.

    The key of the numbers is unlike any other, as no arm has the fidelity's.
    """
    flat = [flatten_dict(arm) for arm in arms]
    values = [native(value) for arm in flat for value in arm.values()]
    if all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        return flat
    return [{f"arm/{name}": str(arm)} for arm in range(len(arms))]
