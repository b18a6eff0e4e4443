"""A study's results, as a later search is to try the best of them first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna
from optuna.study import StudyDirection

from mfhpo._validation import check_instance
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import as_fidelity
from mfhpo.search import EarlierResults
from mfhpo_optuna.study.shortlist import eligible_trials, grouped
from mfhpo_optuna.study.trials.attributes import FIDELITY_KEY, read_attribute

_VALUE = "value of the study"  # no parameter has such a name


def earlier_results(
    study: optuna.Study, *, fidelity: str | Fidelity | None = None
) -> EarlierResults:
    """Return a study's results, the best of which a later search is to try first.

    Trials count that completed with a finite value, within their ranges and constraints. Those of
    one configuration count by their mean, at the highest level of the fidelity that they came to.

    Parameters
    ----------
    study
        A study of one objective, by any sampler. Its direction is known.
    fidelity
        The parameter of the study that sets what a trial costs. None: that of mfhpo's own samplers,
        or there is none.

    Raises
    ------
    TypeError, ValueError
        For a study of several objectives, and for one without such a trial.

    Examples
    --------
    >>> import optuna
    >>> from mfhpo_optuna import SearchSampler, earlier_results
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study()
    >>> for x in (0.9, 0.3):
    ...     study.enqueue_trial({"x": x})
    >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=2)
    >>> earlier_results(study).ranked
    [{'x': 0.3}, {'x': 0.9}]
    >>> sampler = SearchSampler(trials=20, earlier=[study])
    """
    check_instance("study", study, optuna.Study, "an optuna.Study")
    if len(study.directions) > 1:
        raise ValueError(
            f"study {study.study_name!r} must have one objective, and has {len(study.directions)}; "
            f"give EarlierResults of its table, study.trials_dataframe(), which names the column."
        )
    if fidelity is None:
        fidelity = read_attribute(study, FIDELITY_KEY)
    chosen = None if fidelity is None else as_fidelity(fidelity)
    trials = eligible_trials(study.get_trials(deepcopy=False), chosen)
    found = grouped(study, trials, chosen, None)
    if not any(each.params for each in found):
        raise ValueError(
            f"study {study.study_name!r} has no trial with parameters that completed with a finite "
            f"value within its ranges and constraints; leave it out, or give it more trials."
        )
    rows = [{**each.params, _VALUE: each.claim()} for each in found]
    is_maximised = study.direction == StudyDirection.MAXIMIZE
    return EarlierResults(rows, value=_VALUE, direction="maximize" if is_maximised else "minimize")


def translated(earlier: Any) -> Any:
    """Return sources with studies as `EarlierResults`; what is wrong with others is said later."""
    if not isinstance(earlier, Sequence) or isinstance(earlier, str):
        return earlier
    return [earlier_results(of) if isinstance(of, optuna.Study) else of for of in earlier]
