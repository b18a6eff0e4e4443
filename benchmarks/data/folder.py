"""Where published data are kept: `MFHPO_DATA`, else the user's cache folder."""

import os
from pathlib import Path

HOW = "`make data` fetches it, or set MFHPO_DATA to a folder that has it"
"""What an error says about data that are missing."""


def cache_folder() -> Path:
    """The project's folder in the user's cache, ``$XDG_CACHE_HOME/mfhpo``."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "mfhpo"


def data_folder() -> Path:
    """Folder of `iise/*.npz` and `yahpo/<scenario>/`, whether they are there or not."""
    named = os.environ.get("MFHPO_DATA")
    return Path(named) if named else cache_folder() / "data"
