"""What the picture of a race shows: who won, by how much, when the others left, what it cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import optuna

from mfhpo.identification.block_elimination import BlockElimination
from mfhpo_optuna.recommendations import StudyRecommendation
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.visualization.stories.race_replay import RaceReplay, Standing, Visit
from mfhpo_optuna.visualization.stories.words import (
    better,
    between,
    paid_text,
    params_lines,
    params_text,
    sentence,
    span,
    title,
    trials_text,
    value_text,
    wrong,
)

_MOST_ROWS = 40  # more would be too low to be read
_FINEST = 1 / 600  # of the axis of costs: gaps below it are not seen

EXITS = {
    "eliminated": "eliminated",
    "failed": "left by failing",
    "duplicate": "same as another arm",
}


@dataclass(frozen=True)
class Row:
    """One arm: what it is worth, and what was spent on it until it left."""

    arm: int
    label: str
    mean: float  # NaN if it gave no value
    interval: tuple[float, float]  # infinite if there are too few evaluations for one
    level: int
    left_at: float  # what the race had cost then; the race's cost if the arm is in it still
    exit: str | None  # a key of `EXITS`
    paid: tuple[tuple[int, float, float], ...]  # stretches of the race's cost: level, from, to
    lines: tuple[str, ...]  # what there is to say about it


@dataclass(frozen=True)
class RaceStory:
    """All that the picture of a race shows, the winner's row first."""

    title: tuple[str, ...]
    rows: tuple[Row, ...]
    has_winner: bool
    omitted: int  # arms without a row
    levels: tuple[str, ...]
    cost: float
    value_axis: str
    value_span: tuple[float, float]
    cost_axis: str


def tell_race(study: optuna.Study, sampler: FidelitySampler) -> RaceStory:
    """Go through a study's race; ValueError if there is nothing to show."""
    answer = sampler.recommendation(study)
    replay = RaceReplay(study, sampler)
    standings = {arm: replay.standing(arm) for arm in range(len(replay.race.arms))}
    ranking = _ranking(replay, standings, answer.arm)
    shown = ranking[:_MOST_ROWS]
    cost = replay.policy.cost
    visits: dict[int, list[Visit]] = {arm: [] for arm in shown}
    for visit in replay.visits:
        if visit.arm in visits:
            visits[visit.arm].append(visit)
    rows = tuple(_row(replay, answer, arm, standings[arm], visits[arm]) for arm in shown)
    first = rows[0]
    sign = replay.race.sign
    unit = " in seconds" if replay.race.fidelity.costs == "measured" else ""
    return RaceStory(
        title=_title(replay, answer, rows),
        rows=rows,
        has_winner=answer.arm is not None,
        omitted=len(ranking) - len(shown),
        levels=tuple(
            f"{replay.race.fidelity.name} = {value_text(level)}" for level in replay.race.levels
        ),
        cost=cost,
        value_axis=f"mean ({better(sign)})",
        value_span=span((first.mean, *first.interval), [row.mean for row in rows], sign),
        cost_axis=f"cost of the race{unit}",
    )


def _ranking(
    replay: RaceReplay, standings: dict[int, Standing | None], winner: int | None
) -> list[int]:
    """All arms: the winner, the others still in the race from best to worst, then by exit."""

    def key(arm: int) -> tuple[bool, float, float]:
        standing = standings[arm]
        value = math.inf if standing is None else -replay.race.sign * standing.mean
        exit_ = replay.exits.get(arm)
        return arm != winner, -exit_.cost if exit_ else -math.inf, value

    return sorted(standings, key=key)


def _row(
    replay: RaceReplay,
    answer: StudyRecommendation,
    arm: int,
    standing: Standing | None,
    visits: Sequence[Visit],
) -> Row:
    exit_ = replay.exits.get(arm)
    mean, interval, level = math.nan, (-math.inf, math.inf), 0
    if standing is not None:
        level, mean = standing.fidelity, standing.mean
        interval = mean - standing.radius, mean + standing.radius
    if arm == answer.arm and answer.certified:
        mean, interval = answer.mean, answer.interval  # of all levels together
    spent = sum(visit.end - visit.begin for visit in visits)
    cost = replay.policy.cost
    lines = [f"arm {arm}: " + ("no value" if standing is None else f"{mean:.4g}")]
    if standing is not None:
        lines[0] += f" {between(interval) or '(too few values for an interval)'}"
        lines.append(
            f"{trials_text(standing.count)} at {replay.race.fidelity.name} = "
            f"{value_text(replay.race.levels[level])}"
        )
    lines.append(f"cost {spent:,.6g}, {spent / cost:.0%} of the race" if cost else "not begun")
    if exit_:
        lines.append(f"{EXITS[exit_.reason]} when the race had cost {exit_.cost:,.6g}")
    return Row(
        arm=arm,
        label=f"arm {arm}",
        mean=mean,
        interval=interval,
        level=level,
        left_at=exit_.cost if exit_ else cost,
        exit=exit_.reason if exit_ else None,
        paid=_stretches(visits, _FINEST * cost),
        lines=(*lines, *params_lines(replay.race.arms.params(arm))),
    )


def _stretches(visits: Sequence[Visit], finest: float) -> tuple[tuple[int, float, float], ...]:
    """The visits' costs, those at one level joined where no gap would be seen between them."""
    joined: list[tuple[int, float, float]] = []
    for visit in visits:
        level, begin = visit.fidelity, visit.begin
        if joined and joined[-1][0] == level and begin - joined[-1][2] <= finest:
            begin = joined.pop()[1]
        joined.append((level, begin, visit.end))
    return tuple(joined)


def _title(replay: RaceReplay, answer: StudyRecommendation, rows: Sequence[Row]) -> tuple[str, ...]:
    arms = len(replay.race.arms)
    in_seconds = replay.race.fidelity.costs == "measured"
    paid = sentence(paid_text(answer.cost, in_seconds, answer.trials, answer.failures))
    if answer.arm is None:
        return title(f"A race of {arms} arms", sentence(answer.reason), paid)
    state = "wins, certified" if answer.certified else "leads"
    if answer.certifies and not answer.certified:
        state += ", not certified"
    name = replay.race.fidelity.name
    worth = f"{answer.mean:.4g}"
    if answer.certified or answer.level == replay.race.levels[-1]:
        worth += f" {between(answer.interval)}".rstrip()
    worth += f" at {name} = {value_text(answer.level)}"
    if answer.certified:
        claim = f"At most {answer.epsilon:.3g} worse than the best arm, {wrong(answer.delta)}"
    else:
        claim = sentence(answer.reason)
    compared = ""
    if isinstance(replay.policy, BlockElimination):
        compared = "Compared on the same replicates, which tells more than intervals do"
    return title(
        f"Arm {answer.arm} of {arms} {state}",
        params_text(answer.params),
        f"{worth}{_lead(rows, replay.race.sign)}",
        claim,
        paid,
        compared,
    )


def _lead(rows: Sequence[Row], sign: float) -> str:
    """By how much the winner is ahead of the last of the others that was seen at its level."""
    first, *others = rows
    rival = next((r for r in others if r.level == first.level and math.isfinite(r.mean)), None)
    if rival is None or not math.isfinite(first.mean):
        return ""
    ahead = sign * (first.mean - rival.mean)
    return f"; {abs(ahead):.2g} {'ahead of' if ahead >= 0.0 else 'behind'} {rival.label}"
