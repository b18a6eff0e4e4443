"""A stopper that ends an experiment once its next trials are unlikely to find something better."""

import logging
from typing import Any

from ray.tune import Stopper
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_choice, check_name
from mfhpo.certification.settling import Settling
from mfhpo_ray.experiment.results import value_in

_logger = logging.getLogger(__name__)


class StopWhenSettled(Stopper):
    """Stop an experiment once its next trials are unlikely to find something better.

    It goes with any searcher and scheduler.

    Parameters
    ----------
    metric, mode
        What is optimised, and whether "max" or "min" is best.
    epsilon, trials, delta
        See `mfhpo_optuna.StopWhenSettled`.

    Notes
    -----
    A trial counts from its first report, with its last value. Each experiment needs a stopper of
    its own, and a restored one counts anew. For what the estimate can and cannot tell, see
    `mfhpo_optuna.StopWhenSettled`.

    Examples
    --------
    >>> from ray import tune
    >>> from mfhpo_ray import StopWhenSettled
    >>> run_config = tune.RunConfig(stop=StopWhenSettled("accuracy", "max", epsilon=0.002))
    """

    def __init__(
        self,
        metric: str,
        mode: str,
        epsilon: float | None = None,
        trials: int = 50,
        delta: float = 0.1,
    ) -> None:
        self._metric = check_name("metric", metric, "the name of a metric")
        self._sign = 1.0 if check_choice("mode", mode, ("max", "min")) == "max" else -1.0
        self._settling = Settling(epsilon, trials, delta)
        self._values: dict[str, float] = {}
        self._is_settled = False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Note what a trial reports; none is stopped alone."""
        value = value_in(flatten_dict(result), self._metric)
        if value is not None:
            is_new = trial_id not in self._values
            self._values[trial_id] = self._sign * value
            values = list(self._values.values())
            if is_new and not self._is_settled and self._settling.is_settled(values):
                self._is_settled = True
                _logger.info(
                    f"The experiment stops: {self._settling.outlook(values, self._sign)}. That is "
                    f"an estimate from its values, without a guarantee."
                )
        return False

    def stop_all(self) -> bool:
        """Return whether the experiment is settled."""
        return self._is_settled
