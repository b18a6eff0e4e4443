"""The answer of an experiment, whatever its kind, in the terms of whoever asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mfhpo.censored.recommendation import UserLimitRecommendation
from mfhpo.games.equilibrium import Equilibrium
from mfhpo.racing.recommendation import UserRecommendation
from mfhpo.search.recommendation import UserSearchRecommendation


@dataclass(frozen=True, kw_only=True)
class Answer(UserSearchRecommendation):
    """Which configuration to be content with, and how sure that is.

    Fields that concern a search have their defaults elsewhere. For the other ones see
    `mfhpo.racing.recommendation.UserRecommendation` and
    `mfhpo.search.recommendation.UserSearchRecommendation`.

    Parameters
    ----------
    searched
        Whether it is the answer of a search, whose claims are about a shortlist.
    time_limit
        The answer of a choice of time limits, in full: `mean` is the gain.
    equilibrium
        The answer of a game, in full: the configuration is its profile.
    new_data_interval
        About the expected score on new data of the same kind, where evaluations are scores on
        random splits of data (`mfhpo.certification.new_data`): approximate, and infinite where too
        little is known. None: evaluations are not of that kind.
    """

    searched: bool = False
    time_limit: UserLimitRecommendation | None = None
    equilibrium: Equilibrium | None = None
    new_data_interval: tuple[float, float] | None = None

    def stopped_by(self, limit: str) -> Answer:
        """Return the answer of an experiment that a limit has ended, which is the reason."""
        if not self.searched:
            return replace(self, reason=f"{limit} is over and {self.reason}")
        if self.certificate is None:
            reason = "before finalists were compared; the mean is that of the search itself"
            return replace(self, reason=f"{limit} was over {reason}")
        reason = f"{limit} is over and {self.certificate.reason}"
        certificate = replace(self.certificate, reason=reason)
        return replace(self, reason=reason, certificate=certificate)

    def __str__(self) -> str:
        if self.time_limit is not None:
            return str(self.time_limit)
        if self.equilibrium is not None:
            return str(self.equilibrium)
        words = super().__str__() if self.searched else UserRecommendation.__str__(self)
        if self.new_data_interval is None:
            return words
        return f"{words}\n{new_data_in_words(self.new_data_interval, self.delta)}"


def left_out_in_words(n: int, why: str) -> str:
    """Return the condition under which so many evaluations may be left out."""
    which = "the evaluation that was" if n == 1 else f"the {n} evaluations that were"
    why = why.replace("their process", "its process") if n == 1 else why
    return f"{which} left out, because {why}, {'was' if n == 1 else 'were'} like the others"


def losses_in_words(n: int, lease: float | None, may_have_worker: bool) -> tuple[str, ...]:
    """Return the conditions of a claim that rests on so many evaluations which were lost.

    Some of them may have a worker yet, as they were given up when their lease was over.
    """
    found = (left_out_in_words(n, "their process or the driver died"),) if n else ()
    which = "were given up" if lease is None else f"run for more than {lease:g} seconds"
    return (*found, f"evaluations that {which} have no worker") if may_have_worker else found


def new_data_in_words(interval: tuple[float, float], delta: float) -> str:
    """Return two lines: what the data at hand say, and what holds for new ones."""
    low, high = interval
    said = "nothing is known yet"
    if math.isfinite(high - low):
        said = (
            f"in [{low:.5g}, {high:.5g}], wrong with probability about {delta:g} "
            f"(approximate: corrected resampled variance, Nadeau and Bengio 2003)"
        )
    return (
        f"  these data  interval and claim are about random splits of these data\n"
        f"  new data    the score on new data of the same kind: {said}"
    )
