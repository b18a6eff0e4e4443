"""A seed for each evaluation of a study, from what the study already says about it."""

import numpy as np
from optuna.trial import BaseTrial

from mfhpo._validation import check_instance
from mfhpo_optuna.study.trials.attributes import pull_note

# What a seed counts: a study's trials, or the blocks that share a replicate.
_BY_TRIAL, _BY_BLOCK = 0, 1


def seed_of(trial: BaseTrial) -> int:
    """Return a seed for the evaluation that a trial makes, from 0 to 2**31 - 1.

    Each trial has a seed of its own, so that evaluations of one configuration see different splits.
    In a study whose sampler, or `certify`, has a `replicate`, all trials with the same replicate
    have the same seed. With a list of folds, ``folds[seed_of(trial) % len(folds)]`` is a fold drawn
    at random. ``folds[trial.number % len(folds)]`` is not: samplers take configurations in turn.

    The seed is a function of the study's name and the trial's number (or its replicate), the same
    for all workers and restarts. An in-memory study without a name gets a random one.

    Parameters
    ----------
    trial
        What the objective is called with. A `FrozenTrial` and a `FixedTrial` know no study, and
        give another seed than the objective had.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import seed_of
    >>> def objective(trial):
    ...     rng = np.random.default_rng(seed_of(trial))
    ...     return trial.suggest_float("x", -1, 1) ** 2 + 0.1 * rng.normal()
    >>> study = optuna.create_study(study_name="noisy parabola")
    >>> seed_of(study.ask()), seed_of(study.ask())
    (2005345954, 2142080211)
    """
    check_instance("trial", trial, BaseTrial, "what an objective is called with")
    study = getattr(trial, "study", None)
    name = "" if study is None else study.study_name
    note = pull_note(trial)
    block = None if note is None else note.block
    key = (_BY_TRIAL, trial.number) if block is None else (_BY_BLOCK, block)
    seeds = np.random.SeedSequence(int.from_bytes(name.encode(), "little"), spawn_key=key)
    return int(seeds.generate_state(1)[0]) >> 1
