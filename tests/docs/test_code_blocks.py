"""Every Python block of README and docs runs, page by page, in an empty folder.

`pytest --noconftest PATH/tests/docs/test_code_blocks.py`, from outside of the repository, runs them
by the mfhpo that is installed, such as a wheel. It needs pytest and pytest-timeout beside it.
"""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A page that takes more than a few seconds, or starts processes of Ray.
SLOW = {"how-to/games.md"}
CLUSTER = {"how-to/ray.md"}
# What pages are about, but too large to be installed for the tests.
OPTIONAL = {"torch", "xgboost"}


def python_blocks(page):
    """Blocks of a page with the lines that they begin at."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield text.count("\n", 0, found.start(1)), found[1]


def marked_pages():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = "README.md" if page.parent == ROOT else page.relative_to(ROOT / "docs").as_posix()
        marks = [pytest.mark.slow] * (name in SLOW) + [pytest.mark.cluster] * (name in CLUSTER)
        if any(python_blocks(page)):
            yield pytest.param(page, id=name, marks=marks)


def imported(code):
    """First names of the modules that a block imports anywhere."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


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
    blocks = list(python_blocks(page))
    needed = {name for _, code in blocks for name in imported(code)}
    missing = sorted(name for name in needed if importlib.util.find_spec(name) is None)
    if missing and set(missing) <= OPTIONAL:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in blocks:  # a traceback shows the page's own line
        exec(compile("\n" * line + code, str(page), "exec"), names)


def test_only_known_pages_are_marked():
    assert all((ROOT / "docs" / name).is_file() for name in SLOW | CLUSTER)


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180
