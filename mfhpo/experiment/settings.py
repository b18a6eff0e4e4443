"""The settings of an experiment: everything that its user declares, checked once."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mfhpo.censored import RCUCB, CensoredPolicy
from mfhpo.censored.options import mirrored
from mfhpo.certification.candidates import Shortlist
from mfhpo.certification.certification import Certification, MakeCertifier
from mfhpo.experiment.configurations import Configurations, described
from mfhpo.experiment.events import Purpose
from mfhpo.experiment.kinds.blind import BlindRunner
from mfhpo.experiment.kinds.games import GameRunner
from mfhpo.experiment.kinds.limits import LimitRunner
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.kinds.search import SearchRunner, Space
from mfhpo.experiment.kinds.shortlist import ShortlistRunner
from mfhpo.games import MFUCBPNE, GamePolicy
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.space import Numeric, OneOf
from mfhpo.problem import Labels, Policy, Problem
from mfhpo.search.budgeted import BudgetedSearch
from mfhpo.search.declared import DeclaredSearch, has_levels
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import SearchPolicy

Candidates = Sequence[Mapping[str, Any]] | int
MakePolicy = Callable[[Problem, float, Mapping[str, Any]], Policy]
Describe = Callable[[Any], Any]

_NUMBER = "number of the candidate"  # no parameter has such a name


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
            Labels(fidelity=namer(fidelity, self.levels)),
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


def namer(fidelity: Fidelity, levels: Sequence[Any]) -> Callable[[int], str]:
    """Return what names the levels."""
    return lambda level: f"{fidelity.name}={levels[level]!r}"


def numbered(arms: Configurations) -> list[dict[str, Any]]:
    """Return configurations as a `DeclaredSearch` takes them: none looks like another.

    1, 1.0 and True are one to a model, and are different configurations.
    """
    return [{**arms[arm], _NUMBER: str(arm)} for arm in range(len(arms))]
