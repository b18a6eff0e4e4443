"""Trials that have ended and wait for earlier ones to end."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from optuna.trial import FrozenTrial

from mfhpo import Observation, Pull
from mfhpo.racing.in_order import in_turn, most_held
from mfhpo_optuna.study.trials.under_way import Running

_Moment: TypeAlias = tuple[datetime, int]  # when a trial began, and its number
_NEVER: _Moment = (datetime.max, 0)


@dataclass(frozen=True)
class Ended:
    """A trial that has ended and is not told yet."""

    number: int
    since: datetime | None
    pull: Pull
    observation: Observation | None  # None: it has its turn, but nothing to tell


class Turns:
    """Releases results in the order in which their trials began, per configuration and level.

    Unlike `mfhpo.racing.in_order.InOrder`, it gives out no tickets: the storage says when trials
    began, and one under way may turn out to be of another arm and level than its tag says.

    A trial under way holds back one that has ended if it began earlier and may be of the same arm
    and level. Pulls of the search hold back no replicates of its certificate. Kinds of pulls are
    compared, because they are far fewer than trials where there are hundreds of workers.
    """

    def __init__(
        self,
        running: dict[int, Running],
        equal_arms: Callable[[Pull, Collection[int]], Iterable[int]],
    ) -> None:
        self._running = running  # by number; kept up to date by the caller
        self._equal_arms = equal_arms  # those of which a trial may turn out to count for a pull
        self.waiting: dict[int, Ended] = {}  # in the order of their ends
        self.given_up: set[int] = set()  # under way, but not waited for any longer

    def end(self, trial: FrozenTrial, pull: Pull, observation: Observation | None) -> None:
        """Take what came of a trial, which waits until it is released."""
        self.waiting[trial.number] = Ended(trial.number, trial.datetime_start, pull, observation)

    def release(self) -> Iterator[Ended]:
        """Take out what nothing holds back any longer, in the order in which it is to be told."""
        if not self.waiting:
            return
        first: dict[tuple[type[Pull], int, int | None], _Moment] = {}
        for number, running in self._running.items():
            if number not in self.given_up:
                level = None if running.level_is_open else running.pull.fidelity
                kind = type(running.pull), running.pull.arm, level
                began = _beginning(running.since, number)
                first[kind] = min(first.get(kind, began), began)
        ready, arms = [], self._arms_under_way()
        for alike in self._waiting_by_kind():
            pull = alike[0].pull
            until = min(
                first.get((type(pull), arm, level), _NEVER)
                for arm in {pull.arm, *self._equal_arms(pull, arms)}
                for level in (pull.fidelity, None)
            )
            ready += alike[: bisect_left(alike, until, key=_began)]
        ended_as = {number: position for position, number in enumerate(self.waiting)}
        for ended in in_turn(
            ready,
            kind=lambda ended: (ended.pull.arm, ended.pull.fidelity),
            beginning=_began,
            end=lambda ended: ended_as[ended.number],
        ):
            yield self.waiting.pop(ended.number)
        self.waiting = dict(self.waiting)  # going through one that was large would stay slow

    def give_up(self, ending: int | None, is_expired: Callable[[int], bool]) -> None:
        """Wait no longer for trials that hold back many others, or some though they are expired.

        The one that ends at this moment is waited for.
        """
        # What trials of an arm hold back, if they began earlier.
        lines: dict[tuple[type[Pull], int], list[tuple[int, list[_Moment]]]] = defaultdict(list)
        arms = self._arms_under_way()
        for alike in self._waiting_by_kind():
            pull = alike[0].pull
            moments = [_began(ended) for ended in alike if ended.observation is not None]
            for arm in {pull.arm, *self._equal_arms(pull, arms)}:
                lines[type(pull), arm].append((pull.fidelity, moments))
        for number, running in self._running.items():
            if number == ending or number in self.given_up:
                continue
            began = _beginning(running.since, number)
            held = sum(
                len(moments) - bisect_left(moments, began)
                for level, moments in lines.get((type(running.pull), running.pull.arm), ())
                if running.level_is_open or level == running.pull.fidelity
            )
            if held >= most_held(len(self._running)) or (held and is_expired(number)):
                self.given_up.add(number)

    def _waiting_by_kind(self) -> list[list[Ended]]:
        kinds: dict[tuple[type[Pull], int, int], list[Ended]] = defaultdict(list)
        for ended in sorted(self.waiting.values(), key=_began):
            kinds[type(ended.pull), ended.pull.arm, ended.pull.fidelity].append(ended)
        return list(kinds.values())

    def _arms_under_way(self) -> set[int]:
        return {running.pull.arm for running in self._running.values()}


def _began(ended: Ended) -> _Moment:
    return _beginning(ended.since, ended.number)


def _beginning(since: datetime | None, number: int) -> _Moment:
    return since or datetime.min, number
