"""What users declare of a search: a fidelity or none, and a budget in costs, trials or seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from mfhpo._validation import check_baseline, check_count, check_flag, check_limit, shown
from mfhpo.certification.certification import MakeCertifier
from mfhpo.certification.choice import check_blocks
from mfhpo.knowledge.candidates import CandidatesLike, configurations_of, space_of
from mfhpo.knowledge.earlier import checked_beliefs, first_configurations
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian
from mfhpo.knowledge.space import Point, SearchSpace
from mfhpo.racing.declaration import Declaration, SigmaLike, as_fidelity, as_noise
from mfhpo.search.budget import LEAST_OF_FINALISTS, MOST_FINALISTS, USUAL_SHARE_OF_GIVEN
from mfhpo.search.budgeted import BudgetedSearch
from mfhpo.search.finalists import numbered
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import SearchPolicy
from mfhpo.search.promotions import HalvingSearch

# They stand for the fidelity of an objective that has none.
ONE_LEVEL = Fidelity("no fidelity", levels=(1,), costs=(1.0,))
_TIMED_LEVEL = replace(ONE_LEVEL, costs="measured")


class SearchOptions(TypedDict, total=False):
    """Options of every search that certifies what it has found.

    Parameters
    ----------
    budget
        What may be paid, certificate included, in the unit of the fidelity's costs: for epochs, the
        sum of all trials' epochs; seconds, if the costs are "measured"; without a fidelity, trials.
        None, as `trials` and `seconds` are: the search goes on until whoever runs it stops, and
        nothing is certified.
    trials
        The budget in trials, instead of `budget`. A cheap trial counts as much as a dear one then,
        so that all are at the target.
    seconds
        The budget in seconds of evaluation, summed over workers, instead of `budget`. Prices are
        measured on the way, by level and by configuration, and of two configurations that promise
        as much the cheaper one is tried. The total may be missed by one evaluation per worker. The
        first evaluation above the lowest level may exceed it further, because its price is not
        known yet.
        Each evaluation has a limit of time, beyond which it is worth less per second than what
        would be done in its place: see `mfhpo.search.prices.Prices`. Who enforces it is the
        user's choice: ``time_limited(objective)`` or `TimeLimitPruner` in Optuna,
        ``search.scheduler()`` in Ray. While no price is known it is a tenth of the budget. What was
        stopped is no failure.
        It is known to take longer, and is only tried again, with a larger limit, where that is
        worth it. With a `proposer` of configurations, others go on instead.
    certify_share, top, delta, epsilon, sigma, max_failures
        See `mfhpo.search.BudgetedSearch`.
    checkpoints
        Whether trials go on from the same configuration's last level, so that only the difference
        of the costs is paid.
    candidates
        The configurations to choose from: a list of dictionaries, a dictionary of columns or a
        DataFrame; or how many to draw from the space. All begin at a level that the budget pays
        for, or as many as it pays for, at random. The model says which go up, and the certificate
        is about the finalists. None: the search begins configurations of its own.
    baseline
        The configuration in use today. It is evaluated at the target first, and is always among the
        finalists; the answer says by how much the winner is better than it, at least. That takes
        half of `delta`, so that the claim and this comparison hold together. With `candidates`, it
        is one of them. None: there is none.
    chance
        A probability such as .95. A search among `candidates` ends once its model is so sure that
        no other of them is better than the leader by more than `epsilon`, which has to be given.
        That is an estimate, and nothing is certified then. A `replicate` has no part in it, because
        the search sees one of them alone. None: the search goes on until the budget is spent.
    earlier
        What earlier searches of the same model found, also on other data: a list of
        `EarlierResults`, of results of the library that runs the search, or of configurations. Up
        to ten are tried first, in turn with random ones: the best of each, then the second best. A
        parameter that is missing, and a value that the space does not have, is drawn. They set an
        order and are no evidence. None: there are none.
    beliefs
        Where good values may lie, such as ``{"lr": 1e-3, "depth": (6, 0.25)}``: by parameter a
        centre, or a pair of a centre and a weight, above 0 and at most 1. That share of the first
        configurations (half, without a weight) is drawn around it. None: anywhere.
    replicate
        Name of the parameter that sets the split or the seed. The objective asks for it, as for the
        fidelity, and the search decides it: its own evaluations all have the same one, so that what
        the split does to all configurations is no noise to it. The shortlist is evaluated with
        others, the same for all of its configurations, and the certificate is about the mean over
        replicates, by differences in the same ones. What the search promises is what it saw on its
        one split. Failures are repeated with the same replicate; one on which all configurations
        fail is left out. None: each evaluation has noise of its own.
    """

    budget: float | None
    trials: int | None
    seconds: float | None
    certify_share: float | None
    top: int | None
    delta: float
    epsilon: float | None
    sigma: SigmaLike
    checkpoints: bool
    max_failures: int
    replicate: str | None
    candidates: CandidatesLike
    baseline: Mapping[str, Any] | None
    chance: float | None
    earlier: Sequence[Any] | None
    beliefs: Mapping[str, Any] | None


@dataclass(frozen=True)
class DeclaredSearch:
    """A search as its user declares it, whichever library runs it.

    Parameters
    ----------
    fidelity
        The parameter that sets what an evaluation costs.
    checkpoints, replicate, candidates, earlier, beliefs
        See `SearchOptions`.
    baseline
        See `SearchOptions`. Or its index, where the candidates are given.
    options
        Further arguments of `BudgetedSearch`.
    """

    fidelity: Fidelity
    checkpoints: bool
    replicate: str | None
    candidates: int | Sequence[Mapping[str, Any]] | None
    options: Mapping[str, Any]
    baseline: Mapping[str, Any] | int | None = None
    earlier: Sequence[Mapping[str, Any]] = ()
    beliefs: Mapping[str, tuple[Any, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        fidelity: str | Fidelity | None,
        *,
        budget: float | None = None,
        trials: int | None = None,
        seconds: float | None = None,
        checkpoints: bool = False,
        replicate: str | None = None,
        candidates: CandidatesLike = None,
        baseline: Mapping[str, Any] | int | None = None,
        earlier: Sequence[Any] | None = None,
        beliefs: Mapping[str, Any] | None = None,
        as_results: Callable[[Any], Any] = lambda source: source,
        **options: Any,
    ) -> DeclaredSearch:
        """Take what a user gives, and try it, so that wrong arguments raise now.

        The budget is in the unit of the fidelity's costs, in `trials` whatever they cost, or in
        `seconds`, with costs that are measured: one of them, or none. A library makes its own
        results `EarlierResults` by `as_results`.
        """
        all_three = {"budget": budget, "trials": trials, "seconds": seconds}
        budgets = {name: value for name, value in all_three.items() if value is not None}
        if len(budgets) > 1:
            words = " and ".join(f"{name}={shown(value)}" for name, value in budgets.items())
            both = "both" if len(budgets) == 2 else "all"
            raise ValueError(f"{words} {both} say what may be spent; give one.")
        if trials is not None:
            options |= {"budget": float(check_count("trials", trials, 1)), "unit": "evaluations"}
        elif seconds is not None:
            options["budget"] = check_limit("seconds", seconds, "")
        else:
            options["budget"] = budget
        check_flag("checkpoints", checkpoints)
        known = _fidelity_of(fidelity, seconds is not None)
        if replicate is not None:
            check_blocks(replicate, known.name, {})
        chance = options.get("chance")
        if chance is not None and (candidates is None or replicate is not None):
            raise ValueError(
                f"chance={shown(chance)} ends a search among candidates whose "
                f"evaluations have noise of their own; give candidates and no replicate, or leave "
                f"it out."
            )
        owned = [known.name, *([] if replicate is None else [replicate])]
        given = None if candidates is None else configurations_of(candidates, owned)
        if chance is not None and isinstance(given, list) and not space_of(given)[0].parameters:
            raise ValueError(
                f"chance={shown(chance)} is a model's estimate, and the candidates "
                f"have no parameters that a model could learn from; leave it out."
            )
        check_baseline(baseline, has_index=given is not None)
        first = first_configurations(earlier, owned, as_results)
        believed_in = checked_beliefs(beliefs, owned)
        if given is not None and (first or believed_in):
            raise ValueError(
                "earlier and beliefs say what is drawn first, but candidates are given, and all of "
                "them begin; leave them out."
            )
        declared = cls(known, checkpoints, replicate, given, options, baseline, first, believed_in)
        declared.race(known.levels or (), seed=0, sign=1.0)
        return declared

    def race(
        self,
        levels: Sequence[Any],
        *,
        seed: int,
        sign: float,
        params: Callable[[int], Mapping[str, Any]] = numbered,
        kind: type[SearchPolicy] = ModelSearch,
        certifier: MakeCertifier | None = None,
    ) -> BudgetedSearch:
        """Make the race over these levels, with one level as long as none is known."""
        costs = self.fidelity.guessed_costs(levels) if levels else (1.0,)
        space, points = self._given
        if points and not space.parameters and not isinstance(self.candidates, int):
            kind = HalvingSearch  # nothing that a model could learn from
        search = kind(costs, continues=self.checkpoints, seed=seed)
        if points:
            search.space = space
            search.give(points)
        return BudgetedSearch(
            search,
            measured=self.fidelity.costs == "measured",
            sign=sign,
            params=params,
            certifier=certifier,
            blocks=self.replicate is not None,
            **self.options,
        )

    @property
    def _given(self) -> tuple[SearchSpace, Sequence[Point]]:
        """The candidates as a model sees them; without parameters where they are to be drawn."""
        if self.candidates is None or isinstance(self.candidates, int):
            return SearchSpace({}), [{}] * (self.candidates or 0)
        return space_of(self.candidates)


def makes_shortlist(options: Mapping[str, Any], n_arms: int, costs: Sequence[float] | None) -> bool:
    """Return whether cheap levels choose which of some arms are compared at the target.

    They do if nothing is declared about their bias, and the budget does not pay for comparing all
    `n_arms` there: about four evaluations of each, or two with a declared noise (measured on the
    evidence page on certificates). `costs` are None while unknown or measured.
    """
    budget = options.get("budget")
    return budget is not None and budget < _cost_of_all(options, n_arms, costs)


def _cost_of_all(options: Mapping[str, Any], n_arms: int, costs: Sequence[float] | None) -> float:
    """Return what comparing all arms at the target costs; 0 where cheap levels may not choose."""
    nothing_declared = options.get("bias") is None and options.get("variant") is None
    steers = options.get("estimated_bias") == "steer"
    if not (nothing_declared and steers and options.get("aim", "best arm") == "best arm"):
        return 0.0
    if costs is None or len(costs) < 2 or n_arms <= MOST_FINALISTS:
        return 0.0
    return _least_of_each(options) * n_arms * costs[-1]


def _least_of_each(options: Mapping[str, Any]) -> int:
    is_known = isinstance(as_noise(options.get("sigma")), (SubGaussian, Bounded))
    return 2 if is_known else 4


def declared_shortlist(
    declaration: Declaration,
    options: Mapping[str, Any],
    candidates: CandidatesLike,
    levels: Sequence[Any],
    replicate: str | None = None,
    certify_share: float | None = None,
    baseline: Mapping[str, Any] | int | None = None,
) -> DeclaredSearch:
    """Return the search of `BestArmOptions` in which cheap levels choose the finalists."""
    sigma: SigmaLike = declaration.noise
    if isinstance(sigma, SubGaussian):
        sigma = sigma.at(len(levels) - 1, len(levels))
    return DeclaredSearch.of(
        replace(declaration.fidelity, bias=None),
        replicate=replicate,
        candidates=candidates,
        certify_share=certify_share,
        baseline=baseline,
        sigma=None if isinstance(sigma, EstimatedNoise) else sigma,
        **{name: options[name] for name in ("budget", "delta", "epsilon", "max_failures")},
    )


def cheap_levels_in_words(
    options: Mapping[str, Any], n_arms: int, costs: Sequence[float] | None, certifier: str
) -> str:
    """Say what cheap levels are used for (see `makes_shortlist`); empty if declared."""
    budget, cost = options.get("budget"), _cost_of_all(options, n_arms, costs)
    if costs is None or cost == 0.0 or (budget is not None and budget >= cost):
        return ""
    if budget is None:
        return (
            f"all {n_arms} configurations are compared at the target alone, because nothing is "
            f"declared about cheaper levels; budget=... lets these choose finalists, and bias=... "
            f"makes them evidence, where configurations do not share replicates"
        )
    words = (
        f"budget={budget:g} does not pay for comparing all {n_arms} configurations at the target "
        f"({_least_of_each(options)} evaluations of each); so cheaper levels choose"
    )
    if USUAL_SHARE_OF_GIVEN * budget < LEAST_OF_FINALISTS * costs[-1]:
        return f"{words} which are evaluated there, and nothing is left for a certificate"
    compares = certifier or "a group-sequential test"
    return f"{words} the finalists, which {compares} compares by new evaluations"


def has_levels(fidelity: Fidelity) -> bool:
    """Return whether a search's objective asks for a fidelity.

    Parameters
    ----------
    fidelity
        That of a `DeclaredSearch`.
    """
    return fidelity not in (ONE_LEVEL, _TIMED_LEVEL)


def _fidelity_of(fidelity: str | Fidelity | None, in_seconds: bool) -> Fidelity:
    if fidelity is None:
        return _TIMED_LEVEL if in_seconds else ONE_LEVEL
    named = as_fidelity(fidelity)
    return named.in_seconds() if in_seconds else named
