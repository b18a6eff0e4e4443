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
from mfhpo._validation.parameters import document
from mfhpo_optuna.samplers.search_sampler import training_of

if TYPE_CHECKING:
    import lightgbm

__all__ = ["ReportRounds", "train_from_checkpoint"]

# LightGBM's names for the training data, in `train` and in `cv`.
_TRAINING_DATA = ("training", "train")


class ReportRounds:
    """A callback of LightGBM that reports each round to the trial, and stops it if pruned.

    The step is the number of rounds that the model has, those that it was begun with included. It
    works with ``lightgbm.train``, ``lightgbm.cv``, whose mean over folds is reported, and the
    estimators' ``fit``. Use it with pruners such as `IISEPruner`: samplers that run a race, such as
    `SearchSampler`, take values from the objective alone.

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
        Number of rounds between two reports, at least 1. The last planned round is reported, too.

    Raises
    ------
    ValueError
        In the first report, if no metric or more than one fits, or if the study's direction is not
        that of the metric.
    optuna.TrialPruned
        From the training, when the pruner stops the trial.
    """

    order = 25  # after those of LightGBM that record, before its early stopping

    def __init__(
        self,
        trial: optuna.Trial,
        metric: str | None = None,
        valid_name: str | None = None,
        every: int = 1,
    ) -> None:
        self._trial = trial
        self._metric = metric
        self._valid_name = valid_name
        self._every = check_count("every", every, 1)

    def __call__(self, env: lightgbm.callback.CallbackEnv) -> None:
        """Report the round that has ended."""
        rounds = env.iteration + 1
        if rounds % self._every and rounds != env.end_iteration:
            return
        name, metric, value, higher_is_better = self._found(env.evaluation_result_list or [])
        directions = self._trial.study.directions
        wanted = StudyDirection.MAXIMIZE if higher_is_better else StudyDirection.MINIMIZE
        if directions != [wanted]:
            raise ValueError(
                f"{name} {metric} is better when {'higher' if higher_is_better else 'lower'}, and "
                f"the study's direction is {[one.name.lower() for one in directions]}; make it "
                f"with direction={wanted.name.lower()!r}, or report another metric."
            )
        self._trial.report(value, rounds)
        if self._trial.should_prune():
            raise optuna.TrialPruned(f"pruned after {rounds} rounds")

    def _found(self, results: Any) -> tuple[str, str, float, bool]:
        """Return data, metric, value and direction of the one result that is asked for."""
        known: list[tuple[str, str, float, bool]] = []
        for data, name, value, higher_is_better, *_ in results:
            if data == "cv_agg":  # older versions have the data's name before the metric's
                data, name = name.split(" ", 1)
            known.append((data, name, value, higher_is_better))
        fitting = [one for one in known if self._metric in (None, one[1])]
        if self._valid_name is None:
            fitting = [one for one in fitting if one[0] not in _TRAINING_DATA]
        else:
            fitting = [one for one in fitting if one[0] == self._valid_name]
        if len(fitting) == 1:
            return fitting[0]
        names = [f"{name} {metric}" for name, metric, *_ in known]
        raise ValueError(
            f"metric={self._metric!r} and valid_name={self._valid_name!r} fit {len(fitting)} of "
            f"what LightGBM measures, {names}; name one of them, and give valid_sets if there are "
            f"none."
        )


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
        If `rounds` is no whole number from 1 on, the trial belongs to no configuration yet,
        `params` has a number of rounds of its own, or random forests, which cannot go on, or early
        stopping has cut the model off.

    Notes
    -----
    Bagging and columns are drawn anew where a training goes on, so that a model that was trained in
    parts differs a little from one that was trained at once.
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


document(*map(globals().get, __all__))
