"""LightGBM in a study: rounds as steps of the fidelity, and trainings that go on.

Needs LightGBM 4.5 or newer, which is imported when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.study import StudyDirection

from mfhpo._validation import check_count
from mfhpo_optuna.samplers.race_sampler import training_of

if TYPE_CHECKING:
    import lightgbm


class ReportRounds:
    """A callback of LightGBM that reports each round to the trial, and stops it if pruned.

    The step is the number of rounds that the model has, those that it was begun with included: it
    is the level of a fidelity that counts rounds. It works with ``lightgbm.train``,
    ``lightgbm.cv``, whose mean over folds is reported, and the estimators' ``fit``. Samplers that
    run a race, such as `RaceSampler`, take values from the objective alone: use this with pruners
    such as `IISEPruner`, `MFEliminationPruner` and `TimeLimitPruner`.

    Parameters
    ----------
    trial
        The trial that trains.
    metric
        Name of the metric, such as ``"auc"``. None: the only one.
    valid_name
        Name of the data that it is measured on, as LightGBM has it. None: the only ones besides the
        training data.
    every
        Number of rounds between two reports, at least 1; the last round is reported as well.

    Raises
    ------
    TypeError, ValueError
        If `every` is no whole number from 1 on; and in the first report, if no metric or more than
        one fits, or if the study minimises what LightGBM maximises, or the other way round.
    optuna.TrialPruned
        From the training, when the pruner stops the trial.

    Examples
    --------
    >>> import lightgbm, numpy as np, optuna
    >>> from mfhpo_optuna import IISEPruner
    >>> from mfhpo_optuna.lightgbm import ReportRounds
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 4))
    >>> y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=400)
    >>> def objective(trial):
    ...     train = lightgbm.Dataset(X[:300], y[:300])
    ...     params = {
    ...         "objective": "l2", "verbose": -1, "num_threads": 1,
    ...         "learning_rate": trial.suggest_float("learning_rate", 0.01, 1, log=True),
    ...     }
    ...     model = lightgbm.train(dict(params), train_set, rounds - done, init_model=known, **options)
    own = path.with_name(f"{path.name}.{trial.number}.part")
    model.save_model(own, num_iteration=-1)
    os.replace(own, path)
    return model
