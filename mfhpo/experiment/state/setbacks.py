"""Evaluations that gave nothing, by which an experiment may have to stop."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_MOST_EARLY_FAILURES = 30  # before there was any value; or one for each candidate
_MOST_FOREIGN = 10  # evaluations in a row of something else than was claimed


@dataclass
class Setbacks:
    """Failures before any value, evaluations of something else, and those that others stopped.

    Parameters
    ----------
    n_candidates
        Each of them may fail at first.
    cut
        How often somebody else has stopped what a claim rests on, by the reason.
    """

    n_candidates: float
    cut: Counter[str] = field(default_factory=Counter)
    _early: int | None = 0  # failures; None: there was a value
    _foreign: str = ""  # the last evaluation of something else than was claimed
    _n_foreign: int = 0  # of them in a row
    _cut_last: list[str] = field(default_factory=list)  # the reasons of those in a row

    def note_own(self) -> None:
        """Take note of an evaluation of what was claimed."""
        self._n_foreign = 0
        self._cut_last.clear()

    def note_foreign(self, words: str) -> None:
        """Take note of an evaluation of something else."""
        self._n_foreign += 1
        self._foreign = words

    def note_cut(self, why: str, of_claim: bool) -> None:
        """Take note of an evaluation that somebody else has stopped."""
        self._cut_last.append(why)
        self.cut[why] += of_claim

    def note_result(self, has_value: bool, is_stopped: bool) -> None:
        """Take note of a result that was learned."""
        if has_value:
            self._early = None
        elif self._early is not None and not is_stopped:
            self._early += 1

    @property
    def are_hopeless(self) -> bool:
        """True if so many failed at first that nothing may ever work: each candidate, too."""
        return (self._early or 0) >= max(_MOST_EARLY_FAILURES, self.n_candidates)

    @property
    def are_cut_off(self) -> bool:
        """True if somebody else has stopped so many evaluations in a row."""
        return len(self._cut_last) >= _MOST_FOREIGN

    def in_words(self) -> str:
        """Return why the experiment stops."""
        if self.are_hopeless:
            return f"all of the first {self._early} evaluations failed"
        n, why = len(self._cut_last), self._cut_last[-1]
        return f"the last {n} evaluations gave nothing, because {why}"

    def check(self) -> None:
        """Raise ValueError if many evaluations in a row were of something else than claimed."""
        if self._n_foreign >= _MOST_FOREIGN:
            raise ValueError(
                f"the last {self._n_foreign} evaluations were of something else than was asked "
                f"for: {self._foreign}. Evaluate each configuration at its level, as assigned."
            )
