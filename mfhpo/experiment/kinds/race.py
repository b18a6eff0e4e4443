"""A race as a kind of experiment: given configurations are compared until one is certified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mfhpo._validation import check_limit
from mfhpo.certification.choice import check_blocks, make_best_policy, make_block_elimination
from mfhpo.experiment.configurations import Candidates, Configurations, described
from mfhpo.experiment.kinds.blind import LateSettings
from mfhpo.experiment.kinds.race_runner import RaceRunner
from mfhpo.experiment.kinds.search import SearchSettings
from mfhpo.experiment.kinds.settings import Settings, numbered
from mfhpo.knowledge.bias import Kind as BiasKind
from mfhpo.knowledge.candidates import CandidatesLike
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Policy, Problem
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike, as_fidelity
from mfhpo.racing.options import EstimatedBias
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    declared_shortlist,
    makes_shortlist,
)

MakePolicy = Callable[[Problem, float, Mapping[str, Any]], Policy]

_ONE_LEVEL = Fidelity("level", levels=("full evaluation",), costs=(1.0,))
_REPLICATE = "number of the replicate"
_CERTIFY_SHARE = 0.5  # where a search sees one replicate alone


@dataclass(frozen=True, kw_only=True)
class RaceSettings(Settings):
    """A race among given configurations; `of` takes what users declare.

    Parameters
    ----------
    declared
        What its user declares.
    levels
        Values of the fidelity.
    candidates
        The configurations; equal ones are one arm. Or how many a host draws.
    n_arms
        How many configurations there will be, where some become known when they are begun; None:
        the candidates.
    """

    declared: DeclaredRace
    levels: Sequence[Any]
    candidates: Candidates
    n_arms: int | None = None

    @property
    def in_blocks(self) -> bool:
        """True if evaluations share replicates."""
        return self.declared.replicate is not None

    @classmethod
    def of(
        cls,
        candidates: Candidates,
        *,
        fidelity: Fidelity | None = None,
        maximise: bool = True,
        bias: BiasLike = None,
        estimated_bias: EstimatedBias = "steer",
        sigma: SigmaLike = None,
        delta: float = 0.05,
        epsilon: float | None = None,
        budget: float | None = None,
        measure: int = 10,
        max_failures: int = 3,
        seed: int = 0,
        shares_replicates: bool = False,
        make: MakePolicy | None = None,
        baseline: Mapping[str, Any] | int | None = None,
        **others: Any,
    ) -> Settings:
        """Return the settings that suit what is declared about given configurations.

        Where nothing is declared about cheap levels, and the budget does not pay for comparing all
        configurations at the target, cheap levels choose finalists: that is a search. Where the
        levels are not known, they tell later whether it is.

        Parameters
        ----------
        candidates, fidelity, seed
            See `RaceSettings`. A fidelity of None: every evaluation is a full one.
        maximise
            Whether larger values are better.
        bias, estimated_bias, sigma, delta, epsilon, budget, measure, max_failures
            See `mfhpo.racing.options.BestArmOptions`.
        shares_replicates
            Whether evaluations may share replicates. They do where nothing is declared.
        make
            Makes the policy where levels are evidence, and for finalists. None: the one that suits
            the problem, and planned looks.
        baseline
            See `mfhpo.racing.options.BlockOptions`.
        **others
            Of `RaceSettings`.
        """
        known = _ONE_LEVEL if fidelity is None else fidelity
        sign = 1.0 if maximise else -1.0
        check_limit("budget", budget, "")
        options: dict[str, Any] = {"delta": delta, "epsilon": epsilon, "budget": budget}
        options |= {"measure": measure, "max_failures": max_failures}
        options["estimated_bias"] = estimated_bias
        declares = bias is not None or sigma is not None or estimated_bias != "steer"
        declared = DeclaredRace(
            Declaration.of(known, sigma, bias),
            options,
            make or _best_arm,
            replicate=_REPLICATE if shares_replicates and not declares else None,
            compares="" if make is None else "the policy",
            certify_share=_CERTIFY_SHARE,
            baseline=baseline,
        )

        others |= {"seed": seed, "sign": sign}

        def of_levels(levels: Sequence[Any]) -> Settings:
            return declared.settings(candidates, levels, **others)

        if known.levels is None:
            declared.rehearse((), (sign,))
            return LateSettings(
                fidelity=known.name,
                make=of_levels,
                candidates=candidates,
                in_blocks=declared.replicate is not None,
                **{name: others[name] for name in others.keys() - {"n_arms"}},
            )
        settings = of_levels(known.levels)
        settings.runner()  # raises for wrong options
        return settings

    def runner(self) -> RaceRunner:
        """Return a race to which nothing was told."""
        return RaceRunner(self)


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
    certify_share
        Of the budget, where there are finalists; None: the usual one.
    baseline
        The configuration in use today, or its index; None: there is none.
    """

    declaration: Declaration
    options: Mapping[str, Any]
    make: MakePolicy
    replicate: str | None
    compares: str
    certify_share: float | None = None
    baseline: Mapping[str, Any] | int | None = None

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
        baseline = own.pop("baseline", None)
        if replicate is not None:
            declares = {name: given[name] for name in given.keys() - {"baseline"}}
            check_blocks(replicate, named.name, {"bias": named.bias, **declares})
        kind: BiasKind = "order" if own.get("variant") == "order" else "max"
        declared = Declaration.of(named, own.pop("sigma"), own.pop("bias", None), kind)
        compares = "" if replicate is not None else compares
        return cls(declared, own, make, replicate, compares, baseline=baseline)

    @property
    def fidelity(self) -> Fidelity:
        """The parameter that sets the level."""
        return self.declaration.fidelity

    def rehearse(self, levels: Sequence[Any], signs: Sequence[float]) -> str | None:
        """Try the options, so that wrong ones raise; return what is wrong with the budget."""
        self.declaration.rehearse(self.policy, self.options, levels, signs)
        return self.declaration.objection_to(self.options["budget"], levels)

    def settings(
        self,
        candidates: Candidates,
        levels: Sequence[Any],
        *,
        known: CandidatesLike = None,
        races: bool = False,
        **common: Any,
    ) -> Settings:
        """Return the settings over these levels; seed, sign and the like are `common` to all kinds.

        `known` are the candidates as a model sees them; None: as they are. With `races`, cheap
        levels choose no finalists.
        """
        arms = Configurations(candidates, common.get("describe", described))
        declaration, options, sign = self.declaration, self.options, common["sign"]
        if not races and makes_shortlist(self._whole, len(arms), self.fidelity.costs_of(levels)):
            given = () if isinstance(candidates, int) else candidates
            if known is None:
                known = numbered(arms) if given else candidates
            return SearchSettings(
                declared=declared_shortlist(
                    declaration,
                    options,
                    known,
                    levels,
                    self.replicate,
                    self.certify_share,
                    self.baseline,
                ),
                levels=levels,
                candidates=given,
                make_certifier=certifier_of(self.make, options, sign) if self.compares else None,
                **common,
            )
        return RaceSettings(declared=self, levels=levels, candidates=candidates, **common)

    def in_words(self, n_arms: int, levels: Sequence[Any]) -> str:
        """Say what cheap levels are used for; empty where users have declared that."""
        costs = self.fidelity.costs_of(levels)
        return cheap_levels_in_words(self._whole, n_arms, costs, self.compares)

    def policy(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Return the policy that compares configurations."""
        if self.replicate is None:
            return self.make(problem, sign, options)
        return make_block_elimination(problem, options)

    @property
    def _whole(self) -> dict[str, Any]:
        return {**self.options, "bias": self.declaration.bias, "sigma": self.declaration.noise}


def _best_arm(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_best_policy(problem, sign, {**options, "aim": "best arm"})
