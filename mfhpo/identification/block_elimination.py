"""Elimination in blocks: all that are left are evaluated with the same split or seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import MOST_AT_ONCE, check_count, check_instance, check_nonnegative
from mfhpo.identification.likelihood.block_policy import BlockPolicy
from mfhpo.identification.likelihood.blocks import LEAST_ARMS, MOST_RATIO_OF_PAIRS, PRIOR
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.noise import Gaussian
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import surest_at_target

# Rounds before which nothing is decided, as all arms must take part in them.
_FIRST_LOOK = 2

# After so many rounds in which all arms gave the same the race is over: where a tolerance was to be
# found out and is 0, and where it was given, as coarse scores may differ after many equal ones.
_ROUNDS_ALIKE = 10
_ROUNDS_ALIKE_FOR_GOOD = 100

# A value so many times farther from the median than usual, in absolute deviations, is odd: once in
# a thousand normal values.
_ODD = 5.0


class BlockElimination(BlockPolicy):
    """Elimination at the target level, by differences of arms in the same blocks.

    The evaluations of a block share their replicate, the split or the seed, and so a large part of
    their noise. Each round evaluates the leader and all that may still be better, in a block that
    is new to them; the certificate is about the mean over blocks. For the statistic see
    `mfhpo.identification.likelihood.blocks`; the threshold is ln((K - 1) / delta). Once it is
    reached, the leader alone goes on until it has as many values as `BestArmPolicy` wants. Then its
    closest rival is evaluated on the replicates where it did unusually badly, and all is judged
    again: what a leader loses on rare replicates is seen like this.

    There may be few replicates, such as five folds (`most_blocks`). When all of them were used, the
    race is over, and a winner needs no more values than that.

    Pulls carry a `block`, and one without is refused (ValueError). An evaluation that fails is
    repeated once in its block, if the block gives any value (see `BlockPolicy`).

    Parameters
    ----------
    problem
        Of its costs the last one matters. A bias or a scale of the noise is not used: what the arms
        share is no noise here.
    epsilon
        Tolerance in the unit of the values. None: one standard deviation of an arm's values, as it
        is known after each round from the second on.
    radius
        Not used: the arms are compared by differences.

    Examples
    --------
    >>> import numpy as np
    >>> from mfhpo import Observation, Problem
    >>> policy = BlockElimination(Problem(3, costs=(1.0,)), epsilon=0.05, measure=2)
    >>> means, rng = [0.2, 0.9, 0.5], np.random.default_rng(0)
    >>> effects = rng.normal(0.0, 1.0, 100)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     value = means[pull.arm] + effects[pull.block] + rng.normal(0.0, 0.02)
    ...     policy.tell(pull, Observation(value))
    >>> policy.recommend().arm, policy.recommend().certified
    (1, True)
    """

    _saved = (*BlockPolicy._saved, "_design", "_is_probed", "most_blocks")
    _certificate_reason = "no other arm can be better by more than epsilon on the same replicates"

    def __init__(self, problem: Problem, *, epsilon: float | None = 0.0, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        # The arms of the round under way, and those that the leader may have to be told from.
        self._design: IntArray = np.arange(problem.n_arms)
        # Blocks in which the winner and its closest rival are compared at the end, and whether they
        # were.
        self._probes: list[int] = []
        self._is_probed = False
        self._finds_epsilon = epsilon is None
        if epsilon is not None:
            check_nonnegative("epsilon", epsilon)
        problem = replace(problem, bias=None, noise=Gaussian())
        super().__init__(problem, epsilon=epsilon or 0.0, **options)

    @property
    def threshold(self) -> float:
        """What the evidence against an arm must reach: ln((K - 1) / delta)."""
        return math.log(max(1, self.problem.n_arms - 1) / self.delta)

    @property
    def piloting(self) -> bool:
        """Whether epsilon is still to be found out."""
        return self._finds_epsilon and len(self._blocks.rounds) < _FIRST_LOOK

    def falls_short(self, leader: int, epsilon: float) -> float:
        """Return the missing evidence against another arm being better by epsilon, if above 0."""
        if len(self._blocks.rounds) < _FIRST_LOOK:
            return math.inf
        others = self.active[self.active != leader]
        return self.threshold - float(self._evidence_against(leader, others, epsilon).min())

    def _plan(self) -> None:
        pass

    def _confirms(self, arm: int) -> bool:
        return False  # later blocks of the winner alone are compared with nothing

    # Pulls.

    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose pulls (see `Policy.ask`), each with its block."""
        check_count("n", n, 1, MOST_AT_ONCE)
        taken = self._taken(pending)
        if not self.active.size:
            return []
        pulls = []
        for _ in range(n):
            pull = self._open_pull(taken)
            if pull is None:
                break
            taken.setdefault(pull.arm, set()).add(pull.block or 0)
            pulls.append(pull)
        return pulls

    def is_ahead(self, pending: Sequence[Pull]) -> bool:
        """Tell whether to wait for pulls under way, which may end the race, before the next `ask`.

        They may hold more values than complete rounds, complete what the winner lacks, or compare
        it once more; or nothing else is left.
        """
        taken = self._taken(pending)
        pull = self._open_pull(taken)
        if not pending or pull is None or pull.block is None:
            return bool(pending)
        blocks, winner = self._blocks, self.winner
        if winner is not None:
            if pull.block != blocks.first_open(winner, taken.get(winner, set())):
                return False  # it is for a comparison
            out = blocks.void | blocks.given_up[winner]
            expected = pull.block - int(out[: pull.block].sum())
            counts = int(self._evidence.counts[winner, self.problem.target])
            return expected >= counts + sum(self._values_lacking(winner).values())
        # All arms take part in the first rounds, whatever comes.
        if blocks.place(pull.block) <= max(blocks.place(blocks.next_round), _FIRST_LOOK - 1):
            return False
        waiting = int((blocks.n_settled - blocks.counts())[self._in_round].sum())
        return waiting > max(blocks.n_in_rounds, len(pending))

    def open_block(self, arm: int, pending: Sequence[Pull] = ()) -> int:
        """Return the first block in which an arm has no value and no evaluation under way."""
        return self._blocks.first_open(arm, self._taken(pending).get(arm, set()))

    def _taken(self, pending: Sequence[Pull]) -> dict[int, set[int]]:
        taken: dict[int, set[int]] = {}
        for pull in self._checked(pending):
            if pull.block is not None:
                taken.setdefault(int(pull.arm), set()).add(pull.block)
        return taken

    def _open_pull(self, taken: Mapping[int, set[int]]) -> Pull | None:
        if self._are_alike:
            return None
        winner = self.winner
        probed = [*self._blocks.rounds, *self._probes] if self._probes else []
        wanted = probed + self._blocks.doubtful().tolist()
        in_round = self._in_round
        is_open = ~self._blocks.closed(in_round)
        for block in filter(self._exists, wanted):
            arms = [
                a for a in in_round[is_open[:, block]].tolist() if block not in taken.get(a, ())
            ]
            if arms:
                return self._first_pull(arms, block)
        candidates = in_round.tolist() if winner is None else [winner]
        firsts = {arm: self._blocks.first_open(arm, taken.get(arm, set())) for arm in candidates}
        left = set(filter(self._exists, firsts.values()))
        if not left:
            return None
        block = min(left, key=self._blocks.place)
        return self._first_pull([arm for arm in candidates if firsts[arm] == block], block)

    def _first_pull(self, arms: Sequence[int], block: int) -> Pull:
        arm = self._first_in_turn(np.array(arms), block)
        return Pull(arm, self.problem.target, block=block)

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull | None:
        return self._open_pull({})

    def _pull_of_winner(self, winner: int) -> Pull | None:
        return self._open_pull({})

    @property
    def finished(self) -> bool:
        """Whether the race is over (see `Policy.finished`)."""
        return super().finished or self._all_were_used or self._are_alike

    @property
    def _are_alike(self) -> bool:
        """No arm will ever be told apart: all have given the same on a good many replicates."""
        if self.active.size < 2:
            return False
        is_found_to_be_0 = self._finds_epsilon and self.epsilon == 0.0
        least = _ROUNDS_ALIKE if is_found_to_be_0 else _ROUNDS_ALIKE_FOR_GOOD
        return self._blocks.are_alike(self.active, least)

    @property
    def _all_were_used(self) -> bool:
        """Whether there is no replicate on which anything is left to evaluate."""
        if self.most_blocks is None or self._blocks.values.shape[1] < self.most_blocks:
            return False
        return self.active.size > 0 and self._open_pull({}) is None

    @property
    def _in_round(self) -> IntArray:
        """The arms of the round under way that are still in the race."""
        design = self._design[self._roster.active[self._design]]
        return design if design.size else self.active

    def _lacking(self, winner: int) -> dict[int, int]:
        lacking = self._values_lacking(winner)
        has_rival = len(self._in_round) > 1
        if not lacking and has_rival and not self._is_probed:
            return {self.problem.target: max(1, len(self._probes))}
        return lacking

    def _values_lacking(self, winner: int) -> dict[int, int]:
        """Return how many values a winner lacks, at most as many as there may be."""
        lacking = super()._lacking(winner)
        if self.most_blocks is None:
            return lacking
        given_up = self._blocks.given_up[winner] & ~self._blocks.void
        most = self._most_values - int(given_up[: self.most_blocks].sum())
        left = int(most - self._evidence.counts[winner, self.problem.target])
        return {m: min(missing, left) for m, missing in lacking.items() if left > 0}

    # Learning.

    def _take_value(self, arm: int, fidelity: int, value: float) -> None:
        if not self._take_first_values(arm):
            self._judge(fidelity)

    def _take_first_values(self, arm: int) -> bool:
        """Take in the values of an arm whose turn it is; whether there are any."""
        # Of an arm's values those of its first blocks count, without a gap: what takes long may be
        # poor. That the winner has enough of them, and what it is worth, rests on these.
        target, took = self.problem.target, False
        while True:
            value = self._blocks.value_after(arm, int(self._evidence.counts[arm, target]))
            if value is None:
                return took
            super()._take_value(arm, target, value)
            took = True

    def _count_failure(self, arm: int, fidelity: int) -> None:
        self._take_first_values(arm)  # the gap before them may never be filled
        super()._count_failure(arm, fidelity)

    def _judge(self, fidelity: int) -> None:
        if self._has_ended:
            return  # what was under way when the winner was certified opens no race again
        while not self._has_ended and (block := self._complete_block()) is not None:
            self._blocks.complete_round(block, self._in_round)
            self._decide()
        winner = self._certificate
        if winner is not None and not self._probes and not self._values_lacking(winner):
            self._probe(winner)

    @property
    def _has_ended(self) -> bool:
        winner = self._certificate
        return winner is not None and not self._lacking(winner)

    def _complete_block(self) -> int | None:
        if self._blocks.set_aside(self._in_round):
            for arm in range(self.problem.n_arms):
                self._take_first_values(arm)
        arms, done = self._in_round, set(self._blocks.rounds)
        if len(arms) < 2 or (self._blocks.counts()[arms] < len(done)).any():
            return None
        for block in self._probes or [self._blocks.next_round]:
            if block not in done and self._blocks.is_complete(arms, block):
                return block
        return None

    def _probe(self, winner: int) -> None:
        """Compare the winner with its closest rival where it alone did unusually badly, if ever.

        Rounds in which all replicates are alike say nothing about rare ones. The choice can only
        speak against the winner.
        """
        seen = self._blocks.seen(winner)
        behind = np.median(self._blocks.values[winner, seen]) - self._blocks.values[winner, seen]
        odd = seen[behind > _ODD * np.median(np.abs(behind))]
        self._probes = np.setdiff1d(odd, self._blocks.rounds).tolist()
        self._is_probed = not self._probes or len(self._in_round) < 2

    def _judge_anew(self) -> None:
        self._decide()
        self._judge(self.problem.target)

    def _decide(self) -> None:
        """Eliminate and certify by the complete rounds, and choose the arms of the next one."""
        blocks = self._blocks
        active = self.active
        self._certificate = None
        if len(blocks.rounds) < _FIRST_LOOK or len(active) < 2:
            self._design = active.copy()
            return
        if self._finds_epsilon:
            self._epsilon = self.spread
        seen = active[blocks.counts()[active] >= len(blocks.rounds)]
        if not seen.size:
            self._design = active.copy()
            return
        leader = int(seen[np.argmax(blocks.standings(seen, blocks.rounds))])
        others = active[active != leader]
        evidence = self._evidence_against(leader, others, self.epsilon)
        rival = others[[np.argmin(evidence)]]
        beaten = evidence >= self.threshold
        worse = beaten & (self._evidence_against(leader, others, 0.0) >= self.threshold)
        self._roster.eliminate(others[worse & (others != rival)], leader)
        if not beaten.all():
            self._design = np.append(leader, others[~beaten])
            self._probes, self._is_probed = [], False
            return
        self._certificate = leader
        self._design = np.append(leader, rival)
        self._is_probed = bool(self._probes) and set(self._probes) <= set(blocks.rounds)

    def _evidence_against(self, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        return self._blocks.evidence(leader, others, epsilon, self.threshold)

    @property
    def spread(self) -> float:
        """The standard deviation of an arm's values over replicates; 0 if nothing is known."""
        scale = self._evidence.noise_scale(self.problem.target)
        return scale if math.isfinite(scale) else 0.0

    def _surest_arm(self) -> int:
        active, blocks = self.active, self._blocks
        seen = active[blocks.counts()[active] >= len(blocks.rounds)]
        if not blocks.rounds or not seen.size:
            return surest_at_target(self._evidence, active, self.bias)
        return int(seen[np.argmax(blocks.standings(seen, blocks.rounds))])

    @property
    def _n_values(self) -> IntArray:
        return self._blocks.n_values

    def _remaining_cost(self, leader: int | None) -> float | None:
        rounds = len(self._blocks.rounds)
        if leader is None or self.winner is not None:
            return super()._remaining_cost(leader)
        if rounds < _FIRST_LOOK:
            return None
        others = self.active[self.active != leader]
        evidence = self._evidence_against(leader, others, self.epsilon)
        # What the average over effects costs is paid once, and the rest of the evidence grows about
        # as the rounds do. The leader takes part in all of them.
        cost = math.log1p(rounds / PRIOR) / 2.0
        gained = evidence + cost
        if not (gained > 0.0).all():
            return None
        more = rounds * np.maximum((self.threshold + cost) / gained - 1.0, 0.0)
        if rounds + more.max() > self._most_values:
            return math.inf
        return float(more.sum() + more.max()) * self._cost_of(self.problem.target)

    # Words.

    @property
    def _end(self) -> str:
        if self._are_alike:
            return (
                f"the arms that are left gave exactly the same values on "
                f"{len(self._blocks.rounds)} replicates"
            )
        if self._all_were_used:
            return f"all {self.most_blocks} replicates were used"
        return super()._end

    def _conditions(self) -> tuple[str, ...]:
        if self.problem.n_arms < LEAST_ARMS:
            return super()._conditions()
        return (
            *super()._conditions(),
            "what a replicate does to some of them only is independent between these",
            f"the differences of two spread at most {MOST_RATIO_OF_PAIRS:g} times as much as those "
            f"of others, or visibly more",
        )

    def _assumptions(self) -> tuple[str, ...]:
        of_others = (
            "" if self.problem.n_arms < LEAST_ARMS else ", large ones also by those of others"
        )
        return (
            f"{self._blocks.words}: {len(self._blocks.rounds)} complete rounds; noise of "
            f"differences: estimated for each pair{of_others}",
        )

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        blocks = {**self._blocks.state_dict(), "probes": list(self._probes)}
        return {**super().state_dict(), "blocks": blocks}

    def _load_details(self, state: Mapping[str, Any]) -> None:
        self._blocks.load_state_dict(state["blocks"])
        self._probes = list(state["blocks"]["probes"])
