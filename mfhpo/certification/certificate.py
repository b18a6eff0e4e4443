"""What a certificate says; its intervals are computed by the contests beside it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from mfhpo._validation import plain
from mfhpo.certification.baseline import Baseline
from mfhpo.certification.candidates import CandidateResult
from mfhpo.certification.selection import new_data_in_words
from mfhpo.racing.sentences import (
    FIXED,
    aim_in_words,
    corrected_in_words,
    joined,
    never_in_words,
    outcomes_in_words,
    wrong_in_words,
)
from mfhpo.racing.text import name_in_words, params_in_words

_OF_SOME = ("new_data_interval", "study_name", "baseline", "replicates")

_THESE = (
    "the mean over these {} replicates, and not over new ones, nor over what the objective keeps "
    "fixed besides, such as a seed; a search that has seen them has chosen the best for them"
)

_ROUNDING = 1e-12  # of a mean: those of equal values differ by less


@dataclass(frozen=True)
class Certificate:
    """Which configuration of a shortlist to be content with, what it is worth, how sure that is.

    ``print`` it: the text says all of it. What is certified rests on one event of probability 1 -
    delta, and the intervals on another one.

    Parameters
    ----------
    candidates, winner, luckiest
        The shortlist, in the order of the search, and the positions of the winner (None when all of
        them failed) and of the search's own answer.
    delta, epsilon
        The error probability and the tolerance that were asked for; epsilon is NaN as long as it is
        to be derived from a noise that is not known.
    within
        The smallest tolerance that holds now: with probability at least 1 - delta, no compared
        candidate is better than the winner by more than this. Infinite where nothing can be said.
    finished, certified, reason
        Whether the race is over, whether epsilon is reached, and why or why not.
    evaluations, remaining
        Number of evaluations that were paid for, failures included, and a guess at how many more a
        certificate takes: 0 when certified, infinite where no number will do, None when too little
        is known.
    about, shortlist
        What the claim is about, such as "the 8 best of 200 trials", and how these were chosen.
    assumptions, conditions, notices, unseen
        See `mfhpo.problem.Recommendation`.
    corrected_mean
        What the winner is worth, corrected for its having been chosen by the same evaluations. NaN
        without a winner.
    baseline
        How the winner compares with the configuration in use today; None where none was named.
    replicates
        Number of the replicates that the claim is about, such as five folds; None where they have
        no end.
    is_exact, is_nested, new_data_interval
        See `mfhpo.experiment.Answer`.
    study_name, results, best_estimator_
        Of Optuna's: the study that records the new evaluations, whose ``best_trial`` is the answer.
        Of Ray Tune's: these, an experiment of their own. Of scikit-learn's: the estimator with the
        winning setting, fitted on all data, or None.
    """

    candidates: tuple[CandidateResult, ...]
    winner: int | None
    luckiest: int
    delta: float
    epsilon: float
    within: float
    finished: bool
    certified: bool
    reason: str
    evaluations: int
    remaining: float | None
    about: str
    shortlist: str
    assumptions: tuple[str, ...]
    conditions: tuple[str, ...] = field(default=(), kw_only=True)
    unseen: str = field(default="", kw_only=True)
    notices: tuple[str, ...] = field(default=(), kw_only=True)
    corrected_mean: float = field(default=math.nan, kw_only=True)
    baseline: Baseline | None = field(default=None, kw_only=True)
    replicates: int | None = field(default=None, kw_only=True)
    is_exact: bool = field(default=False, kw_only=True)
    new_data_interval: tuple[float, float] | None = field(default=None, kw_only=True)
    study_name: str | None = field(default=None, kw_only=True)
    results: Any = field(default=None, kw_only=True, repr=False, compare=False)
    best_estimator_: Any = field(default=None, kw_only=True, repr=False, compare=False)
    is_nested: bool = field(default=False, kw_only=True, repr=False, compare=False)

    @property
    def not_compared(self) -> tuple[CandidateResult, ...]:
        """The candidates that left because their evaluations fail too often."""
        return tuple(result for result in self.candidates if result.standing == "failed")

    @property
    def compared(self) -> int:
        """Number of candidates that the claim is about."""
        return len(self.candidates) - len(self.not_compared)

    @property
    def params(self) -> dict[str, Any]:
        """The winner's parameters; empty when all candidates failed."""
        return {} if self.winner is None else dict(self.candidates[self.winner].params)

    @property
    def mean(self) -> float:
        """Mean of the winner's new evaluations, which also chose the winner; NaN without any."""
        return math.nan if self.winner is None else self.candidates[self.winner].mean

    # As Ray Tune and scikit-learn call them.
    config = best_params_ = params
    best_score_ = mean

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds on the winner's true mean."""
        if self.winner is None:
            return -math.inf, math.inf
        return self.candidates[self.winner].interval

    @property
    def tied(self) -> tuple[CandidateResult, ...]:
        """The candidates whose mean over all replicates is the winner's: a tie."""
        exact = [one for one in self.candidates if one.interval == (one.mean, one.mean)]
        equal = [one for one in exact if math.isclose(one.mean, self.mean, rel_tol=_ROUNDING)]
        winner = None if self.winner is None else self.candidates[self.winner]
        is_known = self.replicates is not None and winner in equal
        return tuple(one for one in equal if one is not winner) if is_known else ()

    @property
    def luckiest_result(self) -> CandidateResult:
        """The candidate that the search would have handed over."""
        return self.candidates[self.luckiest]

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON values (None for what is not finite)."""
        hidden: dict[str, Any] = {each.name: None for each in fields(self) if not each.repr}
        left_out = {*hidden, *(name for name in _OF_SOME if getattr(self, name) is None)}
        content = plain(asdict(replace(self, **hidden)))
        content["baseline"] = self.baseline and self.baseline.to_dict()
        return {name: value for name, value in content.items() if name not in left_out}

    def __str__(self) -> str:
        lines = [*self._head(), *self._luckiest_in_words(), *self._cost_in_words()]
        lines.append(f"  shortlist   {self.shortlist}")
        lines += [
            f"  not compared  {result.name}: {result.outcomes} evaluations"
            for result in self.not_compared
        ]
        lines += [f"  notice      {notice}" for notice in self.notices]
        lines += [f"  rests on    {assumption}" for assumption in self.assumptions]
        lines += _table(self.candidates, None if self.baseline is None else self.baseline.name)
        if self.new_data_interval is not None:
            lines.append(new_data_in_words(self.new_data_interval, self.delta, self.replicates))
        if self.study_name is not None:
            lines.append(f"  recorded in study {self.study_name!r}")
        if self.results is not None:
            lines.append(f"  recorded in {self.results.experiment_path}")
        return "\n".join(lines)

    def _head(self) -> list[str]:
        if self.winner is None:
            return ["NOT CERTIFIED: no candidate gave a value", f"  because     {self.reason}"]
        winner = self.candidates[self.winner]
        value = f"{_value(winner)}, of {_evaluations(winner)}"
        corrected = corrected_in_words(self.corrected_mean, winner.mean)
        params = params_in_words(winner.params, self.is_nested)
        is_its_name = winner.name == name_in_words(winner.params, 0)
        named = params if is_its_name else f"{winner.name}, {params}"
        lines = [
            f"{'CERTIFIED' if self.certified else 'NOT CERTIFIED'}: {named}",
            *([] if self.baseline is None else [f"  baseline    {self.baseline}"]),
            f"  value       {'; '.join(filter(None, [value, corrected]))}",
            *self._claim_in_words(),
            f"  about       {FIXED if self.replicates is None else _THESE.format(self.replicates)}",
        ]
        if self.tied:
            names = joined([winner.name, *(result.name for result in self.tied)])
            lines.append(f"  tie         {names} have the same mean over all replicates")
        if not self.certified:
            lines.append(f"  aim         {aim_in_words(self.epsilon, self.delta)}")
        return [*lines, f"  because     {self.reason}"]

    def _claim_in_words(self) -> list[str]:
        lines = []
        wrong = wrong_in_words(self.delta, self.conditions, self.is_exact)
        tolerance = self.epsilon if self.certified else self.within
        if math.isfinite(tolerance):
            among = self.about
            if self.not_compared:
                among = f"the {self.compared} compared, of {self.about}"
            lines.append(
                f"  {'claim' if self.certified else 'what holds':12}within {tolerance:.3g} of the "
                f"best of {among}, {wrong}"
            )
            wrong = "wrong with the same probability on top, under the same conditions"
        if self.is_exact:
            lines.append("  intervals   none: all means are exact")
        elif any(map(_is_known, self.candidates)):
            lines.append(f"  intervals   at least one of them {wrong}")
        if self.unseen and lines:
            lines.append(f"  not excluded  {self.unseen}")
        return lines

    def _luckiest_in_words(self) -> list[str]:
        result = self.luckiest_result
        who = "the same" if self.luckiest == self.winner else result.name
        words = f"  luckiest    {who}, promised {result.promise:.5g} by the search"
        if result.promise != result.claim:
            words += f" ({result.claim:.5g} by the mean of its repeats)"
        words += "; "
        if not result.evaluations:
            return [f"{words}no new evaluation gave a value"]
        words += f"{_value(result)} in {_evaluations(result)}"
        better = "too much" if result.gap >= 0.0 else "too little"
        low, high = result.gap_interval
        if not math.isfinite(high - low):
            return [words]
        amount = f"promised {abs(result.gap):.3g} {better} (too much by {low:.3g} to {high:.3g})"
        return [words, f"              {amount}"]

    def _cost_in_words(self) -> list[str]:
        failures = sum(result.failures for result in self.candidates)
        stops = sum(result.stops for result in self.candidates)
        cost = f"  cost        {self.evaluations} evaluations"
        if failures + stops:
            values = sum(result.values for result in self.candidates)
            outcomes = outcomes_in_words(values, failures, stops)
            cost += f"; {outcomes}, all values are those of the others"
        if self.certified or self.remaining is None:
            return [cost]
        if math.isinf(self.remaining):
            return [cost, f"  to certify  {never_in_words(self.epsilon)}"]
        return [cost, f"  to certify  about {self.remaining:.3g} more"]


def _is_known(result: CandidateResult) -> bool:
    low, high = result.interval
    return math.isfinite(high - low)


def _value(result: CandidateResult) -> str:
    if not _is_known(result):
        return f"{result.mean:.5g} (no interval yet)"
    low, high = result.interval
    if low == high:
        return f"{result.mean:.5g} (exact)"
    radius = max(high - result.mean, result.mean - low)
    return f"{result.mean:.5g} ± {radius:.2g} (in [{low:.5g}, {high:.5g}])"


def _evaluations(result: CandidateResult) -> str:
    words = f"{result.evaluations} new evaluation{'s' * (result.evaluations != 1)}"
    return f"{words} ({result.outcomes})" if result.outcomes else words


def _table(results: tuple[CandidateResult, ...], baseline: str | None) -> list[str]:
    rows = [("candidate", "promised", "evaluations", "mean", "interval", "", "")]
    for result in results:
        low, high = result.interval
        is_named_so = baseline == result.name != "baseline"
        rows.append(
            (
                result.name + " (baseline)" * is_named_so,
                "-" if math.isnan(result.claim) else f"{result.claim:.5g}",
                str(result.evaluations),
                f"{result.mean:.5g}" if result.evaluations else "-",
                f"[{low:.5g}, {high:.5g}]" if _is_known(result) else "-",
                result.standing,
                result.outcomes,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(["", *map(str.ljust, row, widths)]).rstrip() for row in rows]
