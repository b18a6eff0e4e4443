"""The pulls of a race that are begun and not told yet, and whose turn it is to be told."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from mfhpo import Labels, Policy, Pull, Recommendation
from mfhpo.racing.in_order import InOrder, in_turn, most_held
from mfhpo.search import Replicate
from mfhpo_ray.experiment.pulls import Ended, UnderWay

# How often an arm and fidelity whose pulls wait like this is passed over for what the race wants
# besides it. A policy that takes turns lets the others get so many pulls ahead.
MOST_PASSED_OVER = 4
# A reason names so many of the trials that are waited for.
_MOST_NAMED = 3
# Arm, fidelity, and whether it is for a certificate: pulls of a kind are told in order.
_Kind: TypeAlias = tuple[int, int, bool]


@dataclass(frozen=True)
class WaitedFor:
    """A pull under way that holds back later ones which have ended."""

    trial_id: str | None  # None if it is not known, as after a restart
    pull: Pull
    n_held: int  # how many pulls of its arm and fidelity have ended and wait for it

    def in_words(self, labels: Labels) -> str:
        """Return which trial it is, and how many wait for it."""
        trial = "a trial" if self.trial_id is None else f"trial {self.trial_id}"
        return (
            f"{trial} of {labels.arm(self.pull.arm)} at {labels.fidelity(self.pull.fidelity)} "
            f"({self.n_held} later ones have ended)"
        )


def with_waiting(
    answer: Recommendation, waits: Iterable[WaitedFor], labels: Labels
) -> Recommendation:
    """Return an answer that names the trials for which others wait, if there are any."""
    waits = sorted(waits, key=lambda each: -each.n_held)
    if answer.finished or not waits:
        return answer
    parts = [each.in_words(labels) for each in waits[:_MOST_NAMED]]
    if len(waits) > _MOST_NAMED:
        parts.append(f"and {len(waits) - _MOST_NAMED} more")
    reason = (
        f"{answer.reason}; values count in the order in which trials began, and the race waits for "
        f"{', '.join(parts)}"
    )
    return replace(answer, reason=reason)


def is_spent(policy: Policy, held_cost: float) -> bool:
    """Return whether the results that wait, once told, would end the race."""
    policy.held_cost = held_cost
    finished = policy.finished
    policy.held_cost = 0.0
    return finished


class OpenPulls:
    """Pulls that are under way, each in a trial, and those that wait for earlier ones to end.

    Parameters
    ----------
    in_order
        Whether pulls of one arm and fidelity are told in the order in which they were begun; else
        as they end. Those for a certificate are apart from a search's.
    """

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self._under_way: dict[str, UnderWay] = {}
        self._orders: defaultdict[_Kind, InOrder[Ended]] = defaultdict(InOrder)
        self._most_under_way = 0

    def __len__(self) -> int:
        """Return the number of pulls under way."""
        return len(self._under_way)

    @property
    def has_begun(self) -> bool:
        """Whether there was any pull yet."""
        return bool(self._orders)

    @property
    def trial_ids(self) -> list[str]:
        """Trials that evaluate a pull."""
        return list(self._under_way)

    @property
    def unannounced(self) -> list[str]:
        """Trials of a restored state that have not shown since that they run."""
        return [
            trial_id
            for trial_id, begun in self._under_way.items()
            if begun.restored and begun.resources is None and begun.seconds is None
        ]

    @property
    def pending(self) -> list[Pull]:
        """Pulls that the policy was not told about."""
        held = [ended.pull for ended in self.held]
        return [*(begun.pull for begun in self._under_way.values()), *held]

    @property
    def held(self) -> list[Ended]:
        """Pulls that have ended and wait for earlier ones."""
        return [ended for order in self._orders.values() for _, ended in order.held]

    def get(self, trial_id: str) -> UnderWay | None:
        """Return the pull that a trial evaluates, or None."""
        return self._under_way.get(trial_id)

    def begin(self, trial_id: str, pull: Pull, now: float) -> int:
        """Note that a trial evaluates a pull, and return how many like it were begun before."""
        order = self._orders[_kind_of(pull)]
        replicate = order.begin()
        self._under_way[trial_id] = UnderWay(pull, replicate, now)
        self._most_under_way = max(self._most_under_way, len(self._under_way))
        return replicate

    def is_full(self, pull: Pull) -> bool:
        """Return whether too many pulls of this kind wait for an earlier one to begin another."""
        order = self._orders.get(_kind_of(pull))
        return order is not None and len(order.held) >= most_held(self._most_under_way)

    @property
    def waited_for(self) -> list[WaitedFor]:
        """First pulls, by arm and fidelity, that hold back others which have ended."""
        trial_ids = {
            (_kind_of(begun.pull), begun.replicate): trial_id
            for trial_id, begun in self._under_way.items()
        }
        found = []
        for kind, order in self._orders.items():
            if held := order.held:
                trial_id = trial_ids.get((kind, order.awaited[0]))
                found.append(WaitedFor(trial_id, held[0][1].pull, len(held)))
        return found

    def end(self, ended: Ended) -> list[Ended]:
        """Note that a pull has ended, and return those that are to be told now, in order.

        Failures wait for their turn too: quick ones would make an arm look worse than it is. After
        a restart, another trial may have begun the same pull again: it is dropped.
        """
        for trial_id, begun in list(self._under_way.items()):
            if begun.pull == ended.pull and begun.replicate == ended.replicate:
                del self._under_way[trial_id]
        order = self._orders[_kind_of(ended.pull)]
        if not self._in_order:
            order.drop(ended.replicate)
            return [ended]
        return order.end(ended.replicate, ended)

    def drop(self, trial_ids: Iterable[str]) -> list[Ended]:
        """Drop the pulls of some trials, and return those that are to be told now, in order."""
        released = []
        for trial_id in trial_ids:
            begun = self._under_way.pop(trial_id, None)
            if begun is not None:
                released += self._orders[_kind_of(begun.pull)].drop(begun.replicate)
        return _in_turn(released)

    # After a restart.

    def foresee(self, ends: Collection[Ended]) -> None:
        """Begin all pulls that were begun before some that have ended."""
        for ended in ends:
            order = self._orders[_kind_of(ended.pull)]
            while order.begun <= ended.replicate:
                order.begin()

    def drop_lost(self) -> tuple[list[Pull], list[Ended]]:
        """Drop the pulls that no trial evaluates; return them, and what is to be told now."""
        kept = {(_kind_of(begun.pull), begun.replicate) for begun in self._under_way.values()}
        lost: list[Pull] = []
        released = []
        for kind, order in self._orders.items():
            arm, fidelity, certifies = kind
            for replicate in order.awaited:
                if (kind, replicate) not in kept:
                    lost.append((Replicate if certifies else Pull)(arm, fidelity))
                    released += order.drop(replicate)
        return lost, _in_turn(released)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        return {
            "under_way": {name: begun.state_dict() for name, begun in self._under_way.items()},
            "most_under_way": self._most_under_way,
            "orders": [
                {
                    "kind": list(kind),
                    "begun": order.begun,
                    "awaited": order.awaited,
                    "held": [ended.to_record() for _, ended in order.held],
                }
                for kind, order in self._orders.items()
            ],
        }

    def load_state_dict(self, state: Mapping[str, Any], now: float) -> None:
        """Go on from a saved state, whose trials begin anew."""
        self._under_way = {
            name: UnderWay.from_state_dict(begun, now) for name, begun in state["under_way"].items()
        }
        self._most_under_way = int(state["most_under_way"])
        self._orders.clear()
        for saved in state["orders"]:
            arm, fidelity, certifies = saved["kind"]
            held = map(Ended.from_record, saved["held"])
            order = self._orders[int(arm), int(fidelity), bool(certifies)]
            order.load(
                int(saved["begun"]), saved["awaited"], [(ended.replicate, ended) for ended in held]
            )


def _kind_of(pull: Pull) -> _Kind:
    return int(pull.arm), int(pull.fidelity), isinstance(pull, Replicate)


def _in_turn(released: Iterable[Ended]) -> list[Ended]:
    return in_turn(
        released,
        kind=lambda ended: _kind_of(ended.pull),
        beginning=lambda ended: ended.replicate,
        end=lambda ended: ended.number,
    )
