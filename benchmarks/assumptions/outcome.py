"""What became of one race: whether its certificate is wrong, and whether its text is true."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from benchmarks.assumptions.scenarios import Scenario, World
from benchmarks.assumptions.truth import Tally, claim_fails, false_facts, unseen_percent
from mfhpo.certification.certificate import Certificate


@dataclass(frozen=True)
class Outcome:
    """One race.

    Parameters
    ----------
    certified
        Whether it ended with a certificate.
    wrong
        Whether that is for an arm that is not within epsilon of the best of all arms.
    claim_fails
        Whether the printed claim is not so: about the arms that the text says were compared.
    false_facts
        Which printed facts are not so.
    missed
        Whether the interval of a certified arm misses its mean.
    evaluations
        Their number.
    noticed
        Whether the text has a notice, says that something was not compared, or that what was
        declared was contradicted.
    unseen_percent
        Outcomes rarer than this share are not excluded, by the text.
    """

    certified: bool
    wrong: bool
    claim_fails: bool
    false_facts: tuple[str, ...]
    missed: bool
    evaluations: int
    noticed: bool
    unseen_percent: float


def outcome_of_answer(
    answer: Any, scenario: Scenario, world: World, tally: Tally, exact: bool = True
) -> Outcome:
    """Judge the answer of a policy, a sampler or a searcher.

    Parameters
    ----------
    answer
        A recommendation for users, or one like it; its arms are those of the world.
    scenario, world
        What was raced.
    tally
        What was told.
    exact
        Whether all of that counts; else some of it may wait for its turn.
    """
    withdrawn = {int(words.split()[1].rstrip(":")) for words in answer.not_compared}
    return _outcome(answer, answer.arm, answer.epsilon, withdrawn, scenario, world, tally, exact)


def outcome_of_certificate(
    certificate: Certificate, scenario: Scenario, world: World, tally: Tally
) -> Outcome:
    """Judge a certificate of a shortlist."""
    out = {arm for arm, result in enumerate(certificate.candidates) if result.standing == "failed"}
    return _outcome(
        certificate, certificate.winner, certificate.epsilon, out, scenario, world, tally, True
    )


def _outcome(
    answer: Any,
    winner: int | None,
    epsilon: float,
    out: Collection[int],
    scenario: Scenario,
    world: World,
    tally: Tally,
    exact: bool,
) -> Outcome:
    text, means, certified = str(answer), world.means, bool(answer.certified)
    wrong = missed = False
    if certified and winner is not None:
        wrong = bool(means[winner] < means.max() - epsilon - 1e-9)
        low, high = answer.interval
        missed = not low <= means[winner] <= high
    return Outcome(
        certified,
        wrong,
        claim_fails(text, winner, means, out),
        tuple(false_facts(text, winner, tally, exact)),
        missed,
        int((tally.values + tally.failures).sum()),
        bool(answer.notices or out or "widened" in text),
        unseen_percent(text),
    )
