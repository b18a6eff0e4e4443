"""What all tests share."""

import os

import pytest
from hypothesis import settings

from benchmarks.data.folder import HOW
from benchmarks.data.folder import data_folder as data_folder_of_user

# "ci" draws the same examples everywhere, so that a failure is the change's own and not the day's;
# HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def data_folder(pytestconfig):
    """Folder of published instances and surrogates: `iise/*.npz`, `yahpo/<scenario>/`."""
    root = pytestconfig.rootpath
    named = os.environ.get("MFHPO_DATA")
    if named:
        if not (root / named).is_dir():
            pytest.fail(f"MFHPO_DATA must name a folder, got {named!r}, seen from {root}.")
        return (root / named).resolve()
    if data_folder_of_user().is_dir():
        return data_folder_of_user()
    pytest.skip(f"published instances are not shipped: {HOW}")
