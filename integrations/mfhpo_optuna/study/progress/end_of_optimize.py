"""What is to be done when ``study.optimize`` ends, however it ends."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import optuna
from optuna.study.study import _ThreadLocalStudyAttribute


class _Watched(_ThreadLocalStudyAttribute):
    """The mark by which a study knows that its `optimize` runs."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "in_optimize_loop" and not value:
            then = _then.pop(self, None)
            if then is not None:
                then()


_then: WeakKeyDictionary[_ThreadLocalStudyAttribute, Callable[[], None]] = WeakKeyDictionary()


def call_at_end(study: optuna.Study, then: Callable[[], None]) -> bool:
    """Have a function called when the study's `optimize` that runs now ends.

    Optuna tells a sampler about each trial, but not which is the last one: that depends on the
    number of trials, the time, `stop` or Ctrl-C. All it does at the end is to set a mark in the
    study, so that is what is watched. False under ask and tell, which have no end.
    """
    mark = study._thread_local
    if not mark.in_optimize_loop:
        return False
    # The same object: it has a value for each thread, which another one would not have.
    mark.__class__ = _Watched
    _then[mark] = then
    return True
