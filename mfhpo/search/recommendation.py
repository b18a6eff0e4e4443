"""The answer of a search in the terms of whoever asked."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mfhpo.certification.certificate import Certificate
from mfhpo.racing.recommendation import UserRecommendation, cut, params_in_words


@dataclass(frozen=True, kw_only=True)
class UserSearchRecommendation(UserRecommendation):
    """Which of the configurations that a search has tried to be content with, and how sure that is.

    What the other fields say about a certificate is about the shortlist alone.

    Parameters
    ----------
    tried, at_target
        Number of configurations that were tried at any level, and at the target.
    left
        How many configurations are not at the target, by where they were left.
    chance
        By the search's model, the probability that no other configuration of those at the target is
        better by more than epsilon. It is an estimate, not certified; None without a model, and
        where evaluations share replicates.
    stopped, saved
        Number of trials that were stopped at their limits of time or memory, and the cost that this
        saved where seconds are measured: a guess, by which a configuration that did not end later
        takes twice as long as its last limit.
    certificate
        What the evaluations of the shortlist say. None during the search.
    """

    tried: int = 0
    at_target: int = 0
    left: dict[str, int] = field(default_factory=dict)
    chance: float | None = None
    stopped: int = 0
    saved: float = 0.0
    certificate: Certificate | None = None

    def __str__(self) -> str:
        tried = (
            f"  search      {self.tried} configurations tried, {self.at_target} of them at the "
            f"target"
        )
        if self.left:
            tried += f"; {left_in_words(self.left)}"
        if self.chance is not None:
            tried += (
                f"\n  model       {chance_in_words(self.chance)} likely to be within epsilon of "
                f"the best at the target; an estimate, not certified"
            )
        if self.stopped:
            limits = "trial at its limit" if self.stopped == 1 else "trials at their limits"
            tried += f"\n  stopped     {self.stopped} {limits}"
        if self.saved > 0.0:
            tried += f", which saved about {self.saved:.3g} if they take twice as long"
        if self.certificate is not None:
            paid = f"  paid        {self.cost:.6g} in {self.trials} trials, search and certificate"
            return f"{self.certificate}\n{tried}\n{paid}"
        params = params_in_words(self.params)
        head = "NOT CERTIFIED" if self.finished else "BEST SO FAR"
        lines = [f"{head}: {params or 'nothing yet'}"]
        if not math.isnan(self.mean):
            at = "" if self.level is None else f" at level {cut(str(self.level))}"
            lines.append(f"  mean        {self.mean:.5g}{at}, not certified")
        lines.append(f"  because     {self.reason}")
        lines.append(f"  cost        {self.cost:.6g} in {self.trials} trials")
        lines += [f"  notice      {notice}" for notice in self.notices]
        return "\n".join([*lines, tried])


def chance_in_words(chance: float) -> str:
    """Return a model's estimate of a probability as it is printed."""
    return "more than 0.99" if chance >= 0.995 else f"{chance:.2f}"


def left_in_words(left: Mapping[str, int]) -> str:
    """Return in words where configurations were left."""
    return ", ".join(f"{n} {where}" for where, n in left.items())


def failures_in_words(failures: Mapping[int, int], name: Callable[[int], str]) -> str:
    """Return in words how many evaluations failed at each level.

    Examples
    --------
    >>> failures_in_words({0: 9, 1: 2}, "epochs={}".format)
    '9 at epochs=0, 2 at epochs=1'
    """
    return ", ".join(f"{n} at {name(level)}" for level, n in sorted(failures.items()) if n)
