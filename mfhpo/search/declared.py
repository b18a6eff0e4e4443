"""What users declare of a search: a fidelity or none, and a budget in costs, trials or seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeAlias, TypedDict

from mfhpo._validation import (
    MOST_ARMS,
    check_configurations,
    check_count,
    check_dictionaries,
    check_flag,
    check_limit,
    check_parameters,
    check_sequence,
    shown,
)
from mfhpo.certification.certification import MakeCertifier
from mfhpo.certification.choice import check_blocks
from mfhpo.knowledge.fidelity import Fidelity, native
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian
from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace
from mfhpo.policy import Policy
from mfhpo.problem import Problem
from mfhpo.racing.declaration import Declaration, SigmaLike, as_fidelity, as_noise
from mfhpo.search.budget import LEAST_OF_FINALISTS, MOST_FINALISTS, USUAL_SHARE_OF_GIVEN
from mfhpo.search.budgeted import BudgetedSearch
from mfhpo.search.finalists import numbered
from mfhpo.search.halving import HalvingSearch
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import SearchPolicy

# They stand for the fidelity of an objective that has none.
_ONE_LEVEL = Fidelity("no fidelity", levels=(1,), costs=(1.0,))
_TIMED_LEVEL = replace(_ONE_LEVEL, costs="measured")

CandidatesLike: TypeAlias = Any
"""A number; a list of configurations; or columns, as a mapping or a DataFrame of pandas."""


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
        would be done in its place: see `mfhpo.search.prices.Prices`. Who enforces it is the user's
        choice: ``time_limited(objective)`` or `TimeLimitPruner` in Optuna, ``search.scheduler()``
        in Ray. While no price is known it is a tenth of the budget. What was stopped is no failure.
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
    chance
        A probability such as .95. A search among `candidates` ends once its model is so sure that
        no other of them is better than the leader by more than `epsilon`, which has to be given.
        That is an estimate, and nothing is certified then. A `replicate` has no part in it, because
        the search sees one of them alone. None: the search goes on until the budget is spent.
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
    chance: float | None


@dataclass(frozen=True)
class DeclaredSearch:
    """A search as its user declares it, whichever library runs it.

    Parameters
    ----------
    fidelity
        The parameter that sets what an evaluation costs.
    checkpoints
        Whether an evaluation goes on from the configuration's last level.
    replicate
        Name of the parameter that evaluations of a block share, or None.
    candidates
        The configurations to choose from, or how many to draw. None: the search begins its own.
    options
        Further arguments of `BudgetedSearch`.
    """

    fidelity: Fidelity
    checkpoints: bool
    replicate: str | None
    candidates: int | Sequence[Mapping[str, Any]] | None
    options: Mapping[str, Any]

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
        **options: Any,
    ) -> DeclaredSearch:
        """Take what a user gives, and try it, so that wrong arguments raise now.

        The budget is in the unit of the fidelity's costs, in `trials` whatever they cost, or in
        `seconds`, with costs that are measured: one of them, or none.
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
        if options.get("chance") is not None and (candidates is None or replicate is not None):
            raise ValueError(
                f"chance={shown(options['chance'])} ends a search among candidates whose "
                f"evaluations have noise of their own; give candidates and no replicate, or leave "
                f"it out."
            )
        owned = [known.name, *([] if replicate is None else [replicate])]
        given = None if candidates is None else configurations_of(candidates, owned)
        declared = cls(known, checkpoints, replicate, given, options)
        is_named = isinstance(given, list) and not space_of(given)[0].parameters
        if options.get("chance") is not None and is_named:
            raise ValueError(
                f"chance={shown(options['chance'])} is a model's estimate, and the candidates "
                f"have no parameters that a model could learn from; leave it out."
            )
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
    if not _may_shortlist(options, n_arms, costs):
        return False
    assert costs is not None
    budget = options.get("budget")
    return budget is not None and budget < _least_of_each(options) * n_arms * costs[-1]


def _may_shortlist(options: Mapping[str, Any], n_arms: int, costs: Sequence[float] | None) -> bool:
    """Return whether cheap levels may choose finalists if there is a small budget."""
    if costs is None or len(costs) < 2 or n_arms <= MOST_FINALISTS:
        return False
    nothing_declared = options.get("bias") is None and options.get("variant") is None
    steers = options.get("estimated_bias") == "steer"
    return nothing_declared and steers and options.get("aim", "best arm") == "best arm"


def _least_of_each(options: Mapping[str, Any]) -> int:
    """Return how many evaluations of each arm a race of all takes at least."""
    is_known = isinstance(as_noise(options.get("sigma")), (SubGaussian, Bounded))
    return 2 if is_known else 4


def shortlisting_race(
    declaration: Declaration,
    options: Mapping[str, Any],
    candidates: CandidatesLike,
    levels: Sequence[Any],
    *,
    seed: int,
    sign: float,
    params: Callable[[int], Mapping[str, Any]],
    replicate: str | None = None,
    certifier: MakeCertifier | None = None,
) -> BudgetedSearch:
    """Make the race of `BestArmOptions` in which cheap levels choose the finalists."""
    sigma: SigmaLike = declaration.noise
    if isinstance(sigma, SubGaussian):
        sigma = sigma.at(len(levels) - 1, len(levels))
    declared = DeclaredSearch.of(
        replace(declaration.fidelity, bias=None),
        replicate=replicate,
        candidates=candidates,
        sigma=None if isinstance(sigma, EstimatedNoise) else sigma,
        **{name: options[name] for name in ("budget", "delta", "epsilon", "max_failures")},
    )
    return declared.race(levels, seed=seed, sign=sign, params=params, certifier=certifier)


def certifier_of(
    make: Callable[[Problem, float, Mapping[str, Any]], Policy],
    options: Mapping[str, Any],
    sign: float,
) -> MakeCertifier:
    """Return what makes a policy for finalists at the target, with a user's options."""
    own = {**options, "budget": None}

    def certifier(problem: Problem, **rest: Any) -> Policy:
        return make(problem, sign, {**own, **rest})

    return certifier


def cheap_levels_in_words(
    options: Mapping[str, Any], n_arms: int, costs: Sequence[float] | None, certifier: str
) -> str:
    """Say what cheap levels are used for (see `makes_shortlist`); empty if declared."""
    if not _may_shortlist(options, n_arms, costs):
        return ""
    assert costs is not None
    if makes_shortlist(options, n_arms, costs):
        words = (
            f"budget={options['budget']:g} does not pay for comparing all {n_arms} configurations "
            f"at the target ({_least_of_each(options)} evaluations of each); so cheaper levels "
            f"choose"
        )
        if USUAL_SHARE_OF_GIVEN * options["budget"] < LEAST_OF_FINALISTS * costs[-1]:
            return f"{words} which are evaluated there, and nothing is left for a certificate"
        compares = certifier or "a group-sequential test"
        return f"{words} the finalists, which {compares} compares by new evaluations"
    if options.get("budget") is not None:
        return ""
    return (
        f"all {n_arms} configurations are compared at the target alone, because nothing is "
        f"declared about cheaper levels; budget=... lets these choose finalists, and bias=... "
        f"makes them evidence, where configurations do not share replicates"
    )


def has_levels(fidelity: Fidelity) -> bool:
    """Return whether a search's objective asks for a fidelity.

    Parameters
    ----------
    fidelity
        That of a `DeclaredSearch`.
    """
    return fidelity not in (_ONE_LEVEL, _TIMED_LEVEL)


def _fidelity_of(fidelity: str | Fidelity | None, in_seconds: bool) -> Fidelity:
    if fidelity is None:
        return _TIMED_LEVEL if in_seconds else _ONE_LEVEL
    named = as_fidelity(fidelity)
    return named.in_seconds() if in_seconds else named


def configurations_of(
    candidates: CandidatesLike, owned: Sequence[str] = (), *, may_repeat: bool = False
) -> int | list[dict[str, Any]]:
    """Take what a user gives: at least two configurations, all different unless they `may_repeat`.

    Cells of a table that are NaN or None stand for parameters that do not apply. Raises TypeError
    or ValueError if it is anything else, or has parameters that are `owned`: the search sets them.

    Examples
    --------
    >>> configurations_of({"lr": [0.1, 0.2], "depth": [3, 4]})
    [{'lr': 0.1, 'depth': 3}, {'lr': 0.2, 'depth': 4}]
    """
    if isinstance(candidates, Integral) and not isinstance(candidates, bool):
        return check_count("candidates", int(candidates), 2, MOST_ARMS)
    right = "a number, a list of dictionaries, a dictionary of columns or a DataFrame"
    rows = candidates
    if hasattr(candidates, "to_dict") and getattr(candidates, "ndim", None) != 1:
        rows = candidates.to_dict(orient="records")
    elif isinstance(candidates, Mapping):
        columns = {
            name: check_sequence(f"candidates[{name!r}]", column, "a column of values")
            for name, column in candidates.items()
        }
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"candidates must have columns of one length, got {lengths}.")
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    is_table = rows is not candidates
    listed = [
        {
            name: native(value)
            for name, value in row.items()
            if not (is_table and (value is None or value != value))
        }
        for row in check_dictionaries("candidates", rows, right)
    ]
    if is_table:
        check_parameters("candidates", set().union(*listed), owned)
        _restore_integers(listed)
    if len(listed) < 2:
        raise ValueError(f"candidates must be at least 2 configurations, got {len(listed)}.")
    if not may_repeat:
        check_configurations("candidates", listed, owned=owned)
    return listed


def _restore_integers(rows: Sequence[dict[str, Any]]) -> None:
    """Make integers of a column's whole floats, which a DataFrame makes beside missing values."""
    for name in {name for row in rows for name in row}:
        values = [row[name] for row in rows if name in row]
        are_whole = all(isinstance(value, float) and value.is_integer() for value in values)
        if are_whole and len(values) < len(rows):
            for row in rows:
                if name in row:
                    row[name] = int(row[name])


def space_of(configurations: Sequence[Mapping[str, Any]]) -> tuple[SearchSpace, list[Point]]:
    """Describe configurations to a model.

    A number's place is its rank among the values that occur. Other values are choices without an
    order. What never varies, and choices that no two configurations share, such as names, say
    nothing about other configurations and are left out.

    Examples
    --------
    >>> space, points = space_of([{"lr": 0.1, "act": "relu"}, {"lr": 10, "act": "relu"}])
    >>> space.parameters, points
    ({'lr': Numeric(places=(0.0, 1.0))}, [{'lr': 0.0}, {'lr': 1.0}])
    """
    kinds: dict[str, Numeric | OneOf] = {}
    points: list[dict[str, float]] = [{} for _ in configurations]
    for name in dict.fromkeys(name for each in configurations for name in each):
        values = {i: each[name] for i, each in enumerate(configurations) if name in each}
        ordered = all(_is_number(value) for value in values.values())
        keys = {i: value if ordered else repr(value) for i, value in values.items()}
        different = sorted(set(keys.values()))
        n = len(different)
        if n < 2 or (not ordered and n == len(keys)):
            continue
        last = n - 1 if ordered else 1
        place = {key: rank / last for rank, key in enumerate(different)}
        kinds[name] = Numeric(tuple(place.values())) if ordered else OneOf(n)
        for i, key in keys.items():
            points[i][name] = place[key]
    return SearchSpace(kinds), list(points)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
