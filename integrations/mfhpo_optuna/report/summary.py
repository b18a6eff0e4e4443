"""A study's answer in words, whatever kind of sampler gave it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mfhpo import Bounded, SubGaussian
from mfhpo.racing.declaration import as_noise
from mfhpo.racing.sentences import FIXED, bounds_in_words, corrected_in_words, wrong_in_words
from mfhpo.racing.text import clean, params_in_words
from mfhpo_optuna.report.ledger import COST_UNIT, Ledger
from mfhpo_optuna.study.trials.attributes import FIDELITY_KEY, read_attribute
from mfhpo_optuna.visualization.reading import StudyReading
from mfhpo_optuna.visualization.style import counted, sentence, value_text

Status = Literal["certified", "not certified", "best so far", "no answer"]

# Parameters that a sentence holds; more are in a table only.
_IN_A_SENTENCE = 4


@dataclass(frozen=True)
class Measured:
    """A value with the bounds around it, and whose it is; None where nothing is known."""

    who: str
    value: float | None
    interval: tuple[float | None, float | None] = (None, None)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval, if it is finite."""
        low, high = self.interval
        return None if low is None or high is None else (low, high)

    def __str__(self) -> str:
        if self.value is None:
            return "not known yet"
        if self.bounds is None:
            return f"{self.value:.5g}"
        low, high = self.bounds
        return f"{self.value:.5g} in [{low:.5g}, {high:.5g}]"


@dataclass(frozen=True)
class Summary:
    """What a study says.

    The first of the `values` is what the configuration is worth. Where the luckiest single trial,
    or the search, had promised something, that comes second, and what became of it third.
    """

    status: Status
    sentence: str  # the answer, which goes on from the status
    params: Mapping[str, Any]  # the configuration
    values: tuple[Measured, ...] = ()
    comparable: bool = True  # whether the values are on one scale
    luck: str = ""  # what to think of the promise, in a sentence
    facts: tuple[tuple[str, str], ...] = ()  # names and what there is to say, such as "paid"
    grounds: tuple[str, ...] = ()  # what the answer rests on, and what of it is estimated
    conditions: tuple[str, ...] = ()  # what must be true for it
    notices: tuple[str, ...] = ()  # what speaks against these, or was left out

    def __str__(self) -> str:
        return clean(f"{self.status.capitalize()}: {self.sentence}")

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The rows of a table with all that goes with the sentence: a name and a text."""
        rows = [
            *([("configuration", params_in_words(self.params))] if self.params else []),
            *((one.who, str(one)) for one in self.values),
            *([("", self.luck)] if self.luck else []),
            *self.facts,
            *(("take notice", notice) for notice in self.notices),
            *(("rests on", ground) for ground in self.grounds),
        ]
        return [(clean(name), clean(text)) for name, text in rows]


def summary_of(reading: StudyReading, ledger: Ledger) -> Summary:
    """Put the answer of a study into words."""
    answer = reading.answer or {}
    try:
        certificate = answer if "candidates" in answer else answer.get("certificate")
        if not answer:
            summary = Summary("no answer", f"{sentence(reading.reason).rstrip('.')}.", {})
        elif "dissatisfaction" in answer:
            summary = _of_game(answer, ledger)
        elif "gain" in answer:
            summary = _of_limits(answer, reading)
        elif certificate is None:
            summary = _of_race(answer, reading, ledger)
        else:
            summary = _of_shortlist(certificate, answer, reading, ledger)
    except (AttributeError, LookupError, TypeError, ValueError):
        if reading.sampler is not None and not reading.is_of_certify:
            raise
        # It was read from the storage, where others may write.
        summary = Summary("no answer", "The answer that the study holds cannot be used.", {})
    outcomes = Counter(entry.outcome for entry in ledger.entries)
    names = {"value": "with a value", "answer": "added as answers, which evaluated nothing"}
    parts = ", ".join(f"{n:,} {names.get(outcome, outcome)}" for outcome, n in outcomes.items())
    trials = f"{len(ledger.entries):,} in the study" + (f": {parts}" if parts else "")
    facts = (*summary.facts, ("trials", trials))
    if reading.sampler is not None:
        arguments = params_in_words(getattr(reading.sampler, "arguments", {}))
        facts = (*facts, ("sampler", f"{type(reading.sampler).__name__}({arguments})"))
    return replace(summary, facts=facts)


def _of_race(answer: Mapping[str, Any], reading: StudyReading, ledger: Ledger) -> Summary:
    who = _name(answer["params"], "the configuration below")
    status, verdict = _verdict(answer, who, f"the {answer['compared']} configurations compared")
    name, is_search = read_attribute(reading.study, FIDELITY_KEY), "certificate" in answer
    at = "" if name is None else f" ({name}={value_text(answer['level'])})"
    worth = (
        f"what the search saw{at}, not evaluated again" if is_search else f"what it is worth{at}"
    )
    values = [Measured(worth, answer["mean"], tuple(answer["interval"]))]
    luckiest, luck = None if is_search else ledger.luckiest(reading.sign), ""
    if luckiest is not None:
        same = "the same configuration" if luckiest.arm == answer["arm"] else "another one"
        which = f"what the luckiest trial had promised (trial {luckiest.trial.number}, {same})"
        values.append(Measured(which, luckiest.trial.value))
        gap = reading.sign * ((luckiest.trial.value or 0.0) - answer["mean"])
        if not math.isclose(gap, 0.0, abs_tol=1e-9 * abs(answer["mean"])):
            better = "better" if gap > 0.0 else "worse"
            luck = f"The luckiest trial looked {abs(gap):.3g} {better} than that."
    facts = [*_claim(answer, answer["interval"], status), _paid(answer, ledger)]
    remaining = answer["remaining_cost"]
    if answer["certifies"] and not answer["certified"] and remaining is not None:
        facts.append(("to certify", f"about {_amount(remaining)} {_unit(ledger)} more"))
    notices = [*answer["notices"], *(f"not compared: {one}" for one in answer["not_compared"])]
    found = (status, verdict, answer["params"], tuple(values))
    return Summary(*found, luck=luck, **_basis(answer, reading, facts, notices))


def _of_shortlist(
    certificate: Mapping[str, Any], answer: Mapping[str, Any], reading: StudyReading, ledger: Ledger
) -> Summary:
    candidates, winner = certificate["candidates"], certificate["winner"]
    if winner is None:
        return Summary("not certified", f"{sentence(certificate['reason']).rstrip('.')}.", {})
    best = candidates[winner]
    luckiest = candidates[certificate["luckiest"]]
    who = _name(best["params"], sentence(best["name"]))
    status, verdict = _verdict(certificate, who, certificate["about"])
    same = "the same" if luckiest is best else luckiest["name"]
    promise = luckiest.get("best_value")  # None in the answer of a search, or of an earlier version
    if promise is None:
        promise = luckiest["claim"]
    values = [
        Measured("what it is worth", best["mean"], tuple(best["interval"])),
        Measured(f"what the search had promised of its best ({same})", promise),
    ]
    luck, gap = "", luckiest["gap"]
    if luckiest["evaluations"] and gap:
        luck = f"The search had promised {abs(gap):.3g} too {'much' if gap > 0 else 'little'}."
    if luckiest["evaluations"] and luckiest is not best:
        interval = tuple(luckiest["interval"])
        values.append(Measured(f"what {same} is worth", luckiest["mean"], interval))
    facts = _claim(certificate, best["interval"], status)
    corrected = certificate.get("corrected_mean")  # None in an answer of an earlier version
    if corrected is not None and (words := corrected_in_words(corrected, best["mean"])):
        facts.append(("corrected", words))
    if "cost" in answer:
        facts.append(_paid(answer, ledger))
    facts.append(("for the certificate", counted(certificate["evaluations"], "new evaluation")))
    if answer.get("tried"):
        tried = f"{answer['tried']} configurations, {answer['at_target']} of them at the target"
        facts.append(("tried", tried))
    facts.append(("shortlist", certificate["shortlist"]))
    since = 0
    if reading.is_of_certify and reading.record is not None and not reading.is_record:
        facts.append(("recorded in", f"study {reading.record.name!r}"))
        since = len(reading.trials) - int(reading.record.about.get("first_number", 0))
    remaining = certificate["remaining"]
    if status != "certified" and remaining:
        more = counted(max(1, math.ceil(remaining)), "more evaluation")
        facts.append(("to certify", f"about {more}"))
    notices = [f"the study has {counted(since, 'trial')} more since this certificate"] * (since > 0)
    notices += [*certificate["notices"]]
    notices += [
        f"not compared: {one['name']}, of whose evaluations {one['failures']} failed"
        for one in candidates
        if one["standing"] == "failed"
    ]
    found = (status, verdict, best["params"], tuple(values))
    return Summary(*found, luck=luck, **_basis(certificate, reading, facts, notices))


def _of_limits(answer: Mapping[str, Any], reading: StudyReading) -> Summary:
    who = _name(answer["params"], "the configuration below")
    limit = answer["limit"]
    at_most = "no time limit yet" if limit is None else f"a time limit of {limit:.4g} s"
    gain = Measured("gain of a trial, time charged", answer["gain"], tuple(answer["interval"]))
    facts = [
        ("interval", bounds_in_words(answer["delta"], answer.get("estimated", ""))),
        ("about", FIXED),
        ("paid", f"{answer['seconds']:.4g} seconds in {counted(answer['trials'], 'trial')}"),
        ("stopped", f"{answer['censored']:.0%} of the trials"),
        ("state", answer["reason"]),
    ]
    for point in answer["survival"]:
        if point["limit"] == limit:
            share = f"{point['probability']:.0%} of its trials"
            between = f"{point['low']:.0%} and {point['high']:.0%}"
            facts.insert(0, ("beyond the limit", f"{share}, between {between}"))
    best = f"{who}, with {at_most}."
    basis = _basis(answer, reading, facts, ())
    return Summary("best so far", best, answer["params"], (gain,), **basis)


def _of_game(answer: Mapping[str, Any], ledger: Ledger) -> Summary:
    values = [
        Measured(of.format(player), one["mean"], tuple(one["interval"]))
        for of, known in (
            ("objective of {}", answer["utilities"]),
            ("what {} may gain by deviating alone", answer["dissatisfaction"]),
        )
        for player, one in known.items()
    ]
    who = _name(answer["params"], "the profile below")
    paid = f"{answer['cost']:.6g} of {answer['budget']:.6g} {ledger.unit}"
    if ledger.unit != "trials":
        paid += f" in {counted(answer['trials'], 'trial')}"
    facts = (
        ("paid", paid),
        ("at the target", counted(answer["evaluations"], "evaluation")),
        ("intervals", f"each has probability {answer['probability']:g}"),
        ("state", answer["reason"]),
    )
    grounds = ("intervals: estimated by a model fitted to the trials, no guarantee",)
    believed = f"The players are believed to gain least by deviating from {who}."
    told = (believed, answer["params"], tuple(values))
    return Summary("best so far", *told, comparable=False, facts=facts, grounds=grounds)


def _verdict(answer: Mapping[str, Any], who: str, among: str) -> tuple[Status, str]:
    epsilon, within = answer["epsilon"], answer.get("within")
    if answer["certified"]:
        tolerance = f", or within {epsilon:.3g} of it" if epsilon else ""
        return "certified", f"{who} is the best of {among}{tolerance}."
    reason = answer["reason"].rstrip(".")
    if not answer.get("certifies", True) or not answer["finished"]:
        return "best so far", f"{who} leads; {reason}."
    if within is None or epsilon is None:
        return "not certified", f"{who} leads, but {reason}."
    holds = f"is within {within:.3g} of the best of {among}, where {epsilon:.3g} was asked for"
    return "not certified", f"{who} leads, and {holds}."


def _claim(
    answer: Mapping[str, Any], interval: Sequence[float | None], status: Status
) -> list[tuple[str, str]]:
    """Return how sure the answer is, and why; `interval` is that of its configuration."""
    sure = answer["delta"], answer["conditions"], answer.get("is_exact", False)
    facts = []
    if answer.get("baseline"):
        facts.append(("baseline", answer["baseline"]["words"]))
    if status == "certified" or answer.get("within") is not None:
        facts.append(("how sure", wrong_in_words(*sure, "the intervals")))
    elif interval[0] is not None:
        facts.append(("interval", wrong_in_words(*sure)))
    facts.append(("about", FIXED))
    facts.append(("because", answer["reason"]))
    if answer["unseen"]:
        facts.append(("not excluded", answer["unseen"]))
    return facts


def _paid(answer: Mapping[str, Any], ledger: Ledger) -> tuple[str, str]:
    cost = answer["cost"] if ledger.paid is None else ledger.paid
    failures, unit = answer["failures"], _unit(ledger)
    if unit == "trials":
        text = counted(round(cost), "trial")
        return "paid", f"{text}, {failures} of which failed" if failures else text
    text = f"{_amount(cost)} {unit} in {counted(answer['trials'], 'trial')}"
    return "paid", f"{text}; {failures} more failed" if failures else text


def _unit(ledger: Ledger) -> str:
    """Return the unit of an answer's costs; without a sampler the ledger counts seconds."""
    return COST_UNIT if ledger.paid is None else ledger.unit


def _basis(
    answer: Mapping[str, Any],
    reading: StudyReading,
    facts: Sequence[tuple[str, str]],
    notices: Sequence[str],
) -> dict[str, Any]:
    """Return facts and notices, what an answer rests on, and what must be true for it."""
    grounds, epsilon = list(answer["assumptions"]), answer.get("epsilon")
    arguments = None if reading.is_of_certify else getattr(reading.sampler, "arguments", None)
    if arguments is not None and epsilon and arguments.get("epsilon") is None:
        is_declared = isinstance(as_noise(arguments.get("sigma")), (Bounded, SubGaussian))
        known = "declared" if is_declared else "estimated"
        grounds.append(
            f"tolerance: {epsilon:.3g}, one standard deviation of the noise as it was {known}"
        )
    said = {"facts": facts, "notices": notices, "grounds": grounds}
    said["conditions"] = answer.get("conditions", ())
    return {name: tuple(parts) for name, parts in said.items()}


def _amount(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 1_000.0 else f"{cost:.3g}"


def _name(params: Mapping[str, Any], otherwise: str) -> str:
    """Return the configuration, or what it is called if it has many parameters."""
    if not 0 < len(params) <= _IN_A_SENTENCE:
        return otherwise
    return params_in_words(params)
