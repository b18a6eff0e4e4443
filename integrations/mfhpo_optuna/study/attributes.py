"""The attributes of studies and trials by which samplers, pruners and enforcers of limits talk."""

from typing import Any

import optuna
from optuna.trial import FrozenTrial

# The pull that a trial evaluates, and in it the process that does so, and the digest of the
# arguments (`mfhpo_optuna.arguments.Settings`) of the sampler that has chosen it.
ARM_KEY = "mfhpo:pull"
WORKER, ARGUMENTS = "worker", "arguments"

# Of a trial whose worker is about to add the answer: the process.
ANSWERING_KEY = "mfhpo:answering"

# The certificate of a trial that answers, and whether it was added while nothing was certified.
CERTIFICATE_KEY = "mfhpo:certificate"
WITHHELD_KEY = "mfhpo:withheld"

# Of a trial that answers before the race is over: the number of evaluations behind it.
SO_FAR_KEY = "mfhpo:so_far"

# The constraint that single pulls break, so that none of them is the best trial.
NO_ANSWER = "mfhpo"

# Of a study whose sampler chooses the levels: the name of the parameter that sets them.
FIDELITY_KEY = "mfhpo:fidelity"

# Of a study: the sampler that runs it, with its arguments as `mfhpo_optuna.arguments` writes them.
SAMPLER_KEY = "mfhpo:sampler"

# Of a study that records what `certify` evaluates: the study that it is about, and the candidates.
SHORTLIST_KEY = "mfhpo:shortlist"

# The seconds that a trial may take: a sampler writes it before the trial.
LIMIT_KEY = "mfhpo:limit"

# The seconds that a trial really took. `time_limited` writes it, and samplers to which seconds are
# the cost: all workers of a study must read the same.
SECONDS_KEY = "mfhpo:seconds"

# The limit in seconds at which a trial was stopped: its value is censored there.
CENSORED_KEY = "mfhpo:censored_at"

# The limit in bytes at which a trial was stopped for its memory.
MEMORY_KEY = "mfhpo:memory_limit"

# Of a trial that has failed because its storage did, and so counts for nothing.
STORAGE_FAILED_KEY = "mfhpo:storage_failed"

# Who enforces the limit that a sampler gave to a trial, "time_limited" or "TimeLimitPruner":
# written when enforcement begins, so that the sampler can warn when nobody does.
ENFORCER_KEY = "mfhpo:enforced_by"


def parameters_before(trial: FrozenTrial) -> dict[str, Any] | None:
    """What a trial that begins has of its parameters, whatever its sampler says; None if nothing.

    It was enqueued, or is to repeat a trial whose worker died: then Optuna has copied those of the
    lost one, and asks no sampler for them.
    """
    enqueued: dict[str, Any] | None = trial.system_attrs.get("fixed_params")
    if trial.params:
        return {**(enqueued or {}), **trial.params}
    return enqueued


def write_attribute(study: optuna.Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Set a user attribute of a running trial, in the storage and on the copy at hand."""
    # No public way leads from a sampler, or a pruner, to the attributes of a running trial.
    study._storage.set_trial_user_attr(trial._trial_id, key, value)
    trial.user_attrs[key] = value
