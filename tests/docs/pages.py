"""The pages of the documentation, their words and their Python blocks."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILLED = re.compile(r"<!-- figures: .*?<!-- end of figures -->", re.DOTALL)
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def words(text):
    """A text on one line."""
    return " ".join(text.split())


def python_blocks(page):
    """Blocks of a page with the lines that they begin at."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield text.count("\n", 0, found.start(1)), found[1]


def needed(page):
    """First names of the modules that the blocks of a page import anywhere."""
    return {name for _, code in python_blocks(page) for name in _imported(code)}


def _imported(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def run(page):
    """Run the blocks of a page, one after the other, and return the names that they leave."""
    names = {"__name__": "__main__"}
    for line, code in python_blocks(page):  # a traceback shows the page's own line
        exec(compile("\n" * line + code, str(page), "exec"), names)
    return names
