"""A race as a user of a search declares it: its settings, and how its trials are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ray.tune.utils import flatten_dict

from mfhpo import Policy, Problem
from mfhpo.certification.choice import check_blocks, make_block_elimination
from mfhpo.experiment import RaceSettings, SearchSettings
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.racing.declaration import Declaration, as_fidelity
from mfhpo.racing.options import with_defaults
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    declared_shortlist,
    makes_shortlist,
)
from mfhpo_ray.experiment.metric import check_aim
from mfhpo_ray.experiment.space import Config
from mfhpo_ray.searchers.options import FidelitySearchOptions
from mfhpo_ray.searchers.trials import Source, Trials

MakePolicy = Callable[[Problem, float, Mapping[str, Any]], Policy]


@dataclass(frozen=True)
class DeclaredRace:
    """A race of given configurations over levels, as its user declares it.

    Where cheaper levels have no declared bias, a budget may not pay for comparing all of them at
    the target. Then it is a search, in which the policy compares the finalists.

    Parameters
    ----------
    declaration
        What is known about levels, bias and noise.
    options
        Of the policy.
    make
        Makes the policy.
    replicate
        The key that evaluations of a block share, or None.
    compares
        Name of the policy that compares finalists; empty: a few planned looks do.
    """

    declaration: Declaration
    options: Mapping[str, Any]
    make: MakePolicy
    replicate: str | None
    compares: str

    @classmethod
    def of(
        cls,
        search: Any,
        fidelity: str | Fidelity,
        options: Mapping[str, Any],
        make: MakePolicy | None = None,
        looks: bool = False,
    ) -> tuple[DeclaredRace, Trials, dict[str, Any]]:
        """Return what a user declares of a search that `runs` a policy, its trials, and the rest.

        With `looks` finalists are compared by a few planned looks. The policy takes its options as
        they are, unless a function is given to `make` it. Options are tried at once, so that wrong
        ones raise here.
        """
        own = with_defaults(type(search), options)
        host = {name: own.pop(name) for name in FidelitySearchOptions.__annotations__}
        replicate = own.pop("replicate", None)
        if replicate is not None:
            declared = as_fidelity(fidelity)
            given = {name: options[name] for name in options.keys() - host.keys()}
            check_blocks(replicate, declared.name, {"bias": declared.bias} | given)
        kind: Kind = "order" if own.get("variant") == "order" else "max"
        declaration = Declaration.of(fidelity, own.pop("sigma"), own.pop("bias", None), kind)
        compares = "" if looks or replicate is not None else search._policy_class.__name__
        race = cls(declaration, own, make or _maker_of(search), replicate, compares)
        trials = Trials(
            race,
            declaration.fidelity,
            prices=host.pop("prices"),
            replicate=replicate,
            seed_key=host.pop("seed_key"),
        )
        check_aim(host["metric"], host["mode"])
        signs = (1.0, -1.0) if host["mode"] is None else (-1.0 if host["mode"] == "min" else 1.0,)
        declaration.rehearse(race.policy, own, trials.levels, signs)
        return race, trials, host

    def policy(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Make the policy of a race of all configurations."""
        if self.replicate is not None:
            return make_block_elimination(problem, options)
        return self.make(problem, sign, options)

    def settings(
        self, levels: tuple[Any, ...], source: Source, seed: int, sign: float
    ) -> RaceSettings | SearchSettings:
        """Return the settings of the race, or of the search for its finalists."""
        assert isinstance(source, list)
        declaration, options = self.declaration, self.options
        if makes_shortlist(self._whole, len(source), declaration.fidelity.costs_of(levels)):
            known = _described(source, declaration.fidelity.name)
            return SearchSettings(
                declared=declared_shortlist(declaration, options, known, levels, self.replicate),
                levels=levels,
                candidates=source,
                make_certifier=certifier_of(self.make, options, sign) if self.compares else None,
                seed=seed,
                sign=sign,
            )
        return RaceSettings(
            candidates=source,
            fidelity=replace(declaration.fidelity, levels=levels, bias=None),
            declaration=declaration,
            options={**options, "seed": seed},
            make=self.policy,
            in_blocks=self.replicate is not None,
            seed=seed,
            sign=sign,
        )

    def objection(self, levels: Sequence[Any]) -> str | None:
        """Return what is wrong with the budget (see `Plan.objection`)."""
        return self.declaration.objection_to(self.options["budget"], levels)

    def in_words(self, levels: Sequence[Any], n_arms: int) -> str:
        """Return what cheap levels are used for; empty where users have declared that."""
        costs = self.declaration.fidelity.costs_of(levels)
        return cheap_levels_in_words(self._whole, n_arms, costs, self.compares)

    def digest(self, levels: Sequence[Any]) -> dict[str, Any]:
        """Return what must be the same after a restart."""
        costs = self.declaration.fidelity.costs_of(levels)
        words = f"{costs} and {self.declaration.bias}"
        return {"levels": repr(list(levels)), "costs and bias": words}

    @property
    def _whole(self) -> dict[str, Any]:
        declaration = self.declaration
        return {**self.options, "bias": declaration.bias, "sigma": declaration.noise}


def _maker_of(search: Any) -> MakePolicy:
    policy = search._policy_class
    return lambda problem, sign, options: policy(problem, **options)


def _described(arms: Sequence[Config], name: str) -> list[Config]:
    """Return what a model may learn from: the arms' scalars by key, or nothing but their numbers.

    The key of the numbers is unlike any other, as no arm has the fidelity's.
    """
    flat = [flatten_dict(arm) for arm in arms]
    values = [native(value) for arm in flat for value in arm.values()]
    if all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        return flat
    return [{f"arm/{name}": str(arm)} for arm in range(len(arms))]
