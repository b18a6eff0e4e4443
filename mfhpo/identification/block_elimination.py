"""Elimination in blocks: all that are left are evaluated with the same split or seed."""

import math
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.identification.likelihood.blocks import (
    PRIOR,
    Blocks,
    exists,
    first_in_turn,
    remaining_cost,
)
from mfhpo.identification.likelihood.finite_set import FiniteSet
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.noise import Bounded, Gaussian, Noise, NoiseContradictedWarning
from mfhpo.problem import Problem, Pull, Recommendation, check_pulls
from mfhpo.racing.evidence import surest_at_target
from mfhpo.racing.extra_pulls import lacking, usually_lacking
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict

_FIRST_LOOK = 2  # rounds before which nothing is decided, as all arms must take part in them

# After so many rounds in which all arms gave the same the race is over: where a tolerance was found
# to be 0, and where it was given, as coarse scores may differ after many equal ones.
_ROUNDS_ALIKE = 10
_ROUNDS_ALIKE_FOR_GOOD = 100

# A value is odd so many absolute deviations below the median: once in a thousand normal values.
_ODD = 5.0


class Rounds:
    """The rule of `BlockElimination`."""

    def __init__(self, n_arms: int, finds_epsilon: bool, noise: Noise) -> None:
        self.blocks = Blocks(n_arms, in_order=True)
        self._set = FiniteSet(self.blocks, noise)
        self._finds_epsilon = finds_epsilon
        self._design: IntArray = np.arange(n_arms)  # the arms of the round under way
        # Blocks in which the winner and its closest rival are compared at the end; if they were.
        self._probes: list[int] = []
        self._is_probed = False
        self._n_repeated = 0  # evaluations that were made twice, when it was judged last
        self.needs = Needs(
            "no other arm can be better by more than epsilon on the same replicates",
            pilot=False,
            judges_failures=True,
            proposes_to_the_end=True,
            leader=self.leader,
            lacking=self.lacking,
            falls_short=self.falls_short,
            summary=self._set.summary,
            replicates=self._set.number,
            repeats=self._set.repeats,
            is_exact=self._set.is_exact,
            rests_on_noise=self._set.rests_on_noise,
            end=self.end,
            words=self.words,
            intake=self.blocks,
        )

    def plan(self, known: Known) -> None:
        """Do nothing: bias bounds and costs have no part here (see `Rule.plan`)."""

    def falls_short(self, known: Known, leader: int, others: IntArray, epsilon: float) -> float:
        """Return the missing evidence against others being better by epsilon, if above 0."""
        is_unsure = self._set.exact(known, leader, others).any() and not self._set.is_checked(known)
        if len(self.blocks.rounds) < self._first_look(known) or is_unsure:
            return math.inf
        evidence = self._set.evidence(known, leader, others, epsilon, known.threshold)
        return known.threshold - float(evidence.min())

    def _first_look(self, known: Known) -> int:
        return int(min(_FIRST_LOOK, self._set.size(known)))

    # Pulls.

    def propose(self, known: Known, expected: Expected) -> Pull | None:
        """Return the next pull, with its block (see `Rule.propose`)."""
        return self._open_pull(known, _taken(expected.pulls))

    def is_ahead(self, known: Known, pending: Sequence[Pull]) -> bool:
        """Tell whether to wait for pulls under way (see `BlockElimination.is_ahead`)."""
        taken = _taken(pending)
        pull = self._open_pull(known, taken)
        if not pending or pull is None or pull.block is None:
            return bool(pending)
        blocks, winner = self.blocks, known.winner
        if winner is not None:
            if pull.block != blocks.first_open(winner, taken.get(winner, set())):
                return False  # it is for a comparison
            out = blocks.void | blocks.given_up[winner]
            expected = pull.block - int(out[: pull.block].sum())
            counts = int(known.evidence.counts[winner, known.problem.target])
            missing = self._values_lacking(known, winner, usually_lacking(known, winner))
            return expected >= counts + sum(missing.values())
        # All arms take part in the first rounds, whatever comes.
        first = self._first_look(known)
        if blocks.place(pull.block) <= max(blocks.place(blocks.next_round), first - 1):
            return False
        settled = blocks.settled.sum(axis=1)
        waiting = int((settled - blocks.counts())[self._in_round(known)].sum())
        in_rounds = sum(int((~np.isnan(errors)).sum()) for errors in blocks.errors)
        return waiting > max(in_rounds, len(pending))

    def _open_pull(self, known: Known, taken: Mapping[int, set[int]]) -> Pull | None:
        if self._are_alike(known):
            return None
        winner = known.winner
        probed = [*self.blocks.rounds, *self._probes] if self._probes else []
        wanted = probed + self.blocks.doubtful().tolist()
        in_round = self._in_round(known)
        is_open = ~self.blocks.closed(in_round)
        for block in wanted:
            arms = in_round[is_open[:, block]].tolist() if exists(known, block) else []
            arms = [arm for arm in arms if block not in taken.get(arm, ())]
            if arms:
                return _first_pull(known, arms, block)
        for arm, block in self._set.repeats(known):
            if block not in taken.get(arm, ()):
                return Pull(arm, known.problem.target, block=block)
        candidates = in_round.tolist() if winner is None else list(self._duel(known)) or [winner]
        firsts = {arm: self.blocks.first_open(arm, taken.get(arm, set())) for arm in candidates}
        left = {block for block in firsts.values() if exists(known, block)}
        if not left:
            return None
        block = min(left, key=self.blocks.place)
        return _first_pull(known, [arm for arm in candidates if firsts[arm] == block], block)

    def end(self, known: Known) -> str:
        """Say why nothing is left to do (see `Needs.end`)."""
        if self._are_alike(known):
            same = "the arms that are left gave exactly the same values"
            return f"{same} on {len(self.blocks.rounds)} replicates"
        if known.most_blocks is None or self.blocks.values.shape[1] < known.most_blocks:
            return ""
        if known.arms.size > 0 and self._open_pull(known, {}) is None:
            return f"all {known.most_blocks} replicates were used"
        return ""

    def _are_alike(self, known: Known) -> bool:
        """Tell whether all arms have given the same on many replicates: none is ever told apart."""
        arms, rounds = known.arms, self.blocks.rounds
        is_found_to_be_0 = self._finds_epsilon and known.epsilon == 0.0
        least = _ROUNDS_ALIKE if is_found_to_be_0 else _ROUNDS_ALIKE_FOR_GOOD
        if arms.size < 2 or len(rounds) < least or self.blocks.counts()[arms].min() < len(rounds):
            return False
        if not self._set.rests_on_normality(known):
            return False
        values = self.blocks.values[arms][:, rounds]
        return bool((np.isnan(values) | (values == np.fmax.reduce(values, axis=0))).all())

    def _in_round(self, known: Known) -> IntArray:
        """Return the arms of the round under way that are still in the race, shape (n,)."""
        if duel := self._duel(known):
            return np.array(duel)
        design = self._design[known.roster.active[self._design]]
        return design if design.size else known.arms

    def _duel(self, known: Known) -> tuple[int, ...]:
        """Return the winner that lacks nothing and the baseline, if these alone go on."""
        return known.duel if known.duel and not lacking(known, known.duel[0]) else ()

    def lacking(self, known: Known, winner: int, usual: Mapping[int, int]) -> dict[int, int]:
        """Return what a winner lacks: values, or to be compared once more."""
        missing = self._values_lacking(known, winner, usual)
        if not missing and (repeated := self._set.repeats(known)):
            return {known.problem.target: len(repeated)}
        # Bounds leave nothing unseen that a comparison on odd replicates could show.
        is_probed = self._is_probed or not self._set.rests_on_normality(known)
        if not missing and known.roster.active[self._design].sum() > 1 and not is_probed:
            return {known.problem.target: max(1, len(self._probes))}
        return missing

    def _values_lacking(
        self, known: Known, winner: int, usual: Mapping[int, int]
    ) -> dict[int, int]:
        """Return how many values a winner lacks, at most as many as there may be."""
        if known.most_blocks is None:
            return dict(usual)
        given_up = self.blocks.given_up[winner] & ~self.blocks.void
        most = self.blocks.most_values(known) - int(given_up[: known.most_blocks].sum())
        left = int(most - known.evidence.counts[winner, known.problem.target])
        return {m: min(missing, left) for m, missing in usual.items() if left > 0}

    # Verdicts.

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield what complete rounds say (see `Rule.verdict`)."""
        if self._set.find_random(known):
            yield Verdict(reinstates=True, is_endless=True)
            warnings.warn(self._set.random, NoiseContradictedWarning, stacklevel=6)
        if fidelity is None or len(self.blocks.again) > self._n_repeated:
            self._n_repeated = len(self.blocks.again)
            yield self._decide(known)
        if self._has_ended(known) and not self._duel(known):
            return  # what was under way when the winner was certified opens no race again
        while self._duel(known) or not self._has_ended(known):
            block = yield from self._complete_block(known)
            if block is None:
                break
            self.blocks.complete_round(block, self._in_round(known))
            if not self._duel(known):
                yield self._decide(known)
        if known.certified is None and len(self.blocks.rounds) >= self._set.size(known):
            yield self._decide(known)  # no further round follows what an arm has caught up with
        winner = known.certified
        if winner is None or self._probes or not self._set.rests_on_normality(known):
            return
        if not self._values_lacking(known, winner, usually_lacking(known, winner)):
            self._probe(known, winner)

    def _has_ended(self, known: Known) -> bool:
        return known.certified is not None and not lacking(known, known.certified)

    def _complete_block(self, known: Known) -> Generator[Verdict, None, int | None]:
        """Return a block that is complete for the arms of the round; first free what waited."""
        if self.blocks.set_aside(self._in_round(known)):
            yield Verdict(certified=known.certified, frees=True)
        arms, done = self._in_round(known), set(self.blocks.rounds)
        if len(arms) < 2 or (self.blocks.counts()[arms] < len(done)).any():
            return None
        for block in self._probes or [self.blocks.next_round]:
            is_there = block not in done and block < self.blocks.values.shape[1]
            if is_there and self.blocks.settled[arms, block].all():
                return block
        return None

    def _probe(self, known: Known, winner: int) -> None:
        """Compare the winner with its closest rival where it alone did unusually badly, if ever.

        The choice can only speak against the winner.
        """
        behind = np.nanmedian(self.blocks.values[winner]) - self.blocks.values[winner]
        odd = np.flatnonzero(behind > _ODD * np.nanmedian(np.abs(behind)))
        self._probes = np.setdiff1d(odd, self.blocks.rounds).tolist()
        self._is_probed = not self._probes or len(self._in_round(known)) < 2

    def _decide(self, known: Known) -> Verdict:
        """Return what all complete rounds say, and choose the arms of the next one."""
        blocks, active = self.blocks, known.arms
        self._design = active.copy()
        if len(blocks.rounds) < self._first_look(known):
            return Verdict()
        if len(active) < 2:
            return Verdict(epsilon=known.epsilon)
        epsilon, is_normal = known.epsilon, self._set.rests_on_normality(known)
        if self._finds_epsilon:
            epsilon = known.scale if is_normal or math.isinf(self._set.size(known)) else 0.0
        leader = self._best_in_rounds(known)
        if leader is None:
            return Verdict(epsilon=epsilon)
        others, threshold = active[active != leader], known.threshold
        evidence = self._set.evidence(known, leader, others, epsilon, threshold)
        rival = others[[np.argmin(evidence)]]
        beaten = evidence >= threshold
        worse = beaten.copy()
        worse[beaten] = self._set.worse(known, leader, others[beaten], threshold)
        # Normal differences leave the closest rival for the last comparison, exact ones all others.
        stays, exact = is_normal & (others == rival), self._set.exact(known, leader, others)
        stays = np.where(exact, not self._set.is_checked(known), stays)
        gone = others[worse & ~stays]
        if not beaten.all():
            self._design = np.append(leader, others[~beaten])
            self._probes, self._is_probed = [], False
            return Verdict(gone, leader, epsilon=epsilon)
        self._design = np.append(leader, rival)
        self._is_probed = bool(self._probes) and set(self._probes) <= set(blocks.rounds)
        return Verdict(gone, leader, certified=leader, epsilon=epsilon)

    # Answers.

    def leader(self, known: Known) -> int:
        """Return the arm with the largest mean over complete rounds."""
        best = self._best_in_rounds(known)
        return surest_at_target(known.evidence, known.arms, known.bias) if best is None else best

    def _best_in_rounds(self, known: Known) -> int | None:
        active, blocks = known.arms, self.blocks
        seen = active[blocks.counts()[active] >= len(blocks.rounds)]
        if not blocks.rounds or not seen.size:
            return None
        return int(seen[np.argmax(blocks.standings(seen, blocks.rounds))])

    def words(self, known: Known, usual: Recommendation) -> Recommendation:
        """Say what comparisons in blocks rest on, and what they still cost."""
        found = self._set.words(known, usual)
        if usual.arm is None or known.winner is not None:
            return found
        return replace(found, remaining_cost=self._remaining_cost(known, usual.arm))

    def _remaining_cost(self, known: Known, leader: int) -> float | None:
        rounds = len(self.blocks.rounds)
        if rounds < self._first_look(known):
            return None
        others, threshold = known.arms[known.arms != leader], known.threshold
        evidence = self._set.evidence(known, leader, others, known.epsilon, threshold)
        counts = np.full(len(others), rounds)
        return remaining_cost(known, evidence, counts, PRIOR, self._set.size(known))


def _first_pull(known: Known, arms: Sequence[int], block: int) -> Pull:
    arm = first_in_turn(known, np.array(arms), block)
    return Pull(arm, known.problem.target, block=block)


def _taken(pending: Sequence[Pull]) -> dict[int, set[int]]:
    taken: dict[int, set[int]] = {}
    for pull in pending:
        if pull.block is not None:
            taken.setdefault(int(pull.arm), set()).add(pull.block)
    return taken


class BlockElimination(Race):
    """Elimination at the target level, by differences of arms in the same blocks.

    The evaluations of a block share their replicate, the split or the seed, and so a large part of
    their noise. Each round evaluates the leader and all that may still be better, in a block that
    is new to them; the certificate is about the mean over blocks. Once the evidence suffices
    (`mfhpo.identification.likelihood.blocks`), the leader alone goes on until it has as many values
    as other races want. Then its closest rival is evaluated where it did unusually badly, and all
    is judged again. If the replicates have an end (`most_blocks`), the certificate is about these,
    and exact once all were used and some twice.

    Pulls carry a `block`. An evaluation that fails is repeated once in its block, if that gives any
    value.

    Parameters
    ----------
    problem
        Of its costs the last one matters. Bounds of the values are used, but no bias or scale of
        the noise: what the arms share is no noise here.
    epsilon
        See `Race`. None: one standard deviation of an arm's values; 0 for a finite set of at most
        10 replicates, or of bounded values.
    radius
        Not used: the arms are compared by differences.
    """

    rule: Rounds

    def __init__(self, problem: Problem, *, epsilon: float | None = 0.0, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        noise = problem.noise if isinstance(problem.noise, Bounded) else Gaussian()
        rule = Rounds(problem.n_arms, finds_epsilon=epsilon is None, noise=noise)
        problem = replace(problem, bias=None, noise=noise)
        super().__init__(problem, rule, epsilon=epsilon, **options)

    def is_ahead(self, pending: Sequence[Pull]) -> bool:
        """Tell whether to wait for pulls under way, which may end the race, before the next `ask`.

        They may hold more values than complete rounds, or all that the winner lacks.
        """
        return self.rule.is_ahead(self.known, check_pulls(pending, self.problem))

    def open_block(self, arm: int, pending: Sequence[Pull] = ()) -> int:
        """Return the first block in which an arm has no value and no evaluation under way."""
        taken = _taken(check_pulls(pending, self.problem))
        return self.rule.blocks.first_open(arm, taken.get(arm, set()))
