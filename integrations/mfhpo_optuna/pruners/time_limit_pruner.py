"""A pruner that ends trials at a limit of time, if their objectives ask."""

from datetime import datetime
from typing import Any

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial

from mfhpo._validation import check_instance, check_limit
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.under_way import limit_of, objective_clock


class TimeLimitPruner(BasePruner):
    """Stop a trial once it has run for longer than its limit, when it asks whether to go on.

    The limit is cooperative: it takes effect at the next ``trial.should_prune()``, and never for
    an objective that does not call it, hangs between two calls, or ignores the answer. It needs no
    further process and works wherever Optuna does. `time_limited` kills any objective from outside;
    the two go together, so that an objective that reports can end in order.

    A trial that is told to stop for its time has the limit in its user attribute
    ``"mfhpo:censored_at"``: a sampler learns that its value is censored rather than bad.

    Parameters
    ----------
    limit
        Seconds that a trial may take, from when it began. None leaves it to the sampler, which
        tells it in the trial's user attribute ``"mfhpo:limit"``; where both do, the smaller one
        counts. Without either, time has no limit.
    pruner
        Decides about trials that are within their limit; by default none of them is stopped.

    Notes
    -----
    The clock is the wall clock of the process that runs the trial, from the start that Optuna
    noted. Below `time_limited` it is the clock of that, which leaves the sampler out: let the
    pruner's limit be the smaller one if objectives are to end in order.
    """

    def __init__(self, limit: float | None = None, pruner: BasePruner | None = None) -> None:
        check_instance("pruner", pruner, BasePruner | None, "a pruner of Optuna or None")
        self._limit = check_limit("limit", limit)
        self._pruner = pruner

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether to stop a trial; see `optuna.pruners.BasePruner.prune`."""

        def note(key: str, value: Any) -> None:
            if attributes.read_attribute(trial, key) is None:
                attributes.write_attribute(study, trial, key, value)

        if attributes.read_attribute(trial, attributes.LIMIT_KEY) is not None:
            note(attributes.ENFORCER_KEY, "TimeLimitPruner")
        limit = limit_of(trial, self._limit)
        clock, began = objective_clock.get(), trial.datetime_start
        if clock is not None:
            seconds = clock()
        else:
            seconds = 0.0 if began is None else (datetime.now() - began).total_seconds()
        if limit is not None and seconds > limit:
            note(attributes.CENSORED_KEY, limit)
            return True
        return self._pruner is not None and self._pruner.prune(study, trial)
