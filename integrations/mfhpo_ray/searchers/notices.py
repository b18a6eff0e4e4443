"""The warnings of a search to its user, each of them once."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from mfhpo.experiment import Wait

_logger = logging.getLogger("mfhpo_ray")

_SINGLE = (
    "num_samples=1 lets the race make a single trial: give TuneConfig(num_samples=-1), the race "
    "ends by itself."
)
_MAY_CUT = (
    "RunConfig(stop={}) may end trials early, which are paid and do not count. Drop it: trials end "
    "by themselves, and search.scheduler(limit=...) ends those that hang."
)
_CUT = (
    "{} has stopped trial {} before its end: it is paid, and gives neither a value nor a failure. "
    "What is left of a configuration is then no fair sample of it. Drop it: the search ends what "
    "is not worth going on, and search.scheduler(limit=...) what hangs."
)
_NO_NUMBER = (
    "trial {} reported {}={!r}, which is no number: it counts as failed. Report float(...)."
)
_REDRAWN = (
    "param_space[{!r}] is drawn anew in each trial, so that values of one configuration differ by "
    "it as well. To draw it once for each configuration, give the search its space=...."
)
_UNWATCHED = (
    "nobody enforces the limits: {}. Give the Tuner TuneConfig(scheduler=search.scheduler()), "
    "which stops any trial."
)
_WAITS = (
    "The race waits for %s. Values count in the order in which their trials began, so no more of "
    "this configuration is begun at this level until that trial ends. If it hangs, stop it; "
    "search.scheduler(limit=...) does so by itself."
)
_IN_VAIN = (
    "%d trials of the saved experiment are waited for. If Tune is not to run them again, as after "
    "Tuner.restore(resume_unfinished=False), they are waited for in vain: restore with "
    "TuneConfig(scheduler=search.scheduler()), which tells."
)


class Notices:
    """Warns once about each thing, as from whoever has called the search."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def of_single_trial(self) -> None:
        """Warn that there will be one trial only."""
        self._warn("num_samples", _SINGLE)

    def of_budget(self, objection: str) -> None:
        """Warn that the budget pays for nothing."""
        self._warn("budget", objection)

    def of_stop(self, what: Any) -> None:
        """Warn about the ``stop`` of the ``RunConfig``."""
        self._warn("stop", _MAY_CUT.format(what))

    def of_cut(self, who: str, trial_id: str) -> None:
        """Warn about who stops trials; what was warned of before is not repeated."""
        self._warn("stop", _CUT.format(who, trial_id))

    def of_no_number(self, trial_id: str, metric: Any, reported: Any) -> None:
        """Warn that a trial has reported something else than a number."""
        self._warn("no number", _NO_NUMBER.format(trial_id, metric, reported))

    def of_redrawn(self, name: str) -> None:
        """Warn that Tune draws a key anew in each trial."""
        self._warn(f"redrawn {name}", _REDRAWN.format(name))

    def of_companion(self, consequence: str) -> None:
        """Warn that the search runs without its scheduler."""
        self._warn("companion", _UNWATCHED.format(consequence))

    def of_wait(self, wait: Wait) -> None:
        """Log whom so many results wait for that no others of their kind are begun."""
        about = wait.why.partition(" of ")[0]
        if wait.is_held_up and about not in self._given:
            self._given.add(about)
            _logger.warning(_WAITS, wait.why)

    def of_waiting_in_vain(self, n: int) -> None:
        """Log that trials of a saved search may not be run again."""
        _logger.warning(_IN_VAIN, n)

    def _warn(self, about: str, message: str) -> None:
        if about not in self._given:
            self._given.add(about)
            warnings.warn(message, stacklevel=5)
