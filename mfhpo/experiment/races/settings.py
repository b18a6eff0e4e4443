"""The settings of a race, or of what suits the declared problem better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mfhpo._validation import check_limit
from mfhpo.certification.choice import make_best_policy, make_block_elimination
from mfhpo.experiment.configurations import described
from mfhpo.experiment.kinds.race import RaceRunner
from mfhpo.experiment.settings import (
    Candidates,
    LateSettings,
    MakePolicy,
    SearchSettings,
    Settings,
    known_of,
    namer,
    numbered,
)
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Labels, Policy, Problem
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike
from mfhpo.racing.options import EstimatedBias
from mfhpo.racing.race import Race
from mfhpo.search.declared import DeclaredSearch, certifier_of, makes_shortlist

_ONE_LEVEL = Fidelity("level", levels=("full evaluation",), costs=(1.0,))
_REPLICATE = "number of the replicate"
_CERTIFY_SHARE = 0.5  # where a search sees one replicate alone


@dataclass(frozen=True, kw_only=True)
class RaceSettings(Settings):
    """A race among given configurations; `of` takes what users declare.

    Parameters
    ----------
    candidates
        The configurations; equal ones are one arm. Or how many a host draws.
    fidelity
        The parameter that sets what an evaluation costs, with its levels.
    declaration
        What is known about it, the bias and the noise.
    options
        Options of the policy.
    make
        Makes the policy.
    in_blocks
        Whether evaluations share replicates.
    n_arms
        How many configurations there will be, where some become known when they are begun; None:
        the candidates.
    """

    candidates: Candidates
    fidelity: Fidelity
    declaration: Declaration
    options: Mapping[str, Any]
    make: MakePolicy
    in_blocks: bool = False
    n_arms: int | None = None

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
        **others: Any,
    ) -> RaceSettings | SearchSettings | LateSettings:
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
        **others
            Of `RaceSettings`.
        """
        known = _ONE_LEVEL if fidelity is None else fidelity
        levels, sign = tuple(known.levels or ()), 1.0 if maximise else -1.0
        check_limit("budget", budget, "")
        declaration = Declaration.of(known, sigma, bias)
        steers = estimated_bias == "steer"
        in_blocks = shares_replicates and bias is None and sigma is None and steers
        options: dict[str, Any] = {
            "delta": delta,
            "epsilon": epsilon,
            "budget": budget,
            "measure": measure,
            "max_failures": max_failures,
            "seed": seed,
        }
        whole = {**options, "bias": bias, "estimated_bias": estimated_bias}
        policy = _in_blocks if in_blocks else make or _best_arm
        options |= {} if in_blocks else {"estimated_bias": estimated_bias}
        if known.levels is None:
            declaration.rehearse(policy, options, (), (sign,))

            def of_levels(levels: tuple[Any, ...]) -> RaceSettings | SearchSettings | LateSettings:
                return cls.of(
                    candidates,
                    fidelity=replace(known, levels=levels),
                    maximise=maximise,
                    sigma=sigma,
                    shares_replicates=shares_replicates,
                    make=make,
                    **whole,
                    **others,
                )

            return LateSettings(
                fidelity=known.name,
                make=of_levels,
                candidates=candidates,
                in_blocks=in_blocks,
                seed=seed,
                sign=sign,
                **{name: others[name] for name in others.keys() - {"n_arms"}},
            )
        arms = known_of(candidates, others.get("describe", described))
        if makes_shortlist(whole, len(arms), known.costs_of(levels)):
            declared = DeclaredSearch.of(
                fidelity,
                budget=budget,
                replicate=_REPLICATE if shares_replicates and sigma is None else None,
                certify_share=_CERTIFY_SHARE,
                delta=delta,
                epsilon=epsilon,
                sigma=sigma,
                max_failures=max_failures,
                candidates=candidates if isinstance(candidates, int) else numbered(arms),
            )
            return SearchSettings(
                declared=declared,
                levels=levels,
                candidates=() if isinstance(candidates, int) else candidates,
                seed=seed,
                make_certifier=None if make is None else certifier_of(make, {}, sign),
                sign=sign,
                **others,
            )
        settings = cls(
            candidates=candidates,
            fidelity=known,
            declaration=declaration,
            options=options,
            make=policy,
            in_blocks=in_blocks,
            seed=seed,
            sign=sign,
            **others,
        )
        settings.runner()  # raises for wrong options
        return settings

    def runner(self) -> RaceRunner:
        """Return a race to which nothing was told."""
        configurations = known_of(self.candidates, self.describe)
        levels = tuple(self.fidelity.levels or ())
        n_arms = max(len(configurations), self.n_arms or 0)
        problem = self.declaration.problem(n_arms, levels, self.sign)
        budget = self.options.get("budget")
        labels = Labels(
            configurations.label,
            namer(self.fidelity, levels),
            lambda value: self.sign * value + 0.0,  # the sum makes 0 of -0
        )
        policy = self.make(problem, self.sign, self.options)
        assert isinstance(policy, Race)
        return RaceRunner(
            policy,
            configurations,
            levels,
            labels,
            costs=self.fidelity.costs_of(levels),
            budget=float("inf") if budget is None else float(budget),
            in_blocks=self.in_blocks,
            sign=self.sign,
        )


def _best_arm(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_best_policy(problem, sign, {**options, "aim": "best arm"})


def _in_blocks(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_block_elimination(problem, options)
