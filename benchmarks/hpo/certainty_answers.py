"""What a race asks, what a contender answers, and how good the answer is."""

from dataclasses import dataclass

from benchmarks.hpo.certainty_pools import Bounds, Pool


@dataclass(frozen=True)
class Race:
    """A pool, the noise, and what is asked for.

    Parameters
    ----------
    pool
        What to choose from.
    sigma, epsilon
        Standard deviation of the noise, and tolerance, in percent.
    declared
        Bounds from elsewhere.
    seed
        Source of the noise.
    """

    pool: Pool
    sigma: float
    epsilon: float
    declared: Bounds
    seed: int


@dataclass(frozen=True)
class Answer:
    """What a contender hands over.

    Parameters
    ----------
    arm
        Its choice.
    cost
        What it paid, in full evaluations.
    certified
        Whether it says that the choice is within epsilon of the best of `compared`, wrong with
        probability `certainty_races.DELTA`.
    compared
        What the certificate is about; None for the whole pool.
    unfinished
        Whether it had paid `certainty_races.MOST_COST` before it was sure.
    widened
        Whether bounds were contradicted and widened on the way.
    from_scratch
        What a policy would have paid if nothing was continued; None for others.
    """

    arm: int
    cost: float
    certified: bool = False
    compared: tuple[int, ...] | None = None
    unfinished: bool = False
    widened: bool = False
    from_scratch: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How good an answer is.

    Parameters
    ----------
    contender, task
        Who, and where.
    cost
        In full evaluations.
    regret
        How far the choice is below the best of the pool, in percent.
    certified, unfinished, widened, from_scratch
        See `Answer`.
    wrong
        Whether the certificate is wrong.
    """

    contender: str
    task: str
    cost: float
    regret: float
    certified: bool
    unfinished: bool
    widened: bool
    from_scratch: float | None
    wrong: bool


def judged(name: str, race: Race, answer: Answer) -> Outcome:
    """Hold an answer against the truth."""
    truth = race.pool.means[-1]
    compared = range(race.pool.n_arms) if answer.compared is None else answer.compared
    short = float(truth[list(compared)].max() - truth[answer.arm])
    return Outcome(
        contender=name,
        task=race.pool.task,
        cost=answer.cost,
        regret=race.pool.regret(answer.arm),
        certified=answer.certified,
        unfinished=answer.unfinished,
        widened=answer.widened,
        from_scratch=answer.from_scratch,
        wrong=answer.certified and short > race.epsilon,
    )
