"""The tasks that judge our methods judge each release once."""

import json
from collections.abc import Collection
from pathlib import Path

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
    file = results / f"{NAME}.json"
    if not file.exists():
        return
    judged = json.loads(file.read_text(encoding="utf-8"))
    before = {name for of_method in judged["identities"].values() for name in of_method}
    if judged["versions"]["mfhpo"] == mfhpo.__version__ and not before & set(identities):
        raise ValueError(
            f"--judged: mfhpo {mfhpo.__version__} was judged on {judged['date']}, by other code "
            "than today's. A release is judged once: raise the version first."
        )
