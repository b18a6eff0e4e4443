"""A race as its user declares it by a policy's options, whichever library runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mfhpo.certification.choice import check_blocks, make_block_elimination
from mfhpo.experiment.races.settings import RaceSettings
from mfhpo.experiment.settings import Candidates, MakePolicy, SearchSettings, Settings
from mfhpo.knowledge.bias import Kind as BiasKind
from mfhpo.knowledge.candidates import CandidatesLike
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Policy, Problem
from mfhpo.racing.declaration import Declaration, as_fidelity
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    declared_shortlist,
    makes_shortlist,
)


@dataclass(frozen=True)
class DeclaredRace:
    """A race in which cheap levels may choose which configurations are compared.

    They do where nothing is declared about their bias, and the budget does not pay for comparing
    all configurations at the target.

    Parameters
    ----------
    declaration
        What is known about the fidelity, the bias and the noise.
    options
        Further options of the policy.
    make
        Makes the policy.
    replicate
        The parameter by which evaluations share replicates, or None.
    compares
        Name of the policy that compares finalists; "" for a few planned looks.
    """

    declaration: Declaration
    options: Mapping[str, Any]
    make: MakePolicy
    replicate: str | None
    compares: str

    @classmethod
    def of(
        cls,
        fidelity: str | Fidelity,
        options: Mapping[str, Any],
        given: Mapping[str, Any],
        make: MakePolicy,
        compares: str,
    ) -> DeclaredRace:
        """Take all options of a policy, and those that its user has `given`."""
        own = dict(options)
        replicate, named = own.pop("replicate", None), as_fidelity(fidelity)
        if replicate is not None:
            check_blocks(replicate, named.name, {"bias": named.bias, **given})
        kind: BiasKind = "order" if own.get("variant") == "order" else "max"
        declared = Declaration.of(named, own.pop("sigma"), own.pop("bias", None), kind)
        return cls(declared, own, make, replicate, "" if replicate is not None else compares)

    @property
    def fidelity(self) -> Fidelity:
        """The parameter that sets the level."""
        return self.declaration.fidelity

    def rehearse(self, levels: Sequence[Any], signs: Sequence[float]) -> str | None:
        """Try the options, so that wrong ones raise; return what is wrong with the budget."""
        self.declaration.rehearse(self._policy, self.options, levels, signs)
        return self.declaration.objection_to(self.options["budget"], levels)

    def settings(
        self,
        candidates: Candidates,
        levels: Sequence[Any],
        *,
        seed: int,
        sign: float,
        known: CandidatesLike = None,
        races: bool = False,
        **common: Any,
    ) -> Settings:
        """Return the settings over these levels.

        `known` are the candidates as a model sees them; None: as they are. With `races`, cheap
        levels choose no finalists.
        """
        n_arms = candidates if isinstance(candidates, int) else len(candidates)
        declaration, options = self.declaration, self.options
        common |= {"seed": seed, "sign": sign}
        if not races and makes_shortlist(self._whole, n_arms, self.fidelity.costs_of(levels)):
            known = candidates if known is None else known
            return SearchSettings(
                declared=declared_shortlist(declaration, options, known, levels, self.replicate),
                levels=levels,
                candidates=() if isinstance(candidates, int) else candidates,
                make_certifier=certifier_of(self.make, options, sign) if self.compares else None,
                **common,
            )
        return RaceSettings(
            candidates=candidates,
            fidelity=replace(self.fidelity, levels=tuple(levels), bias=None),
            declaration=declaration,
            options={**options, "seed": seed},
            make=self._policy,
            in_blocks=self.replicate is not None,
            **common,
        )

    def in_words(self, n_arms: int, levels: Sequence[Any]) -> str:
        """Say what cheap levels are used for; empty where users have declared that."""
        costs = self.fidelity.costs_of(levels)
        return cheap_levels_in_words(self._whole, n_arms, costs, self.compares)

    def _policy(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        if self.replicate is None:
            return self.make(problem, sign, options)
        return make_block_elimination(problem, options)

    @property
    def _whole(self) -> dict[str, Any]:
        return {**self.options, "bias": self.declaration.bias, "sigma": self.declaration.noise}
