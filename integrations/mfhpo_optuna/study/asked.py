"""The level and the replicate of a trial whose objective asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from mfhpo_optuna.study.levels import contains, described, levels_in
from mfhpo_optuna.study.study_experiment import StudyExperiment


def level_for(known: StudyExperiment, trial: FrozenTrial, distribution: BaseDistribution) -> Any:
    """Return the level for a trial whose objective asks for it with a distribution.

    Raises ValueError if the levels were others before.
    """
    fidelity, note = known.kind.fidelity, known.under_way.claims[trial.number]
    assert fidelity is not None
    levels = levels_in(fidelity, distribution)
    earlier = known.trials.levels
    if earlier and described(earlier) != described(levels):
        raise ValueError(
            f"the objective suggests {fidelity.name!r} as {distribution} in trial "
            f"{trial.number}, with the levels {list(levels)}, but did so with the levels "
            f"{list(earlier)} before; their values must not be mixed. Suggest it with the same "
            f"range in every trial, give Fidelity({fidelity.name!r}, levels=[...]), or begin "
            f"another study."
        )
    if not earlier:
        asked = _as_asked(trial, {fidelity.name: distribution})
        for event in known.trials.found(asked, note):
            known.experiment.apply(event)
    index = note.fidelity
    if index is None:
        number = trial.number
        if number not in known.levels_of:
            known.levels_of[number] = known.experiment.level_of(str(number))
        index = known.levels_of[number]
    level = levels[index]
    if not contains(distribution, level):
        raise ValueError(
            f"the race needs {fidelity.name}={level!r}, which the objective's {distribution} "
            f"does not allow; suggest {fidelity.name!r} with the same range in every trial, "
            f"one that contains all levels {list(levels)}."
        )
    return level


def replicate_for(
    known: StudyExperiment, trial: FrozenTrial, distribution: BaseDistribution
) -> Any:
    """Return the replicate for a trial whose objective asks for it with a distribution."""
    replicates, note = known.trials.replicates, known.under_way.claims[trial.number]
    assert replicates is not None
    assert note.block is not None
    asked = _as_asked(trial, {replicates.name: distribution})
    for event in known.trials.found(asked, note):
        known.experiment.apply(event)
    return replicates.of(note.block, distribution)


def _as_asked(trial: FrozenTrial, more: Mapping[str, BaseDistribution]) -> FrozenTrial:
    """Return a trial as it will be once a parameter is suggested that is being asked for."""
    seen = FrozenTrial.__new__(FrozenTrial)
    seen.__dict__.update(trial.__dict__)
    seen._distributions = {**trial.distributions, **more}
    return seen
