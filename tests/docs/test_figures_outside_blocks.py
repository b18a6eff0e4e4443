"""Every figure of README and docs is traced to a results file, or is listed as no measurement."""

import re

import pytest

from benchmarks.evidence.__main__ import ROOT, pages
from tests.docs.outside_blocks import GIVEN, TRACED
from tests.docs.pages import FILLED, words

# What holds no figures of ours: filled blocks, code, addresses, dates, the numbers of a list.
_ELSEWHERE = re.compile(
    FILLED.pattern + r"|^```.*?^```$|(?<=\n\n) {4}[^\n]*(?:\n {4}[^\n]*)*"
    r"|^:::.*?$|^(?:#+ |\s*)\d+\. "
    r"|(?<=\])\([^)]*\)|\b(?:19|20)\d\d\b|<[a-z!/][^>]*>|\b[1n] - \w+",
    re.DOTALL | re.MULTILINE,
)
_CODE = re.compile(r"`[^`]*`")
_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*")
PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages()}


def traced(page):
    """The phrases that a page must have outside blocks, with the figures of today."""
    for phrase, figures in TRACED.get(page, {}).items():
        found = figures()
        yield phrase.format(*(found if isinstance(found, tuple) else (found,)))


def figures_of(text, phrases=()):
    """The figures that are in no phrase and in no code; phrases may overlap."""
    explained = {
        place
        for phrase in [_CODE.pattern, *map(re.escape, phrases)]
        for found in re.finditer(phrase, text)
        for place in range(*found.span())
    }
    found = _FIGURE.finditer(text)
    return {one[0].rstrip(".,") for one in found if one.start() not in explained}


@pytest.mark.parametrize("page", PAGES)
def test_each_figure_outside_a_block_is_traced_or_listed(page):
    text = words(_ELSEWHERE.sub(" ", PAGES[page].read_text(encoding="utf-8")))
    phrases = list(traced(page))
    absent = [phrase for phrase in phrases if phrase not in text]
    assert not absent, "these phrases of tests/docs/outside_blocks.py are not on the page"
    listed = set(GIVEN.get(page, "").split())
    left = figures_of(text, phrases)
    assert left == listed, "put it into a filled block, or name it in tests/docs/outside_blocks.py"


def test_only_pages_that_there_are_have_figures():
    assert set(TRACED) | set(GIVEN) <= set(PAGES)


def test_what_counts_as_a_figure():
    text = (
        "12 % or | 3.5 |, `99`, [it](page-98.md), 2023, 1 - delta, rbv2 and SHA-256\n"
        "<!-- figures: x -->\n\n| 97 |\n\n<!-- end of figures -->\n\n```\n96\n```\n1. First\n\n"
        "    make it ARGS=95\n\n4 times"
    )
    assert figures_of(words(_ELSEWHERE.sub(" ", text))) == {"12", "3.5", "256", "4"}
