"""The settings of an experiment: everything that its user declares, checked once."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mfhpo._validation import check_limit
from mfhpo.censored import RCUCB, CensoredPolicy
from mfhpo.censored.options import mirrored
from mfhpo.certification.candidates import Shortlist
from mfhpo.certification.certification import Certification, MakeCertifier
from mfhpo.certification.choice import make_best_policy, make_block_elimination
from mfhpo.experiment.configurations import Configurations, described
from mfhpo.experiment.events import Purpose
from mfhpo.experiment.kinds.blind import BlindRunner
from mfhpo.experiment.kinds.games import GameRunner
from mfhpo.experiment.kinds.limits import LimitRunner
from mfhpo.experiment.kinds.race import RaceRunner
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.kinds.search import SearchRunner, Space
from mfhpo.experiment.kinds.shortlist import ShortlistRunner
from mfhpo.games import MFUCBPNE, GamePolicy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.space import Numeric, OneOf
from mfhpo.problem import Labels, Policy, Problem
from mfhpo.racing.declaration import BiasLike, Declaration, SigmaLike
from mfhpo.racing.options import EstimatedBias
from mfhpo.racing.race import Race
from mfhpo.search.budgeted import BudgetedSearch
from mfhpo.search.declared import DeclaredSearch, certifier_of, has_levels, makes_shortlist
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import SearchPolicy

Candidates = Sequence[Mapping[str, Any]] | int
MakePolicy = Callable[[Problem, float, Mapping[str, Any]], Policy]
Describe = Callable[[Any], Any]

_ONE_LEVEL = Fidelity("level", levels=("full evaluation",), costs=(1.0,))
_NUMBER = "number of the candidate"  # no parameter has such a name
_REPLICATE = "number of the replicate"
_CERTIFY_SHARE = 0.5  # where a search sees one replicate alone


@dataclass(frozen=True, kw_only=True)
class Settings(abc.ABC):
    """The settings that all kinds of experiments have.

    Parameters
    ----------
    seed
        Of what is drawn.
    sign
        -1 where the objective is minimised.
    lease_seconds
        How long an evaluation may take before its worker is taken for dead; None: any time.
    about_evaluations
        What evaluations are, as the first of the assumptions of an answer; else empty.
    describe
        See `mfhpo.experiment.key_of`.
    """

    seed: int = 0
    sign: float = 1.0
    lease_seconds: float | None = None
    about_evaluations: str = ""
    describe: Describe = described

    @abc.abstractmethod
    def runner(self) -> Runner:
        """Return a runner to which nothing was told."""


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
        is_drawn = isinstance(candidates, int)
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
                candidates=candidates if is_drawn else numbered(arms),
            )
            return SearchSettings(
                declared=declared,
                levels=levels,
                candidates=() if is_drawn else candidates,
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
            _namer(self.fidelity, levels),
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


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings):
    """A search on a budget, whose best are certified.

    Parameters
    ----------
    declared
        What its user declares.
    levels
        Values of the fidelity.
    space
        Where configurations are drawn from; None where they are given, or a host draws them.
    candidates
        The given configurations, with all of their parameters.
    kind
        Chooses what to evaluate before the certificate.
    make_certifier
        Makes the policy that certifies; None: planned looks.
    """

    declared: DeclaredSearch
    levels: Sequence[Any]
    space: Space | None = None
    candidates: Sequence[Mapping[str, Any]] = field(default=())
    kind: type[SearchPolicy] = ModelSearch
    make_certifier: MakeCertifier | None = None

    @property
    def in_blocks(self) -> bool:
        """True if evaluations share replicates."""
        return self.declared.replicate is not None

    def runner(self) -> SearchRunner:
        """Return a search to which nothing was told."""
        fidelity = self.declared.fidelity
        levels = tuple(self.levels) if has_levels(fidelity) else ()

        def make(params: Callable[[int], Mapping[str, Any]]) -> BudgetedSearch:
            return self.declared.race(
                levels,
                seed=self.seed,
                sign=self.sign,
                params=params,
                kind=self.kind,
                certifier=self.make_certifier,
            )

        given = self.declared.candidates
        n_drawn = given if isinstance(given, int) and self.space is None else 0
        return SearchRunner(
            make,
            Configurations(self.candidates, self.describe, n_drawn),
            self.levels,
            Labels(fidelity=_namer(fidelity, self.levels)),
            space=self.space,
            in_blocks=self.in_blocks,
            sign=self.sign,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class LateSettings(Settings):
    """An experiment whose levels an objective tells when it asks for the fidelity.

    Parameters
    ----------
    fidelity
        Name of the parameter that sets what an evaluation costs.
    make
        Returns the settings that know the levels, given these.
    candidates
        See `RaceSettings`. None: there is no end of draws, as in a search.
    in_blocks
        Whether evaluations share replicates.
    purpose
        Of evaluations before the levels are known: "search" if these are a search's.
    first_limit
        Of evaluations before the levels are known, in seconds. It is doubled with each that was
        stopped, up to ten times the first one. None: they have none.
    """

    fidelity: str
    make: Callable[[tuple[Any, ...]], Settings]
    candidates: Candidates | None
    in_blocks: bool = False
    purpose: Purpose = "given"
    first_limit: float | None = None

    def runner(self) -> BlindRunner:
        """Return a runner that begins configurations until the levels are found."""
        return BlindRunner(
            known_of(self.candidates or (), self.describe),
            self.fidelity,
            self.in_blocks,
            purpose="search" if self.candidates is None else self.purpose,
            limit=self.first_limit,
        )


@dataclass(frozen=True, kw_only=True)
class ShortlistSettings(Settings):
    """A certificate of another search's best, by new evaluations.

    Parameters
    ----------
    shortlist
        The candidates.
    options
        Further arguments of `mfhpo.certification.certification.Certification`.
    """

    shortlist: Shortlist
    options: Mapping[str, Any] = field(default_factory=dict)

    def runner(self) -> ShortlistRunner:
        """Return a contest to which nothing was told."""
        candidates = self.shortlist.candidates
        budget = self.options.get("budget")
        contest = Certification(
            candidates,
            luckiest=self.shortlist.luckiest,
            maximise=self.sign > 0.0,
            seed=self.seed,
            **self.options,
        )
        return ShortlistRunner(
            contest,
            Configurations([candidate.params for candidate in candidates], self.describe),
            about=self.shortlist.about,
            words=self.shortlist.words,
            budget=float("inf") if budget is None else budget,
            in_blocks=bool(self.options.get("blocks")),
            sign=self.sign,
        )


@dataclass(frozen=True, kw_only=True)
class LimitSettings(Settings):
    """A choice of time limits for given configurations.

    Parameters
    ----------
    candidates
        See `RaceSettings`.
    limits
        Limits in seconds, or how many are to be derived; for `ZoomingRCUCB`, the longest one.
    options
        See `mfhpo.censored.options.RCUCBOptions`, in the direction of the objective.
    make
        Makes the policy.
    n_arms
        See `RaceSettings`.
    """

    candidates: Candidates
    limits: Sequence[float] | float = 10
    options: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[..., CensoredPolicy] = RCUCB
    n_arms: int | None = None

    def runner(self) -> LimitRunner:
        """Return a choice of limits to which nothing was told."""
        configurations = known_of(self.candidates, self.describe)
        options = mirrored({"reward_range": (0.0, 1.0), **self.options}, self.sign)
        n_arms = max(len(configurations), self.n_arms or 0)
        policy = self.make(n_arms, self.limits, **options)
        return LimitRunner(policy, configurations, self.sign)


@dataclass(frozen=True, kw_only=True)
class GameSettings(Settings):
    """A game whose players share a budget.

    Parameters
    ----------
    players, costs, budget, options
        See `mfhpo.games.GamePolicy`.
    signs
        By player, -1 where its utility is minimised. None: all are maximised.
    make
        Makes the policy.
    """

    players: Mapping[str, Mapping[str, Numeric | OneOf]]
    costs: Sequence[float] | Mapping[str, Sequence[float]]
    budget: float
    options: Mapping[str, Any] = field(default_factory=dict)
    signs: Sequence[float] | None = None
    make: Callable[..., GamePolicy] = MFUCBPNE

    def runner(self) -> GameRunner:
        """Return a game to which nothing was told."""
        options = {"seed": self.seed, **self.options}
        policy = self.make(self.players, self.costs, self.budget, **options)
        return GameRunner(policy, self.signs or (1.0,) * len(self.players))


def with_levels(settings: Settings, levels: Sequence[Any]) -> Settings:
    """Return settings that know their levels, now that these were found."""
    return settings.make(tuple(levels)) if isinstance(settings, LateSettings) else settings


def known_of(candidates: Candidates, describe: Describe) -> Configurations:
    """Return the configurations that are compared, or as many draws."""
    if isinstance(candidates, int):
        return Configurations((), describe, candidates)
    return Configurations(candidates, describe)


def numbered(arms: Configurations) -> list[dict[str, Any]]:
    """Return configurations as a `DeclaredSearch` takes them: none looks like another.

    1, 1.0 and True are one to a model, and are different configurations.
    """
    return [{**arms[arm], _NUMBER: str(arm)} for arm in range(len(arms))]


def _best_arm(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_best_policy(problem, sign, {**options, "aim": "best arm"})


def _in_blocks(problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
    return make_block_elimination(problem, options)


def _namer(fidelity: Fidelity, levels: Sequence[Any]) -> Callable[[int], str]:
    return lambda level: f"{fidelity.name}={levels[level]!r}"
