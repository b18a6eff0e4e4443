"""The answer of an experiment, whatever its kind, in the terms of whoever asked, and its words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mfhpo._validation import plain
from mfhpo.certification.baseline import Baseline
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.selection import new_data_in_words
from mfhpo.games.equilibrium import Dissatisfaction, Equilibrium, Utility
from mfhpo.problem import Recommendation
from mfhpo.racing.sentences import FIXED, bounds_in_words, never_in_words, wrong_in_words
from mfhpo.racing.text import cut, params_in_words
from mfhpo.search.standing import left_in_words

# What `Answer.to_dict` has of a race, besides of a search, of a choice of limits, and of a game.
_OF_RACES = (
    *("params", "finished", "reason", "cost", "trials", "arm", "mean", "interval", "level"),
    *("delta", "epsilon", "certified", "certifies", "survivors", "compared", "assumptions"),
    *("remaining_cost", "conditions", "unseen", "not_compared", "failures", "notices", "is_exact"),
)
_OF_SEARCHES = ("tried", "earlier", "at_target", "left", "chance", "stopped", "certificate")
_OF_LIMITS = (
    *("params", "arm", "limit", "gain", "interval", "delta", "survival", "censored", "finished"),
    *("reason", "seconds", "trials", "survivors", "assumptions", "estimated"),
)
_OF_GAMES = (
    *("params", "dissatisfaction", "utilities", "probability", "finished", "reason", "cost"),
    *("budget", "trials", "evaluations"),
)


@dataclass(frozen=True, kw_only=True)
class Answer(Recommendation):
    """Which configuration to be content with, and how sure that is.

    ``print`` it: the text says all of it. Mean and interval are the objective's. Fields that have
    no part in a kind of experiment keep their defaults, and `to_dict` leaves them out. What is not
    listed here is that of `mfhpo.Recommendation`.

    Parameters
    ----------
    params
        The configuration, without the fidelity; empty when there is none.
    level
        The highest level at which it was evaluated, which the mean belongs to.
    certifies
        Whether the policy is after a certificate at all; `mfhpo.MFUCB` and the like are not.
    searched
        Whether it is the answer of a search, whose claims are about a shortlist.
    tried, earlier, at_target
        Number of configurations that a search has tried at any level, of those that came from
        earlier results, and of those at the target.
    left
        How many configurations are not at the target, by where they were left.
    chance
        By the search's model, the probability that no other configuration of those at the target is
        better by more than epsilon. It is an estimate, not certified; None without a model, and
        where evaluations share replicates.
    stopped
        Number of trials that were stopped at their limits of time or memory.
    certificate
        What the evaluations of the shortlist say. None during the search.
    baseline
        How the winner compares with the configuration in use today, where one was named. It shares
        delta with the claim.
    dissatisfaction, utilities
        Of a game, by player: what it may gain by deviating while the others stay, never negative;
        and its objective at the profile. Both are in the unit of its objective.
    probability, at_most
        With which the model of a game believes in each interval; and the largest upper end of what
        players may gain, in standard deviations of their objectives, as `epsilon` is the largest
        mean.
    budget, evaluations
        What a game may pay, and its trials at the target fidelity for all players.
    is_nested
        Whether dictionaries among values are parts of the configuration, and shown as such.
    new_data_interval
        About the expected score on new data, where evaluations are scores on random splits of data:
        approximate, and infinite where too little is known. None: they are not of that kind.
    """

    params: dict[str, Any]
    level: Any = None
    certifies: bool = True
    # Of searches.
    searched: bool = False
    tried: int = 0
    earlier: int = 0
    at_target: int = 0
    left: dict[str, int] = field(default_factory=dict)
    chance: float | None = None
    stopped: int = 0
    certificate: Certificate | None = None
    # Of games.
    dissatisfaction: Mapping[str, Dissatisfaction] | None = None
    utilities: Mapping[str, Utility] = field(default_factory=dict)
    probability: float = 0.0
    at_most: float = math.inf
    budget: float = math.inf
    evaluations: int = 0
    # Of hosts.
    is_nested: bool = False
    baseline: Baseline | None = None
    new_data_interval: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        answer: Recommendation,
        sign: float,
        params: dict[str, Any],
        level: Any = None,
        **more: Any,
    ) -> Answer:
        """Translate a policy's answer about the arm of these `params`; `sign` is -1 to minimise."""
        low, high = sorted(sign * bound for bound in answer.interval)
        own = {"mean": sign * answer.mean, "interval": (low, high), "level": level}
        return cls(params=params, **{**vars(answer), **own, **more})

    @classmethod
    def of_game(cls, found: Equilibrium, params: dict[str, Any], reason: str) -> Answer:
        """Translate a game's answer, whose utilities are in the directions of their players."""
        names = ("finished", "cost", "budget", "epsilon", "probability", "at_most")
        shared = {name: getattr(found, name) for name in (*names, "dissatisfaction", "utilities")}
        return cls(
            params=params,
            reason=reason,
            pulls=found.n_queries,
            evaluations=found.n_evaluations,
            delta=1.0 - found.probability,
            certifies=False,
            **shared,
        )

    @property
    def trials(self) -> int:
        """The number of evaluations behind it, as hosts call them."""
        return self.pulls

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, as Ray Tune calls it."""
        return self.params

    @property
    def gain(self) -> float:
        """The mean of a choice of limits: what a trial gains, its time charged."""
        return self.mean

    @property
    def seconds(self) -> float:
        """The cost of a choice of limits: what all trials took."""
        return self.cost

    def because(self, reason: str) -> Answer:
        """Return the answer with another reason, that of its certificate included."""
        certificate = self.certificate and replace(self.certificate, reason=reason)
        return replace(self, reason=reason, certificate=certificate)

    def stopped_by(self, limit: str) -> Answer:
        """Return the answer of an experiment that a limit has ended, which is the reason."""
        if self.searched and self.certificate is None:
            why = "before finalists were compared; the mean is that of the search itself"
            return self.because(f"{limit} was over {why}")
        return self.because(f"{limit} is over and {self.reason}")

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values (None for what is not finite)."""
        names: tuple[str, ...] = _OF_RACES + _OF_SEARCHES * self.searched
        if self.censored is not None:
            names = _OF_LIMITS
        elif self.dissatisfaction is not None:
            names = _OF_GAMES
        names += ("baseline",) * (self.baseline is not None and not self.searched)
        names += ("new_data_interval",) * (self.new_data_interval is not None)
        content = {**asdict(self), "gain": self.gain, "seconds": self.seconds}
        content["trials"] = self.trials
        if self.certificate is not None:
            content["certificate"] = self.certificate.to_dict()
        content["baseline"] = self.baseline and self.baseline.to_dict()
        content["survival"] = [point._asdict() for point in self.survival]
        return {name: plain(content[name]) for name in names}

    def __str__(self) -> str:
        if self.censored is not None:
            lines = _limits_in_words(self, self.censored)
        elif self.dissatisfaction is not None:
            lines = _game_in_words(self, self.dissatisfaction)
        else:
            lines = _search_in_words(self) if self.searched else _race_in_words(self)
        if self.new_data_interval is not None:
            lines.append(new_data_in_words(self.new_data_interval, self.delta))
        return "\n".join(lines)


def _race_in_words(answer: Answer) -> list[str]:
    low, high = answer.interval
    conditions, is_exact = answer.conditions, answer.is_exact
    wrong = wrong_in_words(answer.delta, conditions, is_exact, "the interval" * answer.certified)
    if not answer.certifies:
        head, claim = "BEST SO FAR", f"interval    {wrong}"
    elif answer.certified:
        head = "CERTIFIED"
        claim = (
            f"claim       within epsilon = {answer.epsilon:.3g} of the best of the "
            f"{answer.compared} arms that were compared, {wrong}"
        )
    else:
        head = "NOT CERTIFIED"
        claim = f"aim         epsilon = {answer.epsilon:.3g}, delta = {answer.delta:g}"
    failed = ""
    if answer.failures:
        pulls = answer.trials + answer.failures
        failed = f"; failed {answer.failures} of {pulls}, and all values are those of the others"
    lines = [
        f"{head}: {params_in_words(answer.params, answer.is_nested)}",
        *([] if answer.baseline is None else [f"  baseline    {answer.baseline}"]),
        f"  mean        {answer.mean:.5g} at level {cut(str(answer.level))}; at the target "
        f"fidelity in [{low:.5g}, {high:.5g}]",
        f"  {claim}",
        f"  about       {FIXED}",
        f"  {'because' if answer.certifies else 'note':12}{answer.reason}",
        f"  cost        {answer.cost:.6g} in {answer.trials} trials{failed}",
    ]
    if answer.unseen and answer.certifies:
        lines.append(f"  not excluded  {answer.unseen}")
    lines += [f"  not compared  {arm}" for arm in answer.not_compared]
    lines += [f"  notice      {notice}" for notice in answer.notices]
    if answer.certifies and not answer.certified:
        guess = "not known yet"
        if answer.remaining_cost is not None:
            guess = f"about {answer.remaining_cost:.3g} more"
            if math.isinf(answer.remaining_cost):
                guess = never_in_words(answer.epsilon)
        lines.append(f"  to certify  {guess}")
    return lines + [f"  rests on    {assumption}" for assumption in answer.assumptions]


def _search_in_words(answer: Answer) -> list[str]:
    tried = f"  search      {answer.tried} configurations tried, "
    tried += f"{answer.at_target} of them at the target"
    if answer.earlier:
        tried += f"; {answer.earlier} of the first came from earlier results, which are no evidence"
    if answer.left:
        tried += f"; {left_in_words(answer.left)}"
    if answer.chance is not None:
        chance = "more than 0.99" if answer.chance >= 0.995 else f"{answer.chance:.2f}"
        tried += (
            f"\n  model       {chance} likely to be within epsilon of the best at the target; an "
            f"estimate, not certified"
        )
    if answer.stopped:
        limits = "trial at its limit" if answer.stopped == 1 else "trials at their limits"
        tried += f"\n  stopped     {answer.stopped} {limits}"
    paid = f"{answer.cost:.6g} in {answer.trials} trials"
    today = [] if answer.baseline is None else [f"  baseline    {answer.baseline}"]
    if (found := answer.certificate) is not None:
        alone = today if found.baseline is None else []
        return [str(found), *alone, tried, f"  paid        {paid}, search and certificate"]
    head = "NOT CERTIFIED" if answer.finished else "BEST SO FAR"
    lines = [f"{head}: {params_in_words(answer.params, answer.is_nested) or 'nothing yet'}"]
    lines += today
    if not math.isnan(answer.mean):
        at = "" if answer.level is None else f" at level {cut(str(answer.level))}"
        lines.append(f"  mean        {answer.mean:.5g}{at}, not certified")
    lines += [f"  because     {answer.reason}", f"  cost        {paid}"]
    return [*lines, *(f"  notice      {notice}" for notice in answer.notices), tried]


def _limits_in_words(answer: Answer, censored: float) -> list[str]:
    low, high = answer.interval
    params = params_in_words(answer.params, answer.is_nested)
    limit = "no limit yet" if answer.limit is None else f"limit {answer.limit:.4g} s"
    lines = [
        f"BEST SO FAR: {params or 'nothing'}, {limit}",
        f"  gain        {answer.gain:.5g}  in [{low:.5g}, {high:.5g}], time charged",
        f"  interval    {bounds_in_words(answer.delta, answer.estimated)}",
        f"  about       {FIXED}",
    ]
    lines += [
        f"  stopped     with probability {point.probability:.2f}  in "
        f"[{point.low:.2f}, {point.high:.2f}]"
        for point in answer.survival
        if point.limit == answer.limit
    ]
    lines += [
        f"  note        {answer.reason}",
        f"  cost        {answer.seconds:.4g} s in {answer.trials} trials, {censored:.0%} of them "
        f"stopped",
    ]
    lines += [f"  notice      {notice}" for notice in answer.notices]
    return lines + [f"  rests on    {assumption}" for assumption in answer.assumptions]


def _game_in_words(answer: Answer, gains: Mapping[str, Dissatisfaction]) -> list[str]:
    paid = (
        f"  cost        {answer.cost:.6g} of {answer.budget:.6g} in {answer.trials} trials, "
        f"{answer.evaluations} of them at the target fidelity"
    )
    because = f"  because     {answer.reason}"
    if not answer.params:
        return ["NO EQUILIBRIUM YET", because, paid]
    head = "EQUILIBRIUM" if answer.finished else "EQUILIBRIUM SO FAR"
    width = max(10, *map(len, gains))
    claim = (
        f"nobody gains more than {answer.epsilon:.3g} standard deviations of its objective by "
        f"deviating alone (at most {answer.at_most:.3g})"
    )
    if unknown := [player for player, gain in gains.items() if gain.mean == math.inf]:
        claim = f"none, for nothing was observed of {' and '.join(unknown)}"
    lines = [f"{head}: {params_in_words(answer.params)}", f"  claim       {claim}"]
    for player, gain in gains.items():
        utility = answer.utilities[player]
        lines.append(
            f"  {player:{width}}  {utility.mean:.5g} in [{utility.interval[0]:.5g}, "
            f"{utility.interval[1]:.5g}]; would gain {gain.mean:.4g} in "
            f"[{gain.interval[0]:.4g}, {gain.interval[1]:.4g}]"
        )
    intervals = (
        f"  intervals   each has probability {answer.probability:g}, by the models that go with "
        f"the trials; no guarantee"
    )
    return [*lines, because, paid, intervals]


def left_out_in_words(n: int, why: str) -> str:
    """Return the condition under which so many evaluations may be left out."""
    which = "the evaluation that was" if n == 1 else f"the {n} evaluations that were"
    why = why.replace("their process", "its process") if n == 1 else why
    return f"{which} left out, because {why}, {'was' if n == 1 else 'were'} like the others"


def losses_in_words(n: int, lease: float | None, may_have_worker: bool) -> tuple[str, ...]:
    """Return the conditions of a claim that rests on so many evaluations which were lost."""
    found = (left_out_in_words(n, "their process or the driver died"),) if n else ()
    which = "were given up" if lease is None else f"run for more than {lease:g} seconds"
    return (*found, f"evaluations that {which} have no worker") if may_have_worker else found
