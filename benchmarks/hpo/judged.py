"""The tasks that judge our methods judge each release once."""

import json
from collections.abc import Collection
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import mfhpo
from benchmarks.report import as_json, write

NAME = "hpo_judged"
"""Of the files in benchmarks/results."""

_BEGUN = "hpo_judged_begun.json"


def begin(results: Path, identity: str) -> None:
    """Note which code judges this release, before it is played, and refuse any other.

    Parameters
    ----------
    results
        Folder of the results.
    identity
        Of the present code of our methods.

    Raises
    ------
    ValueError
        If other code of this release has been judged, or is about to be.
    """
    check_first_time(results, {identity})
    begun = _read(results / _BEGUN)
    if begun is None or begun["mfhpo"] != mfhpo.__version__:
        date = datetime.now(timezone.utc).date().isoformat()
        note = {"mfhpo": mfhpo.__version__, "code": identity, "date": date}
        write(results / _BEGUN, as_json(note))
    elif begun["code"] != identity:
        raise _by_other_code(begun["date"])


def check_first_time(results: Path, identities: Collection[str]) -> None:
    """Refuse to judge a release again by other code.

    Whoever looks at the outcome, changes the methods and looks again has developed them on the
    tasks that were kept to judge them.

    Parameters
    ----------
    results
        Folder of the results.
    identities
        Of the code of our methods that is to be judged.

    Raises
    ------
    ValueError
        If this release has been judged by other code.
    """
    judged = _judged(results)
    if judged is None or judged["versions"]["mfhpo"] != mfhpo.__version__:
        return
    if not set(identities) <= _of_ours(judged):
        raise _by_other_code(judged["date"])


def release_of(results: Path, identities: Collection[str], present: str) -> str:
    """The release that records of the judged tasks judge.

    It is the installed one if the present code has played them. If the code that was judged before
    has played them, it is the release that was judged then: records that are reported on again, or
    to which other optimisers were added, still judge that one.

    Parameters
    ----------
    results
        Folder of the results.
    identities
        Of the code of our methods that has played the records.
    present
        Identity of the present code of our methods.

    Raises
    ------
    ValueError
        If other code has played some of them, so that nobody knows which release they judge.
    """
    judged = _judged(results)
    if judged is not None and set(identities) <= _of_ours(judged):
        return str(judged["versions"]["mfhpo"])
    if set(identities) <= {present}:
        return mfhpo.__version__
    raise ValueError(
        f"--judged: our records are of {sorted(identities)}, and must all be of the present code, "
        f"{present}: play them by run --judged."
    )


def _by_other_code(date: str) -> ValueError:
    return ValueError(
        f"mfhpo {mfhpo.__version__} was judged on {date}, by other code than today's. A release is "
        "judged once: raise the version first."
    )


def _judged(results: Path) -> dict[str, Any] | None:
    return _read(results / f"{NAME}.json")


def _read(file: Path) -> dict[str, Any] | None:
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _of_ours(judged: dict[str, Any]) -> set[str]:
    return {name for method in judged["ours"] for name in judged["identities"][method]}
