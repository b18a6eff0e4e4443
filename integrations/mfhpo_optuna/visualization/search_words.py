"""The words in the picture of a search: its title, and what shows under the mouse."""

from __future__ import annotations

import math
import textwrap
from html import escape

from mfhpo.certification.candidates import CandidateResult
from mfhpo.certification.certificate import Certificate
from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.visualization.search_story import Evaluation, SearchStory
from mfhpo_optuna.visualization.style import params_text, value_text

__all__ = [
    "describe",
    "describe_candidate",
    "level_name",
    "luck_of",
    "radius_of",
    "title_of",
    "wrapped",
]

_TITLE_WIDTH = 150  # in characters


def title_of(story: SearchStory, answer: RaceRecommendation) -> str:
    """What was tried, what came of it, and how sure that is."""
    tried = f"{answer.tried} configurations in {answer.trials} trials"
    if answer.arm is None:
        return f"A search: {tried}<br><sup>{wrapped(answer.reason, _TITLE_WIDTH)}</sup>"
    state = "is certified" if answer.certified else "leads, not certified"
    head = f"Arm {answer.arm} {state}: {tried}"
    words = []
    low, high = answer.interval
    where = f" in [{low:.4g}, {high:.4g}]" if math.isfinite(high - low) else ""
    at = f" at {story.race.fidelity.name} = {value_text(answer.level)}"
    words.append(f"mean {answer.mean:.4g}{where}{at if story.has_fidelity else ''}")
    if answer.certified:
        words.append(
            f"within ε = {answer.epsilon:.3g} of the best of the shortlist, wrong with "
            f"probability ≤ {answer.delta:g}"
        )
    else:
        words.append(answer.reason)
    return f"{head}<br><sup>{wrapped('; '.join(words), _TITLE_WIDTH)}</sup>"


def luck_of(story: SearchStory, certificate: Certificate) -> str:
    """How far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    arm = story.search.shortlist[certificate.luckiest]
    words = f"luckiest: arm {arm} had promised {result.claim:.4g}"
    if not result.evaluations:
        return words
    amount = "too much" if result.gap >= 0.0 else "too little"
    return f"{words},<br>by {abs(result.gap):.3g} {amount}: it is {_mean_text(result)}"


def describe(story: SearchStory, evaluation: Evaluation) -> str:
    """Shown where the mouse is held over an evaluation."""
    value = f"{evaluation.value:.5g}" if math.isfinite(evaluation.value) else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    level = f", {level_name(story, evaluation.fidelity)}" if story.has_fidelity else ""
    return (
        f"trial {evaluation.trial}: {value}{purpose}<br>arm {evaluation.arm}{level}<br>"
        f"{params_text(story.race.arms.params(evaluation.arm))}"
    )


def describe_candidate(story: SearchStory, result: CandidateResult) -> str:
    """Shown where the mouse is held over a candidate of the shortlist."""
    lines = [f"{escape(result.name)}: {result.standing}", f"promised {result.claim:.5g}"]
    if result.evaluations:
        times = f"{result.evaluations} new evaluation{'s' * (result.evaluations != 1)}"
        lines.append(f"is {_mean_text(result)}, in {times}")
    else:
        lines.append("not evaluated again yet")
    return "<br>".join([*lines, params_text(result.params)])


def _mean_text(result: CandidateResult) -> str:
    radius = radius_of(result)
    return f"{result.mean:.4g}" + (f" ± {radius:.2g}" if radius else "")


def radius_of(result: CandidateResult) -> float:
    """Half the width of the interval around the mean; 0 if there is no finite one."""
    low, high = result.interval
    return (high - low) / 2.0 if math.isfinite(high - low) else 0.0


def level_name(story: SearchStory, fidelity: int) -> str:
    """The fidelity at one of its levels, as the legend calls it."""
    if not story.has_fidelity:
        return "the search's evaluations"
    name, level = story.race.fidelity.name, story.race.levels[fidelity]
    return f"{escape(name)} = {escape(value_text(level))}"


def wrapped(text: str, width: int) -> str:
    """The text, safe in a figure, in lines of at most `width` characters."""
    return "<br>".join(escape(line) for line in textwrap.wrap(text, width))
