"""A race as a user of a search declares it: its settings, and how its trials are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ray.tune.utils import flatten_dict

from mfhpo import Policy, Problem
from mfhpo.certification.choice import check_blocks, make_block_elimination
from mfhpo.experiment import RaceSettings, SearchSettings
from mfhpo.experiment.kinds.race import MakePolicy
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.racing.declaration import Declaration, as_fidelity
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    declared_shortlist,
    makes_shortlist,
)
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
        replicate = own.pop("replicate", None)
        if replicate is not None:
            named = as_fidelity(fidelity)
            given = {name: options[name] for name in options.keys() - host.keys()}
            check_blocks(replicate, named.name, {"bias": named.bias} | given)
        kind: Kind = "order" if own.get("variant") == "order" else "max"
        declared = Declaration.of(fidelity, own.pop("sigma"), own.pop("bias", None), kind)
        paid, seeded = host.pop("prices"), host.pop("seed_key")
        super().__init__(declared.fidelity, prices=paid, replicate=replicate, seed_key=seeded)
        self.host, self.options = host, own
        policy = search._policy_class
        self._declaration = declared
        self._make = make or (lambda problem, sign, options: policy(problem, **options))
        self._compares = "" if looks or replicate is not None else policy.__name__
        check_aim(host["metric"], host["mode"])
        signs = {"max": (1.0,), "min": (-1.0,)}.get(host["mode"], (1.0, -1.0))
        declared.rehearse(self._policy, own, self.levels, signs)

    def _policy(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        if self.replicate is not None:
            return make_block_elimination(problem, options)
        return self._make(problem, sign, options)

    def settings(self, source: Source, seed: int, sign: float) -> RaceSettings | SearchSettings:
        """Return the settings of the race, or of the search for its finalists."""
        assert isinstance(source, list)
        declaration, options, levels = self._declaration, self.options, self.levels
        if makes_shortlist(self._whole, len(source), self._costs):
            known = _described(source, self.keys[0])
            return SearchSettings(
                declared=declared_shortlist(declaration, options, known, levels, self.replicate),
                levels=levels,
                candidates=source,
                make_certifier=certifier_of(self._make, options, sign) if self._compares else None,
                seed=seed,
                sign=sign,
            )
        return RaceSettings(
            candidates=source,
            fidelity=replace(declaration.fidelity, levels=levels, bias=None),
            declaration=declaration,
            options={**options, "seed": seed},
            make=self._policy,
            in_blocks=self.replicate is not None,
            seed=seed,
            sign=sign,
        )

    def objection(self) -> str | None:
        """Return what is wrong with the budget."""
        return self._declaration.objection_to(self.options["budget"], self.levels)

    def in_words(self, n_arms: int) -> str:
        """Return what cheap levels are used for; empty where users have declared that."""
        return cheap_levels_in_words(self._whole, n_arms, self._costs, self._compares)

    def digest(self) -> dict[str, Any]:
        """Return what must be the same after a restart."""
        words = f"{self._costs} and {self._declaration.bias}"
        return {"levels": repr(list(self.levels)), "costs and bias": words}

    @property
    def _costs(self) -> Sequence[float] | None:
        return self._declaration.fidelity.costs_of(self.levels)

    @property
    def _whole(self) -> dict[str, Any]:
        declaration = self._declaration
        return {**self.options, "bias": declaration.bias, "sigma": declaration.noise}


def _described(arms: Sequence[Config], name: str) -> list[Config]:
    """Return what a model may learn from: the arms' scalars by key, or nothing but their numbers.

    The key of the numbers is unlike any other, as no arm has the fidelity's.
    """
    flat = [flatten_dict(arm) for arm in arms]
    values = [native(value) for arm in flat for value in arm.values()]
    if all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        return flat
    return [{f"arm/{name}": str(arm)} for arm in range(len(arms))]
