"""The sampler that searches, and certifies what it has found."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import optuna
from optuna.samplers import BaseSampler

from mfhpo._validation import check_instance
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import runs, with_defaults
from mfhpo.search import BudgetedSearch, DeclaredSearch, SearchOptions
from mfhpo_optuna.samplers.fidelity_kinds import SearchKind
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.loop.report import ProgressLike
from mfhpo_optuna.study.shortlist import as_results
from mfhpo_optuna.study.trials.attributes import pull_note

if TYPE_CHECKING:
    from typing_extensions import Unpack


@runs(BudgetedSearch, SearchOptions, checkpoints=False)
class SearchSampler(StudySampler):
    """Searches a space with cheap and dear evaluations, then certifies the best it has found.

    When to use it: as you would use TPE with Hyperband, for any space and a budget of some tens or
    hundreds of full evaluations. A model of all levels of the fidelity (`mfhpo.search.ModelSearch`)
    decides which configuration to begin and which to go on with. The end of the budget re-evaluates
    the finalists from scratch.

    What it guarantees: with probability at least 1 - `delta`, no configuration of the shortlist is
    better than the certified one by more than `epsilon`. It says nothing about configurations
    outside the shortlist. The intervals rest on the evaluations of the shortlist alone.

    Each trial is one evaluation of one configuration at one level of the fidelity, which the
    objective asks for like any other parameter. No pruner is needed: Optuna's default one is
    switched off, and `HyperbandPruner` does not go with it. When the budget is
    spent or the answer is certified, the study stops, and ``study.best_trial`` is the answer (see
    `IISESampler`). Without a certificate its value is the search's own mean, which is a lucky one.
    Until the first evaluation at the target, ``study.best_trial`` raises ValueError.

    Parameters
    ----------
    fidelity
        The parameter that sets how dear an evaluation is, such as the number of epochs: its name,
        or a `Fidelity` with levels and costs (bounds on its bias are not used). None: the objective
        has no such parameter, and each trial is a full evaluation.
    proposer
        Another sampler of Optuna, such as ``TPESampler()``, to draw the configurations instead of
        the model of all levels. It is shown only those that were evaluated at the target, and they
        are advanced by asynchronous halving (`mfhpo.search.HalvingSearch`).
    lease, progress, seed
        See `mfhpo_optuna.samplers.options.SamplerOptions`.
    **options
        See `mfhpo.search.SearchOptions`. Instead of `baseline`, a trial may be enqueued as such:
        ``study.enqueue_trial(params, user_attrs={"baseline": True})``. Without a budget, the search
        goes on as long as the study does; see `certify`. A study that is run again with a larger
        budget goes on with the search if that was not over, else with its certificate alone. That
        is then wrong with probability at most `delta` for each budget. With `checkpoints`, the
        objective keeps its checkpoint under `training_of`.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import SearchSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return (x - 0.3) ** 2 + 0.2 / epochs + 0.01 * rng.normal()
    >>> study = optuna.create_study(sampler=SearchSampler("epochs", budget=1500, seed=0))
    >>> study.optimize(objective)
    >>> abs(study.best_params["x"] - 0.3) < 0.1
    True
    """

    def __init__(
        self,
        fidelity: str | Fidelity | None = None,
        *,
        proposer: BaseSampler | None = None,
        lease: float | None = None,
        progress: ProgressLike = None,
        seed: int | None = None,
        **options: Unpack[SearchOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        declared = DeclaredSearch.of(fidelity, as_results=as_results, **own)
        if declared.earlier:  # a study notes these, not all that they come from
            options["earlier"] = list(declared.earlier)
        if proposer is not None and declared.candidates is not None:
            raise ValueError(
                "proposer and candidates are given, but configurations come from one of them; "
                "leave the other out."
            )
        given = {"proposer": proposer, "lease": lease, "progress": progress, "seed": seed}
        given = {name: value for name, value in given.items() if value is not None}
        super().__init__(
            SearchKind(declared, proposer is not None),
            {"fidelity": fidelity, **given, **options},
            proposer=proposer,
            lease=lease,
            progress=progress,
            seed=seed,
        )


def training_of(trial: optuna.Trial) -> str:
    """Return a name for the training that a trial goes on with, to keep its checkpoint under.

    Trials of one configuration of a study at rising levels share it. Each evaluation for the
    certificate has one of its own, since it begins anew. Delete the checkpoints with a study. Call
    it after the trial's first suggestion: before, it raises ValueError.

    Parameters
    ----------
    trial
        The trial that is under way.
    """
    check_instance("trial", trial, optuna.Trial, "an optuna.Trial")
    note = pull_note(trial)
    if note is None:
        raise ValueError(
            f"trial {trial.number} belongs to no configuration of a race: call this after the "
            f"first trial.suggest_*, in a study with a sampler such as SearchSampler."
        )
    study = f"study-{zlib.crc32(trial.study.study_name.encode()):08x}"
    if note.purpose == "certificate":  # it begins anew
        return f"{study}-replicate-{trial.number}"
    return f"{study}-configuration-{note.arm}"
