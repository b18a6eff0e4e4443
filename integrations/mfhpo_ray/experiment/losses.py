"""Trials that ended because their process or their node was gone: whose fault that is."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from ray import cloudpickle
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial

from mfhpo import Recommendation

# A node that goes down takes some trials with it, but hardly as many of one arm in a row.
_MOST_IN_A_ROW = 10


def was_lost(trial: Trial) -> bool:
    """Return whether a trial failed because its process or its node was gone.

    A process that crashes looks the same as a node that is lost.
    """
    if trial.run_metadata.pickled_error_filename is None or trial.local_path is None:
        return False
    try:
        error = cloudpickle.loads(Path(str(trial.pickled_error_file)).read_bytes())
    except Exception:  # an error that cannot be read back was raised by the trial
        return False
    return isinstance(error, RayActorError)


def is_tried_again(trial: Trial) -> bool:
    """Return whether Ray queues the failed trial again.

    It gives up one that failed before it was running, whatever its number of failures.
    """
    return trial.status == Trial.ERROR and bool(trial.should_recover())


def with_losses(answer: Recommendation, n_lost: int) -> Recommendation:
    """Return an answer with the condition under which lost evaluations may be left out."""
    if not n_lost:
        return answer
    condition = (
        f"the {n_lost} evaluations that were left out, because their process or the driver died, "
        f"were like the others"
    )
    return replace(answer, conditions=(*answer.conditions, condition))


class Losses:
    """Counts losses, and excuses them, but not those of an arm that is lost again and again."""

    def __init__(self) -> None:
        self._in_a_row: Counter[int] = Counter()

    def excuse(self, arm: int) -> bool:
        """Return whether one more loss does not count as a failure of the arm."""
        self._in_a_row[arm] += 1
        return self._in_a_row[arm] <= _MOST_IN_A_ROW

    def forget(self, arm: int) -> None:
        """Begin to count anew: a pull of the arm came to its end."""
        del self._in_a_row[arm]
