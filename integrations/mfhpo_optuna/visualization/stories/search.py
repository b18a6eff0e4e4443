"""What the picture of a search shows: what was evaluated, and how much of the best was luck."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import optuna

from mfhpo.certification.candidates import CandidateResult
from mfhpo.certification.certificate import Certificate
from mfhpo_optuna.recommendations import SearchRecommendation
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.visualization.stories.search_replay import Evaluation, SearchReplay
from mfhpo_optuna.visualization.stories.words import (
    better,
    between,
    paid_text,
    params_lines,
    params_text,
    sentence,
    span,
    title,
    value_text,
    wrong,
)


@dataclass(frozen=True)
class Mark:
    """One evaluation: the cost paid once it had ended, its value, and what there is to say."""

    cost: float
    value: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Finalist:
    """One configuration of the shortlist: what it had promised, and what new evaluations say."""

    label: str
    claim: float
    mean: float  # NaN without new evaluations
    interval: tuple[float, float]  # infinite if there are too few for one
    lines: tuple[str, ...]


@dataclass(frozen=True)
class SearchStory:
    """All that the picture of a search shows."""

    title: tuple[str, ...]
    levels: tuple[str, ...]
    searched: tuple[tuple[Mark, ...], ...]  # by level, but the answer's own
    replicates: tuple[Mark, ...]  # evaluated again for the certificate, but the answer's own
    answer: tuple[Mark, ...]  # the search's evaluations of it
    answer_replicates: tuple[Mark, ...]
    answer_label: str
    failed: tuple[Mark, ...]  # at the bad edge of the axis
    best: tuple[Mark, ...]  # each better than all before it, at the target
    best_label: str
    cost: float
    cost_of_search: float | None  # None if nothing was evaluated again
    value_axis: str
    value_span: tuple[float, float]
    cost_axis: str
    finalists: tuple[Finalist, ...]  # the best first
    has_winner: bool  # whether the first finalist is it
    finalist_span: tuple[float, float]


def tell_search(study: optuna.Study, sampler: FidelitySampler) -> SearchStory:
    """Go through a study's search; ValueError if there is nothing to show."""
    answer = sampler.recommendation(study)
    assert isinstance(answer, SearchRecommendation)
    replay = SearchReplay(study, sampler)
    sign, target = replay.race.sign, len(replay.race.levels) - 1
    certificate = replay.search.certificate()
    values = [e.value for e in replay.evaluations if math.isfinite(e.value)]
    best = replay.best_at_target()
    value_span = span([e.value for e in best], values, sign)
    edge = value_span[0 if sign > 0.0 else 1]
    finalists = () if certificate is None else _finalists(replay, certificate)

    def marks(evaluations: Iterable[Evaluation]) -> tuple[Mark, ...]:
        return tuple(_mark(replay, evaluation, edge) for evaluation in evaluations)

    unit = " in seconds" if replay.race.fidelity.costs == "measured" else ""
    return SearchStory(
        title=_title(replay, answer, certificate),
        levels=tuple(_level_name(replay, level) for level in range(target + 1)),
        searched=tuple(
            marks(e for e in replay.of_search(level) if e.arm != answer.arm)
            for level in range(target + 1)
        ),
        replicates=marks(e for e in replay.replicates() if e.arm != answer.arm),
        answer=marks(replay.of_arm(answer.arm)),
        answer_replicates=marks(e for e in replay.replicates() if e.arm == answer.arm),
        answer_label=f"arm {answer.arm}, {'certified' if answer.certified else 'recommended'}",
        failed=marks(e for e in replay.evaluations if not math.isfinite(e.value)),
        best=marks(best),
        best_label="luckiest value so far"
        + (f", {_level_name(replay, target)}" if replay.has_fidelity else ""),
        cost=replay.evaluations[-1].cost if replay.evaluations else 0.0,
        cost_of_search=replay.cost_of_search(),
        value_axis=f"value ({better(sign)})",
        value_span=value_span,
        cost_axis=f"cost paid{unit}",
        finalists=finalists,
        has_winner=certificate is not None and certificate.winner is not None,
        finalist_span=_finalist_span(finalists, sign),
    )


def _mark(replay: SearchReplay, evaluation: Evaluation, edge: float) -> Mark:
    known = math.isfinite(evaluation.value)
    value = f"{evaluation.value:.5g}" if known else "failed"
    purpose = ", for the certificate" if evaluation.is_replicate else ""
    level = f", {_level_name(replay, evaluation.fidelity)}" if replay.has_fidelity else ""
    return Mark(
        evaluation.cost,
        evaluation.value if known else edge,
        (
            f"trial {evaluation.trial}: {value}{purpose}",
            f"arm {evaluation.arm}{level}",
            *params_lines(replay.race.arms.params(evaluation.arm)),
        ),
    )


def _finalists(replay: SearchReplay, certificate: Certificate) -> tuple[Finalist, ...]:
    """The winner, then the others from best to worst."""

    def key(place: int) -> tuple[bool, bool, float]:
        result = certificate.candidates[place]
        value = result.mean if result.evaluations else result.claim
        return place != certificate.winner, not result.evaluations, -replay.race.sign * value

    order = sorted(range(len(certificate.candidates)), key=key)
    return tuple(
        Finalist(result.name, result.claim, result.mean, result.interval, _lines(result))
        for result in (certificate.candidates[place] for place in order)
    )


def _lines(result: CandidateResult) -> tuple[str, ...]:
    lines = [f"{result.name}: {result.standing}", f"the search had seen {result.claim:.5g}"]
    if result.evaluations:
        times = f"{result.evaluations} new evaluation{'s' * (result.evaluations != 1)}"
        lines.append(f"{times}: {result.mean:.5g} {between(result.interval)}")
    else:
        lines.append("not evaluated again yet")
    return (*lines, *params_lines(result.params))


def _finalist_span(finalists: Iterable[Finalist], sign: float) -> tuple[float, float]:
    """Range of the shortlist's axis; intervals much wider than what they are of run beyond it."""
    needed: list[float] = []
    radii: list[float] = []
    means: list[float] = []
    for finalist in finalists:
        needed.append(finalist.claim)
        if math.isfinite(finalist.mean):
            means.append(finalist.mean)
            radii.append((finalist.interval[1] - finalist.interval[0]) / 2.0)
    points = [value for value in (*needed, *means) if math.isfinite(value)]
    if points:
        finite = [radius for radius in radii if math.isfinite(radius)]
        reach = min(max(finite, default=0.0), 2.0 * (max(points) - min(points)) or math.inf)
        points += [mean + side * reach for mean in means for side in (-1.0, 1.0)]
    return span(points, (), sign)


def _luck(certificate: Certificate) -> str:
    """How far the candidate that the search would have handed over was from its promise."""
    result = certificate.luckiest_result
    words = f"The search's best, {result.name}, had shown {result.promise:.4g}"
    if not result.evaluations:
        return f"{words}; it was not evaluated again"
    amount = f"{abs(result.gap):.2g} {'better' if result.gap >= 0.0 else 'worse'}"
    return f"{words}, {amount} than its new mean"


def _title(
    replay: SearchReplay, answer: SearchRecommendation, certificate: Certificate | None
) -> tuple[str, ...]:
    """What came of it, how sure that is, what was tried, and what it cost."""
    in_seconds = replay.race.fidelity.costs == "measured"
    paid = (
        f"{answer.tried:,} configurations, {answer.at_target:,} at the target; "
        f"{paid_text(answer.cost, in_seconds, answer.trials, answer.failures)}"
    )
    if answer.arm is None:
        return title("A search without an answer yet", sentence(answer.reason), paid)
    state = "wins, certified" if answer.certified else "leads, not certified"
    at = f" at {replay.race.fidelity.name} = {value_text(answer.level)}"
    worth = f"{answer.mean:.4g} {between(answer.interval)}".rstrip()
    worth += at if replay.has_fidelity else ""
    claim = sentence(answer.reason)
    if answer.certified:
        claim = (
            f"At most {answer.epsilon:.3g} worse than the best of the shortlist, "
            f"{wrong(answer.delta)}"
        )
    luck = "" if certificate is None else _luck(certificate)
    return title(f"Arm {answer.arm} {state}", params_text(answer.params), worth, claim, luck, paid)


def _level_name(replay: SearchReplay, level: int) -> str:
    """The fidelity at one of its levels, as the legend calls it."""
    if not replay.has_fidelity:
        return "evaluated"
    return f"{replay.race.fidelity.name} = {value_text(replay.race.levels[level])}"
