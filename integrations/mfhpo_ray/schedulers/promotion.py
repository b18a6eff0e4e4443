"""A search among trials: a model promotes them, and new trials evaluate the finalists again."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from numbers import Integral
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from mfhpo._validation import shown
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.settings import SearchSettings, numbered
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.search import DeclaredSearch
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.schedulers.runs import ADDED, Runs

# The budget where none is declared: so many trainings to the end, and so many for each trial. The
# shares are measured (see the evidence page on certificates, "In Ray Tune").
_TRAININGS, _TRAININGS_PER_TRIAL = 6.0, 0.25
_CERTIFY_SHARE, _TOP = 0.3, 3
_OPTIONS = ("delta", "epsilon", "sigma", "max_failures")


def search_settings(
    candidates: Sequence[Mapping[str, Any]],
    fidelity: Fidelity,
    options: Mapping[str, Any],
    *,
    repeats: bool,
    sign: float,
) -> SearchSettings:
    """Return the settings of a search among trials that go on from their checkpoints.

    Parameters
    ----------
    candidates
        The configurations of the trials.
    fidelity
        Their levels, with costs.
    options
        Those of a race, with its seed. Without a budget it is that of six trainings to the end, and
        of a quarter of all trials.
    repeats
        Whether finalists can be evaluated again, with other seeds; else nothing is certified.
    sign
        See `mfhpo.experiment.settings.Settings`.
    """
    levels = tuple(fidelity.levels or ())
    costs = fidelity.costs_of(levels)
    budget = options.get("budget")
    if budget is None:
        if costs is None:
            raise ValueError(
                f"costs={shown(fidelity.costs)}: how many seconds may be spent? Give budget=..."
            )
        budget = (_TRAININGS + _TRAININGS_PER_TRIAL * len(candidates)) * costs[-1]
    declared = DeclaredSearch.of(
        fidelity,
        budget=budget,
        checkpoints=True,
        certify_share=_CERTIFY_SHARE if repeats else 0.0,
        top=_TOP,
        candidates=numbered(_flat(candidates)),
        **{name: options[name] for name in _OPTIONS if name in options},
    )
    return SearchSettings(
        declared=declared,
        levels=levels,
        candidates=candidates,
        seed=options.get("seed", 0),
        sign=sign,
        describe=described,
    )


def _flat(candidates: Sequence[Mapping[str, Any]]) -> Configurations:
    """Return configurations as a model sees them: nested keys joined, no parts of values."""
    return Configurations([flatten_dict(dict(each)) for each in candidates], described)


def replicate_key(runs: Runs, keys: Collection[str]) -> str | None:
    """Return the key under which all trials have a whole number, which may be another one."""
    flat = [flatten_dict(run.trial.config) for run in runs]
    for key in keys:
        if all(_is_whole(config.get(key)) for config in flat):
            return key
    return None


def repeated(runs: Runs, arm: int, key: str) -> Trial:
    """Return a new trial of an arm, with the smallest seed that no trial has."""
    configs = [flatten_dict(run.trial.config) for run in runs]
    used = {config[key] for config in configs}
    seed = next(number for number in count() if number not in used)
    first = next(run.trial for run in runs if run.arm == arm)
    trial = first.reset()
    number = first.experiment_tag.partition("_")[0]
    trial.trial_id = f"{Trial.generate_id()}{ADDED}"
    trial.experiment_tag = f"{number}_{key.replace('/', '_')}={seed}"
    trial.evaluated_params = {**first.evaluated_params, key: seed}
    # The configuration before Ray has put objects in the place of their placeholders.
    unresolved = copy.deepcopy(first._Trial__unresolved_config)  # type: ignore[attr-defined]
    *parents, name = key.split("/")
    inner = unresolved
    for parent in parents:
        inner = inner[parent]
    inner[name] = seed
    trial.config = trial._Trial__unresolved_config = unresolved  # type: ignore[attr-defined]
    trial.restore_path = None
    return trial


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
