"""Every Python block of README and docs runs, page by page, in an empty folder.

`pytest --noconftest PATH/tests/docs/test_code_blocks.py`, from outside of the repository, runs them
by the mfhpo that is installed, such as a wheel. It needs pytest and pytest-timeout beside it.
"""

import importlib.util
import sys

import pytest

from tests.docs.pages import ROOT, needed, python_blocks, run

# A page that takes more than a few seconds, or starts processes of Ray.
SLOW = {"how-to/games.md"}
CLUSTER = {"how-to/ray.md"}
# What pages are about, but too large to be installed for the tests.
OPTIONAL = {"torch", "xgboost"}
# Run by `test_trackers.py`, which looks at what was written.
LOOKED_AT = {"how-to/trackers.md"}


def marked_pages():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = "README.md" if page.parent == ROOT else page.relative_to(ROOT / "docs").as_posix()
        marks = [pytest.mark.slow] * (name in SLOW) + [pytest.mark.cluster] * (name in CLUSTER)
        if name not in LOOKED_AT and any(python_blocks(page)):
            yield pytest.param(page, id=name, marks=marks)


@pytest.fixture
def cluster_ends():
    """Ends the cluster that a page has started."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


@pytest.mark.usefixtures("cluster_ends")
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("page", list(marked_pages()))
def test_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    missing = sorted(name for name in needed(page) if importlib.util.find_spec(name) is None)
    if missing and set(missing) <= OPTIONAL:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    run(page)


def test_only_known_pages_are_marked():
    assert all((ROOT / "docs" / name).is_file() for name in SLOW | CLUSTER | LOOKED_AT)


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180
