"""What is to be done when ``study.optimize`` ends, however it ends."""

import sys
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TypeAlias
from weakref import WeakKeyDictionary

import optuna
from optuna.study._optimize import _run_trial
from optuna.study.study import _ThreadLocalStudyAttribute

_logger = optuna.logging.get_logger(f"optuna.{__name__}")

AtEnd: TypeAlias = Callable[[BaseException | None], None]


class _Watched(_ThreadLocalStudyAttribute):
    """The mark by which a study knows that its `optimize` runs."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "in_optimize_loop" and not value:
            raised = _error_that_leaves(sys._getframe(1))
            error = _call_each(_then.pop(self, {}).values(), _behind(raised))
            if error is not None and error is not raised:
                raise error


def _call_each(functions: Iterable[AtEnd], error: BaseException | None) -> BaseException | None:
    """Call all, whichever fails; return the study's own error, or else the first failure.

    Other failures are logged.
    """
    leaving = error
    for then in functions:
        try:
            then(error)
        except Exception as failure:
            if leaving is None:
                leaving = failure
            else:
                _logger.warning(f"At the end of optimize(), this failed too: {failure!r}")
    return leaving


def _error_that_leaves(loop: FrameType) -> BaseException | None:
    """Return the error that ends a frame's loop, not one that its caller handles."""
    error = sys.exc_info()[1]
    trace = None if error is None else error.__traceback__
    return error if trace is not None and trace.tb_frame is loop else None


def _behind(error: BaseException | None) -> BaseException | None:
    """Return the error that Optuna's loop hides, failing itself, while it tells of a trial."""
    if not isinstance(error, AssertionError | UnboundLocalError):
        return error
    *_, (raised_in, _) = traceback.walk_tb(error.__traceback__)
    is_optunas = raised_in.f_code is _run_trial.__code__
    return error.__context__ or error if is_optunas else error


# For each study what is called, by whoever wants it.
_then: WeakKeyDictionary[_ThreadLocalStudyAttribute, dict[object, AtEnd]] = WeakKeyDictionary()


def call_at_end(study: optuna.Study, owner: object, then: AtEnd) -> bool:
    """Have a function called when the study's `optimize` that runs now ends.

    It is given the error that has ended it, or None. Of several by one `owner`, the last is called.
    Optuna does not tell a sampler which trial is the last one. All it does at the end is to set a
    mark in the study, so that is what is watched. False under ask and tell, which have no end.
    """
    mark = study._thread_local
    if not mark.in_optimize_loop:
        return False
    # The same object: it has a value for each thread, which another one would not have.
    mark.__class__ = _Watched
    _then.setdefault(mark, {})[owner] = then
    return True
