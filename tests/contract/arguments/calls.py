"""One public function or class: how it is called rightly, and how it takes wrong arguments."""

import contextlib
import re
import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mfhpo._validation import shown
from mfhpo._validation.parameters import parameters
from tests.contract.arguments.wrong_values import WRONG, Kind

# CPU seconds of a call, whatever else the machine does. A call is meant to take at most one second;
# this bound is one that a slow machine keeps. `-s` shows each slowest call.
_MOST_SECONDS = 20.0
_MOST_BYTES = 6 * 1024**3  # of address space more than now


def _unused(made: Any) -> None:
    """Do nothing with what was made."""


@dataclass(frozen=True)
class Call:
    """How a public function, class or method is called.

    `valid` gives right arguments, new ones for each call; `use` does something with what came of
    it; `kinds` says what its parameters allow where their names do not (`KINDS` of the table).
    `signature_of` has the parameters if `call` does not show them; those in `apart` are not tried.
    `known_as` says how messages name a parameter that users give under another name.
    """

    call: Callable[..., Any]
    valid: Callable[[], Mapping[str, Any]] = dict
    use: Callable[[Any], Any] = _unused
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    signature_of: Callable[..., Any] | None = None
    apart: frozenset[str] = frozenset()
    known_as: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_method(
        cls, make: Callable[[], Any], method: str, valid: Callable[[], Any] = dict, **more: Any
    ) -> "Call":
        """Return the call of a method of an object that is made anew each time."""
        signature = getattr(make(), method)
        return cls(
            lambda **given: getattr(make(), method)(**given),
            valid,
            **{"signature_of": signature, **more},
        )

    def parameters(self) -> list[str]:
        """Return the names of all that it takes, also of what it hands on to its bases."""
        names = parameters(self.call if self.signature_of is None else self.signature_of)
        return [name for name in names if name not in self.apart]


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Let a call neither take much time nor much memory."""

    def expire(signum: int, frame: Any) -> None:
        raise TimeoutError(f"took more than {_MOST_SECONDS:g} seconds")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as statistics:
        used = int(statistics.read().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGPROF, expire)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MOST_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def outcomes(
    call: Call, kinds: Mapping[str, Kind], shares: Mapping[str, slice]
) -> tuple[Counter[str], list[str], tuple[float, str]]:
    """Give each parameter its share of the wrong values.

    Return how often what came of it, what is unclear, and the seconds of the slowest call.
    """
    seen: Counter[str] = Counter()
    unclear: list[str] = []
    slowest = (0.0, "")
    all_kinds = {**kinds, **call.kinds}
    with warnings.catch_warnings(), limited():
        warnings.simplefilter("ignore")
        made = call.call(**call.valid())
        call.use(made)
    for name in call.parameters():
        for title, make in list(WRONG.items())[shares[name]]:
            value = make()
            began = time.process_time()
            with warnings.catch_warnings(), limited():
                warnings.simplefilter("ignore")
                outcome = _outcome(call, name, value, all_kinds[name])
            took = time.process_time() - began
            slowest = max(slowest, (took, f"{name}={title}"))
            if took > _MOST_SECONDS:
                outcome = "slow"
            seen[outcome if outcome in ("clear", "allowed") else "unclear"] += 1
            if outcome not in ("clear", "allowed"):
                unclear.append(f"{name}={title}: {outcome}")
    return seen, unclear, slowest


def _outcome(call: Call, name: str, value: Any, kind: Kind) -> str:
    word = call.known_as.get(name, name)
    try:
        made = call.call(**{**call.valid(), name: value})
    except (ValueError, TypeError) as error:
        # Subclasses such as UnicodeDecodeError and LinAlgError come from elsewhere.
        words = f"{type(error).__name__}: {str(error)[:160]}"
        return "clear" if _is_clear(error, word, value) else words
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:160]}"
    if not kind(value):
        return "accepted"
    try:
        call.use(made)
    except BaseException as error:
        # Some can only be told once the levels are known, or the space.
        is_clear = isinstance(error, (ValueError, TypeError)) and _is_clear(error, word, value)
        words = f"accepted, then {type(error).__name__}: {str(error)[:160]}"
        return "clear" if is_clear else words
    return "allowed"


def _is_clear(error: Exception, name: str, value: Any) -> bool:
    """Return whether a message names the argument, and shows its value or says what is right."""
    text = str(error)
    if "got an unexpected keyword" in text:
        return False
    # scikit-learn's own words show all of a value.
    if "x" * 500 in text and type(error).__name__ != "InvalidParameterError":
        return False
    is_named = _has_word(text, re.escape(name))
    return is_named and (_has_word(text, "[Mm]ust|[Gg]ive|[Ll]eave") or _shows(text, value))


def _has_word(text: str, pattern: str) -> bool:
    return re.search(rf"(?<!\w)(?:{pattern})(?!\w)", text) is not None


def _shows(text: str, value: Any) -> bool:
    """Return whether a message shows a value, as `shown` does, or an entry of it."""
    entries = list(value) if isinstance(value, (list, tuple, set, dict, np.ndarray)) else []
    return any(_has_word(text, re.escape(shown(part))) for part in (value, *entries))
