"""A callback that ends a study once its next trials are unlikely to find something better."""

import math

import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_instance
from mfhpo.certification.settling import Outlook, Settling
from mfhpo_optuna.study.distributions import signs_of
from mfhpo_optuna.study.trials import attributes

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class StopWhenSettled:
    """Stop a study once its next trials are unlikely to find something better.

    It is a callback for any sampler and any number of workers. It takes the place of Optuna's
    terminator, which Optuna 5 has deprecated.

    Parameters
    ----------
    epsilon
        How much better is worth going on for, in units of the value. None: a twentieth of what the
        study has gained, from the median of its first 20 trials to its best one.
    trials
        How many more trials you would run.
    delta
        Stop when they find something better with an estimated probability of at most this, after
        each of ten trials in a row.

    Notes
    -----
    The estimate sees the best quarter of the study's values, and supposes that the next trials are
    like those so far. It cannot foresee a rare good region or a heavy tail, and has no guarantee
    for samplers that change their ways: CMA-ES, which narrows its search late, breaks it. Trials
    that were pruned or break a constraint count as trials that found nothing; failed ones do not
    count. Where one of mfhpo's samplers chooses levels, values at the largest level count.

    A study that is settled already runs one more trial. Its best value is the luckiest one; see
    `certify`.

    Examples
    --------
    >>> import optuna
    >>> from mfhpo_optuna import StopWhenSettled
    >>> study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    >>> stop = StopWhenSettled(epsilon=0.01)
    >>> study.optimize(lambda t: t.suggest_float("x", -1, 1) ** 2, n_trials=500, callbacks=[stop])
    >>> len(study.trials) < 100, stop.outlook(study).chance < 0.1
    (True, True)
    """

    def __init__(self, epsilon: float | None = None, trials: int = 50, delta: float = 0.1) -> None:
        self._settling = Settling(epsilon, trials, delta)

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Stop the study if it is settled; Optuna calls this after each trial."""
        if self.is_settled(study):
            _logger.info(
                f"The study stops: {self.outlook(study)}. That is an estimate from its values, "
                f"without a guarantee."
            )
            study.stop()

    def is_settled(self, study: optuna.Study) -> bool:
        """Return whether to stop, under ask and tell; ValueError for several objectives."""
        check_instance("study", study, optuna.Study, "an optuna.Study")
        return self._settling.is_settled(_values(study))

    def outlook(self, study: optuna.Study) -> Outlook:
        """Return what the values of a study say about its next trials; see `is_settled`."""
        check_instance("study", study, optuna.Study, "an optuna.Study")
        return self._settling.outlook(_values(study), signs_of(study)[0])


def _values(study: optuna.Study) -> list[float]:
    """Return the values of trials that did not fail, the larger the better; NaN without one."""
    if len(study.directions) > 1:
        raise ValueError(
            f"study {study.study_name!r} has {len(study.directions)} objectives, and so no best "
            f"value; StopWhenSettled needs a single one."
        )
    states = (TrialState.COMPLETE, TrialState.PRUNED)
    ended = [
        trial
        for trial in study.get_trials(deepcopy=False, states=states)
        if attributes.CERTIFICATE_KEY not in trial.user_attrs
    ]
    fidelity = attributes.read_attribute(study, attributes.FIDELITY_KEY) or ""
    levels = [  # or places among choices
        trial.distributions[fidelity].to_internal_repr(trial.params[fidelity])
        if fidelity in trial.params
        else 0.0
        for trial in ended
    ]
    sign, target, values = signs_of(study)[0], max(levels, default=0.0), []
    for trial, level in zip(ended, levels, strict=True):
        is_whole = level == target and trial.state == TrialState.COMPLETE
        counts = is_whole and attributes.is_feasible(trial)
        values.append(sign * trial.values[0] if counts else math.nan)
    return values
