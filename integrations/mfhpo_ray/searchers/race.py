"""A race as a user of a search declares it: its settings, and how its trials are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.utils import flatten_dict

from mfhpo.experiment.kinds.race import DeclaredRace, MakePolicy
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo_ray.experiment.metric import check_aim
from mfhpo_ray.experiment.space import Config
from mfhpo_ray.searchers.options import FidelitySearchOptions
from mfhpo_ray.searchers.trials import Source, Trials, own_and_host


class RaceTrials(Trials):
    """Trials of a race of given configurations over levels.

    Where cheaper levels have no declared bias, a budget may not pay for comparing all of them at
    the target. Then it is a search, in which the policy compares the finalists, or a few planned
    `looks` do. The policy takes its options as they are, unless a function is given to `make` it.
    Options are tried at once, so that wrong ones raise here.
    """

    def __init__(
        self,
        search: Any,
        fidelity: str | Fidelity,
        options: Mapping[str, Any],
        make: MakePolicy | None = None,
        looks: bool = False,
    ) -> None:
        own, host = own_and_host(search, options, FidelitySearchOptions)
        policy = search._policy_class
        given = {name: options[name] for name in options.keys() - host.keys()}
        make = make or (lambda problem, sign, options: policy(problem, **options))
        declared = DeclaredRace.of(fidelity, own, given, make, "" if looks else policy.__name__)
        paid, seeded = host.pop("prices"), host.pop("seed_key")
        replicate = declared.replicate
        super().__init__(declared.fidelity, prices=paid, replicate=replicate, seed_key=seeded)
        self.host, self._declared = host, declared
        check_aim(host["metric"], host["mode"])
        signs = {"max": (1.0,), "min": (-1.0,)}.get(host["mode"], (1.0, -1.0))
        self._objection = declared.rehearse(self.levels, signs)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the policy."""
        return self._declared.options

    def settings(self, source: Source, seed: int, sign: float) -> Settings:
        """Return the settings of the race, or of the search for its finalists."""
        assert isinstance(source, list)
        known = _described(source, self.keys[0])
        return self._declared.settings(source, self.levels, seed=seed, sign=sign, known=known)

    def objection(self) -> str | None:
        """Return what is wrong with the budget."""
        return self._objection

    def in_words(self, n_arms: int) -> str:
        """Return what cheap levels are used for; empty where users have declared that."""
        return self._declared.in_words(n_arms, self.levels)

    def digest(self) -> dict[str, Any]:
        """Return what must be the same after a restart."""
        costs = self._declared.fidelity.costs_of(self.levels)
        words = f"{costs} and {self._declared.declaration.bias}"
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
