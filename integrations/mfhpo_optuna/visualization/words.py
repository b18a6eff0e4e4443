"""Words and ranges that several figures need."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mfhpo.experiment import Answer
from mfhpo.racing.text import clean, cut, params_in_words
from mfhpo_optuna.study.study_experiment import StudyExperiment

_LINE = 60  # characters for which a report on a phone has room, below the headline of a figure


def title(headline: str, *sentences: str) -> tuple[str, ...]:
    """Return a headline and the lines below it, each short enough for a phone."""
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, _LINE)]
    return headline, *lines


def value_text(value: object) -> str:
    """Return a parameter's value, a number with four digits, a text cut where it is long."""
    return f"{value:.4g}" if isinstance(value, float) else cut(str(value))


def level_text(known: StudyExperiment, level: int) -> str:
    """Return the fidelity at one of a study's levels; "" if there is none."""
    fidelity = known.kind.fidelity
    return "" if fidelity is None else f"{fidelity.name} = {value_text(known.trials.levels[level])}"


def params_lines(params: Mapping[str, Any]) -> list[str]:
    """Return one line for each parameter."""
    return [f"{clean(name)} = {value_text(value)}" for name, value in params.items()]


def between(interval: tuple[float, float]) -> str:
    """Return the interval in words; "" if it is not finite."""
    low, high = interval
    return f"in [{low:.4g}, {high:.4g}]" if math.isfinite(high - low) else ""


def sentence(text: str) -> str:
    """Return the text with a capital letter, unless it begins with a name such as ``epsilon=``."""
    first = text.split(maxsplit=1)[0] if text else ""
    return text[:1].upper() + text[1:] if first.isalpha() else text


def is_at_target(known: StudyExperiment, answer: Answer) -> bool:
    """Return whether an answer's mean belongs to its interval, which is about the target."""
    levels = known.trials.levels
    return answer.certified or not levels or answer.level == levels[-1]


def answer_title(
    known: StudyExperiment, answer: Answer, headline: str, *more: str
) -> tuple[str, ...]:
    """Return a headline with the state of an answer, and what it is worth and has cost."""
    fidelity, is_timed = known.kind.fidelity, known.kind.in_seconds
    paid = f"{answer.cost:,.4g} seconds" if is_timed else f"Cost {answer.cost:,.6g}"
    paid += f" in {counted(answer.trials + answer.failures, 'trial')}"
    paid += f", {answer.failures:,} failed" if answer.failures else ""
    if answer.arm is None:
        return title(headline, sentence(answer.reason), *more, paid)
    state = "wins, certified" if answer.certified else "leads"
    if answer.certifies and not answer.certified:
        state += ", not certified"
    worth = f"{answer.mean:.4g}"
    if is_at_target(known, answer):
        worth += f" {between(answer.interval)}".rstrip()
    if fidelity is not None:
        worth += f" at {fidelity.name} = {value_text(answer.level)}"
    reason = "" if answer.certified else sentence(answer.reason)
    params = params_in_words(answer.params)
    return title(f"{headline} {state}", params, worth, reason, *more, paid)


def counted(number: int, thing: str) -> str:
    """Return how many there are of a thing, in the plural unless it is one."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def better(sign: float) -> str:
    """Return which direction is better."""
    return "higher is better" if sign > 0.0 else "lower is better"


def span(needed: Iterable[float], wanted: Sequence[float], sign: float) -> tuple[float, float]:
    """Return the range of an axis: all `needed` values, the `wanted` ones without outliers.

    Outliers are those more than one and a half times the middle half's width beyond it, on the bad
    side; `sign` is 1 where higher is better.
    """
    shown = [value for value in needed if math.isfinite(value)]
    ordered = sorted(sign * value for value in wanted if math.isfinite(value))
    if ordered:
        lower, upper = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
        fence = lower - 1.5 * (upper - lower)
        shown += [sign * value for value in ordered if value >= fence]
    if not shown:
        return 0.0, 1.0
    low, high = min(shown), max(shown)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin
