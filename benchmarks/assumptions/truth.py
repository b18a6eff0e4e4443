"""Whether what an answer prints is true: its claim, and the facts that it states."""

import re
from collections import Counter
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from mfhpo.racing.sentences import unseen_share

_CLAIM = re.compile(r"within (?:epsilon = )?([-+.\de]+) of the best of (?:the )?(\d+)")
_NOT_COMPARED = re.compile(r"not compared  (?:arm|trial|candidate) (\d+).*: failed (\d+) of (\d+)")
_FAILED = re.compile(r"cost .*failed (\d+) of (\d+)")
_COST = re.compile(r"^ +cost +(\d+) evaluations", re.MULTILINE)
_TRIED = re.compile(r"^ +search +(\d+) configurations tried", re.MULTILINE)
_UNSEEN = re.compile(
    r"([\d.]+) % of (?:(?:evaluations|replicates) of )?(?:this arm|(?:arm|trial) (\d+))"
    r"[^()]*\((\d+) seen\)"
)
_LEFT = re.compile(r"(\d+) (?:left at (fidelity \d+)|(not tried))")
_WORSE = re.compile(r"^ +trial (\d+) .*\bworse\b", re.MULTILINE)


class Tally:
    """What was told of each arm.

    Attributes
    ----------
    values, failures
        Number of evaluations with and without a value, shape (K,).
    at_target
        Number of values at the target, shape (K,).
    tried
        Number of configurations that a search has tried; None: there was no search.
    left_at
        How many given configurations came to a level and no further, or were not tried.
    """

    def __init__(self, n_arms: int) -> None:
        self.values = np.zeros(n_arms, dtype=np.int64)
        self.failures = np.zeros(n_arms, dtype=np.int64)
        self.at_target = np.zeros(n_arms, dtype=np.int64)
        self.tried: int | None = None
        self.left_at: Counter[str] = Counter()
        self._seen_on: set[tuple[int, int]] = set()
        self._failed_on: set[tuple[int, int]] = set()

    def add(
        self, arm: int, value: float | None, at_target: bool = True, split: int | None = None
    ) -> None:
        """Count one evaluation, made on a `split` that arms share, or on one of its own."""
        if split is not None:
            self._seen_on.add((arm, split))
        if value is None:
            if split is not None:
                self._failed_on.add((arm, split))
            self.failures[arm] += 1
        else:
            self.values[arm] += 1
            self.at_target[arm] += at_target

    def outcomes(self, arm: int | None = None) -> list[tuple[int, int]]:
        """Number of failures and of all evaluations, of an arm or of all.

        Where splits are shared, an answer may count each of them once: that is the second pair.
        """
        arms = range(len(self.values)) if arm is None else [arm]
        failures = sum(int(self.failures[each]) for each in arms)
        found = [(failures, failures + sum(int(self.values[each]) for each in arms))]
        if self._seen_on:
            kinds = (self._failed_on, self._seen_on)
            failed, seen = (sum(each in arms for each, _ in kind) for kind in kinds)
            found.append((failed, seen))
        return found


def claim_fails(
    text: str, winner: int | None, means: npt.NDArray[np.float64], not_compared: Collection[int]
) -> bool:
    """Whether the claim of a printed answer is not so.

    Parameters
    ----------
    text
        The printed answer.
    winner
        The arm that it is for.
    means
        True means at the target, shape (K,).
    not_compared
        The arms of which the text says that they were not compared.

    Returns
    -------
    bool
        Whether the arm is farther from the best of those compared than the text says, or the best
        of them is said to be worse than another.

    Examples
    --------
    >>> text = "claim  within 0.1 of the best of the 2 compared, of the 3 best of 9 trials"
    >>> claim_fails(text, 0, np.array([0.5, 0.55, 0.9]), [2])
    False
    >>> claim_fails(text, 0, np.array([0.5, 0.65, 0.9]), [2])
    True
    """
    compared = np.array([arm not in not_compared for arm in range(len(means))])
    if not compared.any():
        return False
    best = np.flatnonzero(compared & (means >= means[compared].max()))
    worse = {int(arm) for arm in _WORSE.findall(text)}
    if worse.issuperset(best.tolist()):
        return True
    found = _CLAIM.search(text)
    if found is None or winner is None:
        return False
    # What is printed is rounded to three digits.
    return bool(means[best[0]] - means[winner] > float(found[1]) * 1.005 + 1e-9)


def false_facts(
    text: str, winner: int | None, tally: Tally, exact: bool = True, delta: float = 0.05
) -> list[str]:
    """Which facts that a printed answer states are not so; empty if all are.

    Parameters
    ----------
    text
        The printed answer.
    winner
        The arm that it is for.
    tally
        What was told.
    exact
        Whether all that was told counts; else some of it may still wait for its turn.
    delta
        The error probability of the answer.

    Examples
    --------
    >>> tally = Tally(3)
    >>> for arm, value in [(0, 1.0), (0, 1.1), (1, 0.5), (2, None)]:
    ...     tally.add(arm, value)
    >>> false_facts("cost 4; failed 1 of 4, ...", 0, tally)
    []
    >>> false_facts("within 0.1 of the best of the 3 arms", 0, tally)
    ['arm 2: compared without a value']
    >>> false_facts("not excluded  outcomes rarer than 95 % of this arm (3 seen)", 0, tally)
    ['arm 0: 3 seen', '95 % unseen of 3']
    """
    false = []

    def check(said: int, so: int, words: str) -> None:
        if said > so or (exact and said != so):
            false.append(words)

    def check_outcomes(failed: str, of: str, arm: int | None, words: str) -> None:
        counts = tally.outcomes(arm)
        pair = min(counts, key=lambda pair: (pair != (int(failed), int(of)), counts.index(pair)))
        check(int(failed), pair[0], f"{words}failed {failed}")
        check(int(of), pair[1], f"{words}{of} evaluations")

    out = {int(arm) for arm, _, _ in _NOT_COMPARED.findall(text)}
    for arm, failed, of in _NOT_COMPARED.findall(text):
        check_outcomes(failed, of, int(arm), f"arm {arm}: ")
    if found := _CLAIM.search(text):
        if int(found[2]) != len(tally.values) - len(out):
            false.append(f"{found[2]} compared")
        # An arm without any value cannot have been compared.
        never = np.flatnonzero(tally.values == 0)
        false += [f"arm {arm}: compared without a value" for arm in never if arm not in out]
    if found := _FAILED.search(text):
        check_outcomes(found[1], found[2], None, "")
    elif exact and "cost" in text and tally.failures.any():
        false.append("no failures")
    if found := _COST.search(text):
        check(int(found[1]), tally.outcomes()[0][1], f"cost {found[1]}")
    if found := _TRIED.search(text):
        check(int(found[1]), tally.tried or 0, f"{found[1]} tried")
    for n, level, untried in _LEFT.findall(text):
        if int(n) != tally.left_at[level or untried]:
            false.append(f"{n} {level or untried}")
    for share, name, seen in _UNSEEN.findall(text):
        who = int(name) if name else winner
        # A group-sequential look counts equally many of each, the others wait for the next one.
        if who is not None and int(seen) > tally.at_target[who]:
            false.append(f"arm {who}: {seen} seen")
        if abs(float(share) / 100.0 - unseen_share(int(seen), delta)) > 0.006:
            false.append(f"{share} % unseen of {seen}")
    return false


def unseen_percent(text: str) -> float:
    """The largest share of outcomes that a text says is not excluded; 0 if it says nothing."""
    return max((float(share) for share, _, _ in _UNSEEN.findall(text)), default=0.0)
