"""Whether the present code decides as the code did that a result was measured with.

    python -m benchmarks.fingerprints            # play all runs, and tell whose choices are new
    python -m benchmarks.fingerprints --write    # and record them

A fingerprint is a hash of the choices of a few small runs with fixed seeds: which configuration at
which level, within which limit, and the answer. Values, intervals and words have no part in it, and
models choose on a grid, so that another release of NumPy or another processor makes no difference.
Each kind of experiment has one: a policy alone with what is declared, a sampler, a searcher, a
scheduler, an estimator, a pruner, a search, a certificate, a game, a choice of limits. A result
rests on some of them, which it carries; it is of the present code as long as they are the present
ones.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.parallel import mapped
from benchmarks.report import progress, write

FILE = Path(__file__).parent / "results" / "fingerprints.json"
"""The fingerprints of the present code; a test compares them."""

# Proposed by a model anywhere in a range, so that the last digits of its algebra decide.
_OFF_GRID = ("Search", "Search, full evaluations")

_DIGITS = 3  # of a number that was drawn or derived

HOSTS = ("core", "optuna", "sklearn", "ray")
"""Who runs experiments; the core stands for policies, searches, certificates, games and limits."""


@cache
def runs_of(host: str) -> dict[str, Callable[[Path], Any]]:
    """Return by name what plays the runs of a host; only its own packages are needed for that."""
    if host == "core":
        from benchmarks.replay.policies import POLICIES

        return POLICIES
    if host == "optuna":
        from benchmarks.replay.studies import STUDIES, STUDIES_OF_WORKERS

        runs = STUDIES | STUDIES_OF_WORKERS
    elif host == "sklearn":
        from benchmarks.replay.fits import fits

        runs = fits(jobs=1)
    else:
        from benchmarks.replay.experiments import experiments

        at_once = {f"{name}, 3 slots": play for name, play in experiments(slots=3).items()}
        runs = experiments(slots=1) | at_once
    return {name: play for name, play in runs.items() if _is_on_grid(name)}


def _is_on_grid(run: str) -> bool:
    """Return whether no model proposes values anywhere in a range: their last digits are noise."""
    return " Search" not in run or "on a grid" in run


def kind_of(run: str) -> str:
    """Return the kind of experiment that a run belongs to: of a host, all that it calls the same.

    Examples
    --------
    >>> kind_of("optuna MFLUCB, EXPLORE-A"), kind_of("optuna IISE, 4 workers")
    ('optuna MFLUCB', 'optuna IISE, several workers')
    >>> kind_of("policy MFLUCB, EXPLORE-A")
    'policy MFLUCB, EXPLORE-A'
    """
    if host_of(run) == "core":
        return run
    kind = run.partition(",")[0]
    return f"{kind}, several workers" if run.endswith((" workers", " slots")) else kind


def host_of(kind: str) -> str:
    """Return whose runs a kind of experiment consists of.

    Examples
    --------
    >>> host_of("ray MFLUCB"), host_of("policy MFLUCB")
    ('ray', 'core')
    """
    host = kind.partition(" ")[0]
    return host if host in HOSTS else "core"


def choices_of(record: Mapping[str, Any]) -> Any:
    """Return what was chosen in a recorded run, without what came of it.

    Examples
    --------
    >>> trial = {"params": {"x": 0.123456, "epochs": 9}, "state": "COMPLETE", "values": [0.7]}
    >>> choices_of({"trials": [trial], "answer": ["CERTIFIED: x=0.12346", "  mean 0.7"]})
    [[[[('epochs', 9), ('x', 0.123)], None, 'COMPLETE']], ['CERTIFIED: x=0.12346']]
    """
    if "pulls" in record:
        return [_rounded(record["pulls"]), _rounded(record["answer"])]
    return [[_choice(trial) for trial in record["trials"]], record["answer"][:1]]


def _choice(trial: Mapping[str, Any]) -> list[Any]:
    """Return what was chosen about a trial; of one that reports, also for how long it went on."""
    if "events" in trial:
        steps = [[kind, iteration] for _, kind, iteration, _ in trial["events"]]
        return [_parameters(trial["config"]), steps]
    if "state" in trial:
        return [_parameters(trial["params"]), _rounded(trial.get("limit")), trial["state"]]
    return [_parameters(trial["params"]), trial.get("n_fits"), trial.get("n_resources")]


def _parameters(params: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, _rounded(params[name])) for name in sorted(params)]


def _rounded(choice: Any) -> Any:
    if isinstance(choice, float):
        return float(f"{choice:.{_DIGITS}g}")
    return [_rounded(entry) for entry in choice] if isinstance(choice, (list, tuple)) else choice


@cache
def play(run: str) -> str:
    """Return the choices of a run as text, which is the same wherever it is played."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        record = runs_of(host_of(run))[run](Path())
        return json.dumps(choices_of(record), default=_plain)


def _plain(value: Any) -> Any:
    return value.item()  # a number of NumPy


def fingerprints(kinds: Iterable[str], workers: int = 1) -> dict[str, str]:
    """Return the present fingerprint of each kind, twelve hexadecimal digits.

    Parameters
    ----------
    kinds
        Of experiments.
    workers
        Processes that play the runs.
    """
    wanted = dict.fromkeys(kinds)
    hosts = dict.fromkeys(host_of(kind) for kind in wanted)
    runs = [run for host in hosts for run in runs_of(host) if kind_of(run) in wanted]
    contents = {kind: hashlib.sha256() for kind in wanted}
    for run, choices in zip(runs, mapped(play, runs, workers), strict=True):
        contents[kind_of(run)].update(f"{run}\n{choices}\n".encode())
    return {kind: content.hexdigest()[:12] for kind, content in contents.items()}


def present_kinds() -> list[str]:
    """Return the kinds of experiments that there are, in the order of their runs."""
    return list(dict.fromkeys(kind_of(run) for host in HOSTS for run in runs_of(host)))


def recorded() -> dict[str, str]:
    """Return the fingerprints that are recorded, by kind."""
    found: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether a fingerprint differs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fingerprints",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true", help=f"record them in {FILE.name}")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    now = fingerprints(present_kinds(), options.workers)
    before = recorded() if FILE.exists() else {}
    new = [kind for kind in (*before, *now) if now.get(kind) != before.get(kind)]
    for kind in dict.fromkeys(new):
        progress(f"{kind}: {now.get(kind, 'gone')}, was {before.get(kind, 'unknown')}")
    print(f"{len(now) - len(set(new) & set(now))} of {len(now)} kinds choose as recorded")
    if options.write:
        write(FILE, json.dumps(now, indent=1) + "\n")
        return 0
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
