"""What became of one race: whether its certificate is wrong, and whether its text is true."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.assumptions.scenarios import Scenario
from benchmarks.assumptions.truth import Tally, claim_fails, false_facts, unseen_percent
from benchmarks.assumptions.worlds import World
from mfhpo.certification.certificate import Certificate

_ROUNDING = 1e-12  # of means, where an interval has no width


@dataclass(frozen=True)
class Outcome:
    """One race.

    Parameters
    ----------
    certified
        Whether it ended with a certificate.
    wrong
        Whether that is for an arm that is not within epsilon of the best of all arms, or of the
        shortlist that a search or `certify` has made.
    claim_fails
        Whether the printed claim is not so: about the arms that the text says were compared.
    false_facts
        Which printed facts are not so.
    missed
        Whether an interval that is printed, certified or not, misses its mean.
    stays
        Whether a best arm was neither eliminated nor left for its failures.
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
    stays: bool
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
    arm = answer.arm
    missed = arm is not None and _misses(answer.interval, world.means[arm])
    left = set(range(len(world.means))).difference(answer.survivors)
    return _outcome(
        answer, str(answer), arm, missed, left, withdrawn, scenario, world, tally, exact
    )


def outcome_of_certificate(
    certificate: Certificate,
    scenario: Scenario,
    world: World,
    tally: Tally,
    exact: bool = True,
    text: str | None = None,
) -> Outcome:
    """Judge a certificate of a shortlist, whose candidates are the arms of the world.

    The `text` is that of the answer that the certificate is part of; None: its own. For `exact`
    see `outcome_of_answer`.
    """
    results = list(enumerate(certificate.candidates))
    out = {arm for arm, result in results if result.standing == "failed"}
    left = {arm for arm, result in results if result.standing == "worse"} | out
    missed = any(_misses(result.interval, world.means[arm]) for arm, result in results)
    text = _with_places(certificate, str(certificate) if text is None else text)
    winner = certificate.winner
    return _outcome(certificate, text, winner, missed, left, out, scenario, world, tally, exact)


def outcome_of_finalists(
    certificate: Certificate,
    scenario: Scenario,
    world: World,
    arms: Sequence[int],
    tally: Tally,
    text: str,
    exact: bool = True,
) -> Outcome:
    """Judge a certificate whose candidates are these arms of the world, in their order."""
    finalists = replace(world, means=np.asarray(world.means)[list(arms)])
    return outcome_of_certificate(certificate, scenario, finalists, tally, exact, text)


def _misses(interval: tuple[float, float], mean: float) -> bool:
    low, high = interval
    return mean < low - _ROUNDING or mean > high + _ROUNDING


def _with_places(certificate: Certificate, text: str) -> str:
    """The text with the places of the candidates as their names, "trial 0", "trial 1", ..."""
    places = {result.name: place for place, result in enumerate(certificate.candidates)}
    names = "|".join(map(re.escape, places))
    return re.sub(rf"\b({names})\b", lambda found: f"trial {places[found[1]]}", text)


def _outcome(
    answer: Any,
    text: str,
    winner: int | None,
    missed: bool,
    left: Collection[int],
    out: Collection[int],
    scenario: Scenario,
    world: World,
    tally: Tally,
    exact: bool,
) -> Outcome:
    means, certified = world.means, bool(answer.certified)
    wrong = False
    if certified and winner is not None:
        wrong = bool(means[winner] < means.max() - answer.epsilon - 1e-9)
    best = np.flatnonzero(means == means.max()).tolist()
    return Outcome(
        certified,
        wrong,
        claim_fails(text, winner, means, out),
        tuple(false_facts(text, winner, tally, exact, scenario.delta)),
        bool(missed),
        not set(best) <= set(left),
        int((tally.values + tally.failures).sum()),
        bool(answer.notices or out or "widened" in text),
        unseen_percent(text),
    )
