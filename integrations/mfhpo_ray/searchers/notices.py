"""The warnings of a search to its user, each of them once."""

import warnings

SINGLE = (
    "num_samples=1 lets the race make a single trial: give TuneConfig(num_samples=-1), the race "
    "ends by itself."
)
MAY_CUT = (
    "RunConfig(stop={}) may end trials early, which are paid and do not count. Drop it: trials end "
    "by themselves, and search.scheduler(limit=...) ends those that hang."
)
CUT = (
    "{} has stopped trial {} before its end: it is paid, and gives neither a value nor a failure. "
    "Drop it: trials end by themselves, and search.scheduler(limit=...) ends those that hang."
)
NO_NUMBER = "trial {} reported {}={!r}, which is no number: it counts as failed. Report float(...)."
REDRAWN = (
    "param_space[{!r}] is drawn anew in each trial. To draw it once for each configuration, give "
    "the search its space=...."
)
UNWATCHED = (
    "nobody enforces the limits: {}. Give the Tuner TuneConfig(scheduler=search.scheduler()), "
    "which stops any trial."
)
WAITS = (
    "The race waits for %s. Values count in the order in which their trials began, so no more of "
    "this configuration is begun at this level until that trial ends. If it hangs, stop it; "
    "search.scheduler(limit=...) does so by itself."
)


class Notices:
    """Remembers what its user was told."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def are_new(self, about: str) -> bool:
        """Tell whether nothing was said about something, and take note that it is now."""
        is_new = about not in self._given
        self._given.add(about)
        return is_new

    def warn(self, about: str, message: str, stacklevel: int = 3) -> None:
        """Warn once about something, as from the caller of the search."""
        if self.are_new(about):
            warnings.warn(message, stacklevel=stacklevel + 1)
