"""A race at the target level that is looked at a few times (see `mfhpo.identification.looks`)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mfhpo._validation import check_count, check_instance
from mfhpo.identification.looks import FIRST_LOOK, LEAST_FIRST_LOOK, Looks
from mfhpo.knowledge.noise import EstimatedNoise, Gaussian, declared_sigmas
from mfhpo.problem import Problem, Pull, check_pulls
from mfhpo.racing.race import Race

__all__ = ["FIRST_LOOK", "LEAST_FIRST_LOOK", "GroupSequential"]


class GroupSequential(Race):
    """A race at the target level that is looked at a few times.

    The arms that are left are evaluated in rounds, each in a random order that depends on the seed.
    Each look takes twice as many evaluations of each arm as the one before; it may eliminate arms
    and certify the leader. Before the first look the answer is the first arm that gave a value: a
    few values do not change the order of the arms.

    The race ends with the certificate: it waits for no repeats, and evaluates a winner until the
    first look only. A declared sigma that the values contradict is given up, with a warning.

    Parameters
    ----------
    problem
        Of its costs the last one matters. A bias is not used. Each arm has a variance of its own,
        unless a sigma or bounds are declared.
    epsilon
        See `Race`. None: the declared scale of the noise, or else the root of the arms'
        mean variance, as it is known at each look.
    first_look
        Evaluations of each arm before the first look, at least 2 (else ValueError); a single one
        if sigma says that there is no noise.
    blocks
        Whether pulls carry a block, whose replicate all arms share (see `BlockElimination`). A look
        is then at the first so many blocks, which all arms have values in. An evaluation that fails
        is repeated once in its block, if the block gives any value (see `Blocks`). What is
        declared of the noise is not used, and an epsilon of None contains what replicates do to all
        arms.
    **options
        See `Race`, without `measure` and `radius`.
    """

    rule: Looks

    def __init__(
        self,
        problem: Problem,
        *,
        epsilon: float | None = 0.0,
        first_look: int = FIRST_LOOK,
        blocks: bool = False,
        **options: Any,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        if blocks or isinstance(problem.noise, EstimatedNoise):
            problem = replace(problem, noise=Gaussian())
        sigmas = declared_sigmas(problem.noise, problem.n_fidelities)
        sigma = None if sigmas is None else sigmas[problem.target]
        check_count("first_look", first_look, LEAST_FIRST_LOOK)
        size = 1 if sigma == 0.0 else first_look
        if epsilon is None:
            epsilon = sigma
        rule = Looks(problem.n_arms, sigma, size, epsilon is None, blocks)
        problem = replace(problem, bias=None)
        super().__init__(problem, rule, epsilon=epsilon, measure=size, **options)

    @property
    def behind(self) -> float:
        """The tolerance that holds; infinite before the first look, and once its leader left."""
        return self.rule.behind(self.known)

    def looks_with(self, pending: Sequence[Pull] = ()) -> int:
        """Return the number of looks if all that is under way gives values."""
        return self.rule.looks_with(self.known, check_pulls(pending, self.problem))

    def missing(self, pending: Sequence[Pull] = ()) -> int:
        """Return how many further evaluations the next look needs, or the look after it if none."""
        return self.rule.missing(self.known, check_pulls(pending, self.problem))
