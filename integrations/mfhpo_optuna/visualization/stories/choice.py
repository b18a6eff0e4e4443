"""Which sampler a figure is about."""

from typing import Any

import optuna
from optuna.samplers import BaseSampler

from mfhpo._validation import check_instance

NEEDS_A_RACE = "a sampler that runs races, such as IISESampler"
NEEDS_LIMITS = "a sampler that chooses time limits, such as RCUCBSampler"


def chosen_sampler(
    study: optuna.Study, sampler: BaseSampler | None, kind: type[Any], plot: str, needed: str
) -> Any:
    """The sampler that a plot was given, or the study's; TypeError for one of another kind."""
    check_instance("study", study, optuna.Study, "an optuna.Study")
    chosen = study.sampler if sampler is None else sampler
    if not isinstance(chosen, kind):
        raise TypeError(
            f"{plot} needs {needed}, but {'study.sampler' if sampler is None else 'sampler'} is a "
            f"{type(chosen).__name__}; pass sampler=, made with the arguments of the study's."
        )
    return chosen
