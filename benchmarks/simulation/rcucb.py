"""Rounds of policies that choose time limits, fast: as by ask and tell in turn."""

import numpy as np

from benchmarks.simulation.compiled import compiled
from benchmarks.simulation.draws import Draw, Draws
from benchmarks.simulation.rcucb_loop import (
    DRAWS,
    HELPERS,
    REFINE,
    new_ceilings,
    play_rounds,
)
from mfhpo._validation import check_count
from mfhpo.censored import CensoredPolicy
from mfhpo.censored.limits import planned_rounds
from mfhpo.knowledge.arrays import FloatArray, IntArray


def play(policy: CensoredPolicy, draw: Draw, rounds: int) -> None:
    """Play rounds at once.

    ``draw(arm, size)`` gives an arm's next rewards and seconds. They are drawn ahead, and what is
    left of them is dropped at the end. Fewer rounds are played if the horizon is reached. Raises
    ValueError if limits or the range of the rewards are still to be found out, or what is drawn is
    not finite.
    """
    rounds = check_count("rounds", rounds, 0)
    estimates = policy._known()
    if policy.history.declared is None:
        raise ValueError("reward_range=None: rounds can be played at once with a declared one.")
    if policy.horizon is not None:
        rounds = min(rounds, policy.horizon - policy.pulls)
    loop = compiled(play_rounds, *HELPERS)
    ceilings = new_ceilings(estimates.tallies, estimates.latest)
    draws = Draws(draw, estimates, policy.n_arms)
    while rounds > 0 and policy.active.size:
        block = draws.block(min(rounds, _rounds_at_this_level(policy)))
        ceilings.latest[0] = 0  # the rule may be another one
        reason, played, arm = DRAWS, 0, -1
        try:
            while reason == DRAWS:
                if arm >= 0:
                    draws.fill(arm)
                reason, played, arm = loop(
                    estimates.tallies,
                    estimates.rule,
                    ceilings,
                    block,
                    played,
                    policy.pulls,
                )
        finally:
            # Also if a draw failed: the estimates have learned from these.
            _note_plays(policy, block.arms[:played], block.notes[:played])
            estimates.latest = int(ceilings.latest[1]), int(ceilings.latest[2])
        rounds -= played
        if reason == REFINE and policy._refinement is not None:
            policy._refinement.split(estimates, policy.history)
            ceilings = new_ceilings(estimates.tallies, estimates.latest)


def _rounds_at_this_level(policy: CensoredPolicy) -> int:
    """Return how many rounds may be played before the rule changes."""
    if policy._refinement is None:
        return 1 << 20
    policy._set_level(policy._known())
    return planned_rounds(policy.horizon, policy.pulls) - policy.pulls


def _note_plays(policy: CensoredPolicy, arms: IntArray, notes: FloatArray) -> None:
    """Take a block of plays into the history: arms (N,); limit, reward and seconds (N, 3)."""
    policy.history.add_all(arms, notes)
    policy.cost += float(np.minimum(notes[:, 0], notes[:, 2]).sum())
    policy._known().kept.clear()
    seen = notes[~np.isnan(notes[:, 1]), 1]
    if seen.size:
        policy.history.check(float(seen.min()), policy.labels)
        policy.history.check(float(seen.max()), policy.labels)
