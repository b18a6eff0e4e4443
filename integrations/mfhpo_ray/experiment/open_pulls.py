"""The pulls of a race for which others wait."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mfhpo import Labels, Policy, Pull, Recommendation

# How often an arm and fidelity whose pulls wait like this is passed over for what the race wants
# besides it. A policy that takes turns lets the others get so many pulls ahead.
MOST_PASSED_OVER = 4
# A reason names so many of the trials that are waited for.
_MOST_NAMED = 3


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
