"""A search among trials: a model promotes them, and new trials evaluate the finalists again."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from numbers import Integral
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from mfhpo._validation import shown
from mfhpo.experiment import Answer, Configurations, SearchSettings
from mfhpo.experiment.kinds.runner import numbered
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import EstimatedNoise, Noise, SubGaussian
from mfhpo.racing.declaration import SigmaLike
from mfhpo.search import DeclaredSearch
from mfhpo_ray.experiment.configurations import assign, described
from mfhpo_ray.schedulers.runs import ADDED, Run, Runs

# The budget where none is declared: so many trainings to the end, and so many for each trial; so
# many times as much where trials begin anew after a pause. The numbers are measured (see the
# evidence page on certificates, "In Ray Tune").
_TRAININGS, _TRAININGS_PER_TRIAL, _IF_ANEW = 6.0, 0.25, 1.4
_CERTIFY_SHARE, _TOP = 0.3, 3
_OPTIONS = ("delta", "epsilon", "max_failures")
_SEED = re.compile(rf"_(\d+){ADDED}:")  # in the id of a claim of a trial that was added


class Promotion:
    """A search among trials that are all known, and go on from their checkpoints if they have any.

    Where all have a whole number under one of the `replicate_keys`, new trials with other numbers
    evaluate the finalists; else nothing is certified.
    """

    def __init__(
        self,
        runs: Runs,
        add_trial: Callable[[Trial], None],
        replicate_keys: Collection[str],
        fidelity: Fidelity,
        noise: Noise | None = None,
        **options: Any,
    ) -> None:
        self._runs, self._add_trial, self._replicate_keys = runs, add_trial, replicate_keys
        self._key = next((key for key in replicate_keys if _has_whole_numbers(runs, key)), None)
        self._fidelity, self._noise, self._options = fidelity, noise, options

    def settings(self, candidates: Sequence[Mapping[str, Any]], sign: float) -> SearchSettings:
        """Return the settings of the search, among the configurations of the trials."""
        levels, noise = tuple(self._fidelity.levels or ()), self._noise
        sigma: SigmaLike = None if isinstance(noise, EstimatedNoise) else noise
        if isinstance(noise, SubGaussian):
            sigma = noise.at(len(levels) - 1, len(levels))
        # A model sees nested keys as parameters.
        arms = Configurations([flatten_dict(dict(each)) for each in candidates], described)
        flat = numbered(arms)
        declared = DeclaredSearch.of(
            self._fidelity,
            budget=self.budget(),
            checkpoints=True,
            certify_share=0.0 if self._key is None else _CERTIFY_SHARE,
            top=_TOP,
            candidates=flat if len(flat) > 1 else None,
            sigma=sigma,
            **{name: self._options[name] for name in _OPTIONS if name in self._options},
        )
        return SearchSettings(
            declared=replace(declared, candidates=flat),  # may be a single one
            levels=levels,
            candidates=candidates,
            seed=self._options.get("seed", 0),
            sign=sign,
            describe=described,
        )

    def budget(self, resumes: bool = True) -> float:
        """Return what may be paid: more where trials begin anew, unless it is declared."""
        declared: float | None = self._options.get("budget")
        if declared is not None:
            return declared
        costs = self._fidelity.costs_of(tuple(self._fidelity.levels or ()))
        if costs is None:
            raise ValueError(
                f"costs={shown(self._fidelity.costs)}: nobody knows how many seconds trials take; "
                f"give budget=..., in seconds."
            )
        trainings = _TRAININGS + _TRAININGS_PER_TRIAL * self._runs.n_arms
        return float(trainings * costs[-1] * (1.0 if resumes else _IF_ANEW))

    @property
    def repeats(self) -> bool:
        """True if finalists can be evaluated again."""
        return self._key is not None

    def seed_of(self, run: Run) -> int:
        """Return the number that sets a trial's seed."""
        return int(flatten_dict(run.trial.config)[self._key])

    def add(self, arm: int, claims: Iterable[str]) -> Run:
        """Add a trial of an arm, with the smallest seed that no trial has or had, by its claims."""
        assert self._key is not None
        # After a restart, Ray may not know all trials that were added.
        told = {int(found[1]) for found in map(_SEED.search, claims) if found}
        used = told.union(map(self.seed_of, self._runs))
        first = next(run.trial for run in self._runs if run.arm == arm)
        trial = _with_seed(first, self._key, next(seed for seed in count() if seed not in used))
        self._add_trial(trial)
        return self._runs[trial]

    def explained(self, answer: Answer) -> Answer:
        """Return an answer that says so where finalists could not be evaluated again."""
        if self._key is not None:
            return answer
        keys = " or ".join(map(repr, self._replicate_keys))
        why = f"trials have no number under {keys} that sets their seed, for finalists to be "
        return replace(answer, reason=f"{why}evaluated again; {answer.reason}")


def _has_whole_numbers(runs: Runs, key: str) -> bool:
    values = [flatten_dict(run.trial.config).get(key) for run in runs]
    return all(isinstance(each, Integral) and not isinstance(each, bool) for each in values)


def _with_seed(first: Trial, key: str, seed: int) -> Trial:
    """Return a new trial like another one, with a seed of its own."""
    trial = first.reset()
    trial.trial_id = f"{Trial.generate_id()}_{seed}{ADDED}"
    number = first.experiment_tag.partition("_")[0]
    trial.experiment_tag = f"{number}_{key.replace('/', '_')}={seed}"
    trial.evaluated_params = {**first.evaluated_params, key: seed}
    trial.restore_path = None
    # What Ray resolves again when the trial is added: objects have placeholders in it.
    config = copy.deepcopy(first._Trial__unresolved_config)  # type: ignore[attr-defined]
    assign(config, key, seed)
    trial.config = trial._Trial__unresolved_config = config  # type: ignore[attr-defined]
    return trial
