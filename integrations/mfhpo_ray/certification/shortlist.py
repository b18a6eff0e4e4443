"""The best few configurations of a finished experiment, as its own results have them."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from ray.tune import ResultGrid
from ray.tune.result import TRIAL_ID
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_count, check_instance, shown
from mfhpo.certification.candidates import Candidate, Shortlist, best_of
from mfhpo.experiment import key_of
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.experiment.metric import as_number
from mfhpo_ray.experiment.space import Config, find, has, without


@dataclass(frozen=True)
class GridShortlist(Shortlist):
    """A shortlist of configurations, with how far their trials came.

    Parameters
    ----------
    length
        The trials' last value of `time_attr`; None if they report none.
    """

    length: float | None


@dataclass
class _Configuration:
    config: Config
    values: dict[str, float] = field(default_factory=dict)  # by trial

    @property
    def claim(self) -> float:
        return sum(self.values.values()) / len(self.values)


def shortlist_of(
    results: ResultGrid,
    top: int,
    *,
    metric: str,
    mode: str,
    fidelity: str | None,
    time_attr: str,
    owned: Collection[str],
) -> GridShortlist:
    """Return the `top` best configurations without what is `owned`: seeds and replicates.

    Trials count that ended without an error, with a finite value, and no earlier than others. For
    arguments and errors see `mfhpo_ray.certify`.
    """
    check_instance("results", results, ResultGrid, "the ResultGrid of Tuner.fit")
    top = check_count("top", top, 2)
    sign = 1.0 if mode == "max" else -1.0
    ended: list[tuple[tuple[float, float], str, float, Config]] = []
    for result in (results[number] for number in range(len(results))):
        metrics: dict[str, Any] = flatten_dict(result.metrics or {})
        value, config = as_number(metrics.get(metric)), result.config
        is_stopped = CENSORED_KEY in metrics or MEMORY_KEY in metrics
        if result.error or is_stopped or config is None or value is None:
            continue
        level = 0.0
        if fidelity is not None:
            found = as_number(find(config, fidelity)) if has(config, fidelity) else None
            if found is None:
                raise ValueError(
                    f"fidelity={shown(fidelity)} is no number in the configuration of trial "
                    f"{metrics[TRIAL_ID]}, {shown(flatten_dict(config))}."
                )
            level = found
        if math.isfinite(value):
            came_to = (level, float(metrics.get(time_attr, 0.0)))
            ended.append((came_to, f"trial {metrics[TRIAL_ID]}", value, config))
    farthest = max((came_to for came_to, *_ in ended), default=(0.0, 0.0))
    groups: dict[str, _Configuration] = {}
    for came_to, name, value, config in ended:
        if came_to == farthest:
            kept = without(config, owned)
            groups.setdefault(key_of(kept, described), _Configuration(kept)).values[name] = value
    if len(groups) < 2:
        raise ValueError(
            f"results has {len(groups)} different configurations in its {len(results)} trials that "
            f"ended with a finite metric={shown(metric)}, at the largest {fidelity or time_attr}; "
            f"at least 2 are needed to tell which is best."
        )
    # Sorting keeps the order of equals: the first trial comes first, as in `get_best_result`.
    ranked = sorted(groups.values(), key=lambda group: -sign * group.claim)
    promises = [max(sign * value for value in group.values.values()) for group in ranked]
    chosen, luckiest = best_of(ranked, promises.index(max(promises)), top)
    candidates = []
    for place, group in enumerate(chosen):
        name = max(group.values, key=lambda trial: sign * group.values[trial])
        best = group.values[name] if place == luckiest else None
        candidates.append(Candidate(name, group.config, group.claim, best_value=best))
    n_kept = sum(len(group.values) for group in ranked)
    at = _place(fidelity, time_attr, farthest)
    return GridShortlist(
        candidates=tuple(candidates),
        luckiest=luckiest,
        about=f"the {len(chosen)} best of {n_kept} trials{at}",
        words=_words(len(results), n_kept, len(ranked)),
        length=farthest[1] or None,
    )


def _place(fidelity: str | None, time_attr: str, farthest: tuple[float, float]) -> str:
    level, length = farthest
    if fidelity is not None:
        return f" at {fidelity}={level:g}"
    return f" that came to {time_attr}={length:g}" if length > 1.0 else ""


def _words(n_trials: int, n_kept: int, n_configurations: int) -> str:
    words = f"by the experiment's own values, out of {n_configurations} configurations"
    if n_kept > n_configurations:
        words += f" in {n_kept} trials (repeats by their mean)"
    if n_trials > n_kept:
        n_left_out = n_trials - n_kept
        words += (
            f"; {n_left_out} trial{'s' * (n_left_out != 1)} left out (stopped earlier or failed)"
        )
    return f"{words}; the means below use new evaluations only"
