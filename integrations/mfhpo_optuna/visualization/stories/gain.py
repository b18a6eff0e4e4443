"""What the picture of time limits shows: the gain under each, and how often it stops trials."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import optuna

from mfhpo import Observation, Pull
from mfhpo.censored import ZoomingRCUCB
from mfhpo_optuna.recommendations import StudyLimitRecommendation
from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.study.limited_race import LimitedRace
from mfhpo_optuna.visualization.stories.words import (
    better,
    between,
    params_text,
    span,
    title,
    trials_text,
    wrong,
)

_MOST_ARMS = 6  # more lines are a thicket

# Of each arm, at each limit: whether its trials were stopped there.
_Stopped: TypeAlias = dict[int, dict[float, list[bool]]]

# Shares of the axis of limits: room at either end, and between ticks.
_MARGIN = 0.06
_TICK_GAP = 0.09
# Room at either end of a single limit, in powers of ten.
_LEAST_MARGIN = 0.1


@dataclass(frozen=True)
class Curve:
    """One arm over its limits: points are limits at which something is known of its gain."""

    label: str
    limits: tuple[float, ...]
    gains: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    survival_limits: tuple[float, ...]  # all its limits
    survival: tuple[float, ...]


@dataclass(frozen=True)
class Stops:
    """Of the recommended arm at a limit: the trials that were stopped, and bounds on that share."""

    limit: float
    stopped: int
    trials: int  # at exactly this limit; it may be none
    bounds: tuple[float, float]


@dataclass(frozen=True)
class GainStory:
    """All that the picture of time limits shows, the recommended arm's curve first."""

    title: tuple[str, ...]
    curves: tuple[Curve, ...]
    limit: float  # the recommended one
    gain: float
    stops: tuple[Stops, ...]
    limit_range: tuple[float, float]  # powers of ten
    limit_ticks: tuple[float, ...]
    gain_axis: str
    gain_span: tuple[float, float]


def tell_gain(study: optuna.Study, sampler: LimitSampler) -> GainStory:
    """Go through a study with time limits; ValueError if there is nothing to show."""
    sampler.best_limit(study)  # raises if there is nothing to show
    answer = sampler.recommendation(study)
    stopped: _Stopped = {}

    def hear(trial_number: int, pull: Pull, observation: Observation) -> None:
        if not observation.failed:
            limits = stopped.setdefault(pull.arm, {})
            if pull.limit is not None:
                limits.setdefault(pull.limit, []).append(observation.censored_at is not None)

    race = sampler.replay(study, lambda race: hear)
    shown = _most_played(stopped, answer.arm, race.policy.active.tolist())
    curves = tuple(_curve(race, answer, arm) for arm in shown)
    limits = np.concatenate([_limits(race, arm) for arm in shown])
    limit_range, ticks = _axis(limits)
    first = curves[0]
    assert answer.limit is not None
    return GainStory(
        title=_title(race, answer, curves),
        curves=curves,
        limit=answer.limit,
        gain=answer.gain,
        stops=_stops(answer, stopped),
        limit_range=limit_range,
        limit_ticks=ticks,
        gain_axis=f"gain of a trial ({better(race.sign)})",
        gain_span=span(
            (*answer.interval, *first.gains),
            [gain for curve in curves for gain in curve.gains],
            race.sign,
        ),
    )


def _most_played(stopped: _Stopped, first: int | None, active: Collection[int]) -> list[int]:
    """Active arms in the order of their trials, `first` before all; not more than can be read."""

    def order(arm: int) -> tuple[bool, int]:
        return arm != first, -sum(map(len, stopped[arm].values()))

    return sorted(stopped.keys() & set(active), key=order)[:_MOST_ARMS]


def _curve(race: LimitedRace, answer: StudyLimitRecommendation, arm: int) -> Curve:
    limits, gains = _limits(race, arm), race.policy.estimate(arm)
    known = np.flatnonzero(~np.isnan(gains)).tolist()
    ends = [sorted(race.sign * end for end in race.policy.interval(arm, at)) for at in known]
    survival = race.policy.survival(arm).tolist()
    if arm == answer.arm:
        survival = [point.probability for point in answer.survival]
    return Curve(
        label=f"arm {arm}",
        limits=tuple(limits[known].tolist()),
        gains=tuple((race.sign * gains[known]).tolist()),
        intervals=tuple((low, high) for low, high in ends),
        survival_limits=tuple(limits.tolist()),
        survival=tuple(survival),
    )


def _stops(answer: StudyLimitRecommendation, stopped: _Stopped) -> tuple[Stops, ...]:
    assert answer.arm is not None
    tried = stopped[answer.arm]
    return tuple(
        Stops(
            point.limit,
            sum(tried.get(point.limit, [])),
            len(tried.get(point.limit, [])),
            (point.low, point.high),
        )
        for point in answer.survival
    )


def _axis(limits: npt.NDArray[np.float64]) -> tuple[tuple[float, float], tuple[float, ...]]:
    """A logarithmic axis of limits: its range in powers of ten, and ticks that can be read."""
    different = np.unique(limits)
    logs = np.log10(different)
    margin = max(_MARGIN * (logs[-1] - logs[0]), _LEAST_MARGIN)
    low, high = float(logs[0] - margin), float(logs[-1] + margin)
    ticks: list[float] = []
    for limit in different[::-1].tolist():
        if not ticks or math.log10(ticks[-1] / limit) >= _TICK_GAP * (high - low):
            ticks.append(limit)
    return (low, high), tuple(ticks[::-1])


def _limits(race: LimitedRace, arm: int) -> npt.NDArray[np.float64]:
    policy = race.policy
    limits = policy.points(arm) if isinstance(policy, ZoomingRCUCB) else policy.limits
    return np.array([]) if limits is None else limits


def _title(
    race: LimitedRace, answer: StudyLimitRecommendation, curves: tuple[Curve, ...]
) -> tuple[str, ...]:
    survival = next((p for p in answer.survival if p.limit == answer.limit), None)
    stops = ""
    if survival is not None:
        bounds = f"in [{survival.low:.0%}, {survival.high:.0%}]"
        stops = f"The limit stops {survival.probability:.0%} of its trials, {bounds}"
    worse = "lower" if race.sign > 0.0 else "upper"
    shown = "" if len(curves) == len(race.arms) else f"; {len(curves)} arms are shown"
    return title(
        f"Arm {answer.arm} of {len(race.arms)} leads, with a limit of {answer.limit:.3g} s",
        params_text(answer.params),
        f"Gain {answer.gain:.4g} {between(answer.interval)} for a trial, the best {worse} end",
        _rival(race, curves),
        stops,
        f"{answer.seconds:,.4g} s in {trials_text(answer.trials)}, {answer.censored:.0%} stopped"
        f"{shown}",
        _bounds(answer),
    )


def _bounds(answer: StudyLimitRecommendation) -> str:
    """What the bounds are worth."""
    if answer.estimated:
        return f"Bounds are approximate: {answer.estimated}"
    return f"Bounds on gains hold at any time, {wrong(answer.delta)}; so do those on stops"


def _rival(race: LimitedRace, curves: tuple[Curve, ...]) -> str:
    """The best that another arm promises surely, at whichever limit."""
    sure = 0 if race.sign > 0.0 else 1
    rivals = [
        (race.sign * interval[sure], gain, limit, curve.label, interval)
        for curve in curves[1:]
        for limit, gain, interval in zip(curve.limits, curve.gains, curve.intervals, strict=True)
    ]
    if not rivals:
        return ""
    _, gain, limit, label, interval = max(rivals)
    return f"Next: {label} with {limit:.3g} s, {gain:.4g} {between(interval)}".rstrip()
