"""The answer of a race in the terms of whoever asked: parameters, levels, the objective's unit."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from mfhpo.problem import Answer, Recommendation
from mfhpo.racing.claims import FIXED, wrong_in_words

AnswerT = TypeVar("AnswerT", bound="UserRecommendation")

_MOST_CHARACTERS = 80  # that are shown of a value, about a line

# What a terminal or a page might obey: control characters, line separators, lone surrogates, and
# the marks that change the direction of a text.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PASSWORDS = (
    re.compile(r"(://[^:/@\s]*:)\S*(?=@)"),
    re.compile(
        r"([?&][^=&\s'\"]{0,50}(?:pass|pwd|secret|token)[^=&\s'\"]{0,50}=)[^&\s'\"]*", re.IGNORECASE
    ),
)


@dataclass(frozen=True, kw_only=True)
class UserRecommendation(Answer):
    """Which configuration to be content with, and how sure that is.

    For the other fields see `mfhpo.problem.Answer`; mean and interval are the objective's.

    Parameters
    ----------
    params
        The configuration, without the fidelity; empty when every arm has failed.
    level
        The highest level at which it was evaluated, which the mean belongs to.
    certifies
        Whether the policy is after a certificate at all; those that maximise the reward while
        they run, such as `mfhpo.MFUCB`, are not.
    trials
        Number of evaluations behind it.
    """

    params: dict[str, Any]
    level: Any
    certifies: bool
    trials: int

    @classmethod
    def of(
        cls: type[AnswerT],
        answer: Recommendation,
        sign: float,
        params: dict[str, Any],
        level: Any,
        certifies: bool = True,
    ) -> AnswerT:
        """Translate a policy's answer."""
        low, high = sorted(sign * bound for bound in answer.interval)
        content = {field.name: getattr(answer, field.name) for field in fields(Recommendation)}
        del content["fidelity"]
        content |= {
            "params": params,
            "mean": sign * answer.mean,
            "level": level,
            "interval": (low, high),
            "certifies": certifies,
            "trials": content.pop("pulls"),
        }
        return cls(**content)

    def __str__(self) -> str:
        low, high = self.interval
        params = params_in_words(self.params)
        mean = (
            f"  mean        {self.mean:.5g} at level {cut(str(self.level))}; at the target "
            f"fidelity in [{low:.5g}, {high:.5g}]"
        )
        if not self.certifies:
            head, claim = (
                "BEST SO FAR",
                f"  interval    {wrong_in_words(self.delta, self.conditions)}",
            )
        elif self.certified:
            head = "CERTIFIED"
            claim = (
                f"  claim       within epsilon = {self.epsilon:.3g} of the best of the "
                f"{self.compared} arms that were compared, "
                f"{wrong_in_words(self.delta, self.conditions)}; the interval may be wrong with "
                f"the same probability"
            )
        else:
            head = "NOT CERTIFIED"
            claim = f"  aim         epsilon = {self.epsilon:.3g}, delta = {self.delta:g}"
        failed = ""
        if self.failures:
            pulls = self.trials + self.failures
            failed = f"; failed {self.failures} of {pulls}, and all values are those of the others"
        lines = [
            f"{head}: {params}",
            mean,
            claim,
            f"  about       {FIXED}",
            f"  {'because' if self.certifies else 'note':12}{self.reason}",
            f"  cost        {self.cost:.6g} in {self.trials} trials{failed}",
        ]
        if self.unseen and self.certifies:
            lines.append(f"  not excluded  {self.unseen}")
        lines += [f"  not compared  {arm}" for arm in self.not_compared]
        lines += [f"  notice      {notice}" for notice in self.notices]
        if self.certifies and not self.certified:
            if self.remaining_cost is None:
                guess = "not known yet"
            elif math.isinf(self.remaining_cost):
                guess = never_in_words(self.epsilon)
            else:
                guess = f"about {self.remaining_cost:.3g} more"
            lines.append(f"  to certify  {guess}")
        lines += [f"  rests on    {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def never_in_words(epsilon: float) -> str:
    """Say what it takes to certify where no number of evaluations suffices."""
    if epsilon:
        return "more replicates than there are, or a larger epsilon"
    return "no number will do (a tie, or too few replicates); set epsilon above 0"


def params_in_words(params: Mapping[str, Any]) -> str:
    """Return a configuration in one line."""
    return ", ".join(f"{clean(name)}={short(value)}" for name, value in params.items())


def short(value: Any) -> str:
    """Return a parameter's value as it is shown."""
    return f"{value:.5g}" if isinstance(value, float) else cut(repr(value))


def cut(text: str) -> str:
    """Return a clean text, or its beginning where it is too long for a sentence or a table."""
    text = clean(text)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def clean(text: str) -> str:
    r"""Return a text that is safe to show, in one line: without passwords and escape sequences.

    Names and values come from a storage that others may write to.

    Examples
    --------
    >>> clean("\x1b[31mred"), clean("mysql://ann:secret@host/db")
    ('\\x1b[31mred', 'mysql://ann:***@host/db')
    """
    for password in _PASSWORDS:
        text = password.sub(r"\1***", text)
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    # In JSON, which has escaped the first ones already, this is an escape, too.
    return ascii(found[0])[1:-1] if found[0] < " " else f"\\u{ord(found[0]):04x}"
