"""The tasks that judge our methods judge each release once."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import mfhpo

NAME = "hpo_judged"
"""Of the files in benchmarks/results."""


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
        raise ValueError(
            f"--judged: mfhpo {mfhpo.__version__} was judged on {judged['date']}, by other code "
            "than today's. A release is judged once: raise the version first."
        )


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


def _judged(results: Path) -> dict[str, Any] | None:
    file = results / f"{NAME}.json"
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _of_ours(judged: dict[str, Any]) -> set[str]:
    return {name for method in judged["ours"] for name in judged["identities"][method]}
