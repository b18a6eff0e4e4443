"""The configurations of a finished experiment that are compared once more."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ray.tune import ResultGrid
from ray.tune.result import TRIAL_ID
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_baseline, check_count, shown
from mfhpo.certification.candidates import (
    Candidate,
    Shortlist,
    best_of,
    chosen_in_words,
    n_finalists,
)
from mfhpo.experiment import key_of
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.experiment.metric import as_number
from mfhpo_ray.experiment.space import Config, assign, copied, find, without


class _Trial(NamedTuple):
    """A trial that ended with a finite value; how far it came, by its level first."""

    name: str
    config: Config
    value: float
    came_to: tuple[float, float]


def shortlist_of(
    results: ResultGrid,
    top: int | None,
    *,
    metric: str,
    mode: str,
    fidelity: str | None,
    time_attr: str,
    owned: Collection[str],
    baseline: Mapping[str, Any] | None = None,
) -> tuple[Shortlist, float | None]:
    """Return the `top` best configurations without what is `owned`: seeds and replicates.

    Trials count that ended without an error, with a finite value, and no earlier than others. The
    second is their last value of `time_attr`; None if they report none. See `mfhpo_ray.certify`.
    """
    check_baseline(baseline, has_index=False)
    least = 2 if baseline is None else 1
    if top is not None:
        top = check_count("top", top, least)
    sign = 1.0 if mode == "max" else -1.0
    ended: list[_Trial] = []
    for result in (results[number] for number in range(len(results))):
        metrics: dict[str, Any] = flatten_dict(result.metrics or {})
        value, config = as_number(metrics.get(metric)), result.config
        is_stopped = CENSORED_KEY in metrics or MEMORY_KEY in metrics
        if result.error or is_stopped or config is None or value is None:
            continue
        name, reported = f"trial {metrics[TRIAL_ID]}", metrics.get(time_attr, 0.0)
        length = as_number(reported)
        if length is None:
            raise ValueError(
                f"time_attr={shown(time_attr)} must be the key of a number, but {name} reported "
                f"{shown(reported)}."
            )
        came_to = _level_of(name, config, fidelity), length
        if all(map(math.isfinite, (value, *came_to))):
            ended.append(_Trial(name, without(config, owned), value, came_to))

    level, length = farthest = max((trial.came_to for trial in ended), default=(0.0, 0.0))
    kept = [trial for trial in ended if trial.came_to == farthest]
    groups: dict[str, list[_Trial]] = {}
    for trial in kept:
        groups.setdefault(key_of(trial.config, described), []).append(trial)
    if len(groups) < least:
        raise ValueError(
            f"results has {len(groups)} different configurations in its {len(results)} trials that "
            f"ended with a finite metric={shown(metric)}, at the largest {fidelity or time_attr}; "
            f"at least 2 are needed to tell which is best."
        )
    # Sorting keeps the order of equals: the first trial comes first, as in `get_best_result`.
    ranked = sorted(groups.values(), key=lambda group: -sign * _mean(group))
    promises = [max(sign * trial.value for trial in group) for group in ranked]
    first = promises.index(max(promises))
    today = None
    if baseline is not None:
        set_here = owned if fidelity is None else [*owned, fidelity]
        given = without(copied(baseline), set_here)
        config = _whole_baseline(given, [group[0].config for group in ranked])
        today = groups.get(
            key_of(config, described), [_Trial("baseline", config, math.nan, farthest)]
        )
    own_values = [tuple(trial.value for trial in group) for group in ranked]
    top, n_far = n_finalists(own_values, sign, top)
    chosen, luckiest, place_of_baseline = best_of(ranked, first, top, today)
    n_best = min(top, len(ranked))
    candidates = []
    for place, group in enumerate(chosen):
        best = max(group, key=lambda trial: sign * trial.value)
        promise = best.value if place == luckiest else None
        candidates.append(Candidate(best.name, group[0].config, _mean(group), best_value=promise))
    at = f" that came to {time_attr}={length:g}" if length > 1.0 else ""
    if fidelity is not None:
        at = f" at {fidelity}={level:g}"
    why = "stopped earlier or failed"
    shortlist = Shortlist(
        candidates=tuple(candidates),
        luckiest=luckiest,
        about=f"the {n_best} best of {len(kept)} trials{at}"
        + " and the baseline" * (len(chosen) > n_best),
        words=chosen_in_words("experiment", len(results), len(kept), len(ranked), why, n_far),
        baseline=place_of_baseline,
        own_values=tuple(
            tuple(trial.value for trial in group if math.isfinite(trial.value)) for group in chosen
        ),
    )
    return shortlist, length or None


def _whole_baseline(baseline: Mapping[str, Any], configs: Sequence[Config]) -> Config:
    """Return the baseline with the constants of all configurations that it does not have."""
    flat, given = [flatten_dict(config) for config in configs], flatten_dict(dict(baseline))
    shared = set.intersection(*map(set, flat))
    varies = {key for key in shared if len({repr(described(each[key])) for each in flat}) > 1}
    if wrong := sorted((given.keys() - set().union(*flat)) | (varies - given.keys())):
        raise ValueError(
            f"baseline={shown(dict(baseline))} must have the keys in which configurations differ, "
            f"{sorted(varies)}; look at {wrong[0]!r}."
        )
    whole: Config = {}
    for key, value in {**{key: flat[0][key] for key in shared - varies}, **given}.items():
        assign(whole, key, value)
    return whole


def _level_of(name: str, config: Mapping[str, Any], fidelity: str | None) -> float:
    if fidelity is None:
        return 0.0
    level = as_number(find(config, fidelity))
    if level is None:
        raise ValueError(
            f"fidelity={shown(fidelity)} is no number in the configuration of {name}, "
            f"{shown(flatten_dict(dict(config)))}."
        )
    return level


def _mean(trials: list[_Trial]) -> float:
    return sum(trial.value for trial in trials) / len(trials)
