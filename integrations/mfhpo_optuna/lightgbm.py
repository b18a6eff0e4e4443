"""LightGBM (4.5 or newer) in a study whose fidelity is its rounds: trainings that go on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo._validation import check_count
from mfhpo._validation.parameters import document
from mfhpo_optuna.samplers.search_sampler import training_of

if TYPE_CHECKING:
    import lightgbm

__all__ = ["train_from_checkpoint"]


def _check_params(params: Mapping[str, Any]) -> None:
    from lightgbm.basic import _ConfigAliases

    for name in sorted(_ConfigAliases.get("num_iterations")):
        if name in params:
            raise ValueError(
                f"params[{name!r}]={params[name]!r} is a number of rounds, and would be trained at "
                f"each level; leave it out: `rounds` says how many there are."
            )
    for name in _ConfigAliases.get("boosting"):
        if params.get(name) in ("rf", "random_forest"):
            raise ValueError(
                f"params[{name!r}]={params[name]!r}: a random forest cannot go on from another; "
                f"train it anew in each trial."
            )


def train_from_checkpoint(
    trial: optuna.Trial,
    params: Mapping[str, Any],
    train_set: lightgbm.Dataset,
    rounds: int,
    folder: str | os.PathLike[str],
    **options: Any,
) -> lightgbm.Booster:
    """Train a model of so many rounds, from the one that the configuration has already.

    For `SearchSampler` with ``checkpoints=True``, where `rounds` is the fidelity: trials of one
    configuration at rising levels go on with each other's model, and each evaluation for the
    certificate begins anew (`training_of`). The model is saved in one step, so that a worker that
    dies leaves the last whole one. Early stopping does not go with checkpoints.

    Parameters
    ----------
    trial
        The trial that trains, after its first suggestion.
    params, train_set
        Of ``lightgbm.train``. Make the data anew in each trial, or with ``free_raw_data=False``.
    rounds
        Rounds that the model has at the end, at least 1, those of its checkpoint included.
    folder
        Where the checkpoints of this study are, for all its workers; it is made if there is none.
    **options
        Further arguments of ``lightgbm.train``, such as ``valid_sets`` and ``callbacks``.

    Returns
    -------
    lightgbm.Booster
        The model. If there is a checkpoint of as many rounds or more, nothing is trained, and it
        has its first `rounds` rounds.

    Raises
    ------
    TypeError, ValueError
        If the trial belongs to no configuration yet, `params` has a number of rounds of its own, or
        random forests, which cannot go on, or early stopping has cut the model off.
    """
    import lightgbm

    rounds = check_count("rounds", rounds, 1)
    _check_params(params)
    path = Path(folder) / f"{training_of(trial)}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = lightgbm.Booster(model_file=path) if path.exists() else None
    done = 0 if known is None else known.current_iteration()
    if known is not None and done >= rounds:
        return lightgbm.Booster(model_str=known.model_to_string(num_iteration=rounds))
    model = lightgbm.train(dict(params), train_set, rounds - done, init_model=known, **options)
    # Fewer rounds alone are no sign: LightGBM adds none where no further split is possible.
    if model.best_iteration > 0 and model.current_iteration() < rounds:
        raise ValueError(
            f"early stopping has cut the model off after {model.current_iteration()} of {rounds} "
            f"rounds; it does not go with checkpoints, which go on from the whole model. Leave "
            f"lightgbm.early_stopping and early_stopping_round out: the sampler decides how many "
            f"rounds there are."
        )
    own = path.with_name(f"{path.name}.{trial.number}.part")
    model.save_model(own, num_iteration=-1)
    os.replace(own, path)
    return model


document(train_from_checkpoint)
