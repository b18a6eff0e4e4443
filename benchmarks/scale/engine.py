"""An experiment without a host: what a replay takes, and one more event and choice after it."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mfhpo import Fidelity, Policy, Problem
from mfhpo.certification.choice import make_best_policy
from mfhpo.experiment import Assignment, Begun, Ended, Event, Experiment, RaceSettings

_ARMS, _LEVELS, _WORKERS = 200, (1, 3, 9), 8
_MORE = 200  # evaluations after the replay
SILENT, WHOLE = "none", "IISE"


@dataclass(frozen=True)
class Replayed:
    """CPU time of a replay, and mean and largest milliseconds of what follows it."""

    policy: str
    events: int
    replay_cpu_seconds: float
    event_ms: tuple[float, float]
    next_ms: tuple[float, float]


def settings(policy: str) -> RaceSettings:
    """Return a race that does not end; with no policy, nothing is learned from values."""
    found = RaceSettings.of(
        [{"lr": 0.001 * n, "depth": n, "kind": "abc"[n % 3]} for n in range(_ARMS)],
        fidelity=Fidelity("epochs", levels=_LEVELS),
        bias=(0.5, 0.2, 0.0),
        sigma=1.0,
        epsilon=1e-4,
    )
    assert isinstance(found, RaceSettings)
    if policy != SILENT:
        return found
    return replace(found, declared=replace(found.declared, make=_silent))


def _silent(problem: Problem, **options: Any) -> Policy:
    policy = make_best_policy(problem, **{**options, "aim": "best arm"})
    vars(policy)["tell"] = lambda pull, observation: None
    return policy


def history(evaluations: int) -> Iterator[Event]:
    """Return the events of evaluations that end in another order than they began."""
    rng, order, begun = random.Random(0), 0, 0
    values = np.random.default_rng(0).normal(size=evaluations)
    under_way: list[str] = []
    candidates = settings(SILENT).runner().configurations
    while begun < evaluations or under_way:
        if begun < evaluations and len(under_way) < _WORKERS:
            yield Begun(
                id=str(begun),
                order=order,
                configuration=candidates[rng.randrange(_ARMS)],
                levels=(rng.randrange(len(_LEVELS)),),
                replicate=begun,
            )
            under_way.append(str(begun))
            begun += 1
        else:
            id = under_way.pop(rng.randrange(len(under_way)))
            yield Ended(id=id, order=order, value=float(values[int(id)]))
        order += 1


def one_more(experiment: Experiment, timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Choose and evaluate once more, each step within `timed`."""
    work = timed("next", experiment.next)
    assert isinstance(work, Assignment)
    begun = work.begun(f"another {experiment.n_begun}", experiment.order)
    timed("event", lambda: _learn(experiment, begun))
    ended = Ended(id=begun.id, order=experiment.order, value=0.0)
    timed("event", lambda: _learn(experiment, ended))


def _learn(experiment: Experiment, event: Event) -> None:
    experiment.apply(event)
    assert experiment.runner.n_levels  # an event is learned when it is asked for


def replayed(policy: str, evaluations: int) -> Replayed:
    """Measure a replay, and some evaluations after it."""
    events = list(history(evaluations))
    taken: dict[str, list[float]] = {"replay": [], "event": [], "next": []}

    def timed(what: str, do: Callable[[], Any]) -> Any:
        began = time.process_time()
        found = do()
        taken[what].append(time.process_time() - began)
        return found

    def replay() -> Experiment:
        experiment = Experiment.replay(settings(policy), events)
        experiment.answer()
        return experiment

    experiment = timed("replay", replay)
    for _ in range(_MORE):
        one_more(experiment, timed)
    return Replayed(
        policy=policy,
        events=len(events),
        replay_cpu_seconds=taken["replay"][0],
        event_ms=_mean_and_largest(taken["event"]),
        next_ms=_mean_and_largest(taken["next"]),
    )


def _mean_and_largest(seconds: list[float]) -> tuple[float, float]:
    return 1e3 * float(np.mean(seconds)), 1e3 * max(seconds)
