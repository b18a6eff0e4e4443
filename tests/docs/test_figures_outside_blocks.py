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


def phrases_of(page):
    """The phrases that a page may have outside blocks, with the figures of today."""
    filled = []
    for phrase, figures in TRACED.get(page, {}).items():
        found = figures()
        filled.append(phrase.format(*(found if isinstance(found, tuple) else (found,))))
    return [*filled, *GIVEN.get(page, ())]


def figures_of(text, phrases=()):
    """Each figure that is in no phrase and in no code, with the words around it."""
    explained = {
        place
        for phrase in [_CODE.pattern, *map(re.escape, phrases)]
        for found in re.finditer(phrase, text)
        for place in range(*found.span())
    }
    return [
        text[max(0, found.start() - 40) : found.end() + 40]
        for found in _FIGURE.finditer(text)
        if found.start() not in explained
    ]


@pytest.mark.parametrize("page", PAGES)
def test_each_figure_outside_a_block_is_traced_or_listed(page):
    text = words(_ELSEWHERE.sub(" ", PAGES[page].read_text(encoding="utf-8")))
    phrases = phrases_of(page)
    absent = [phrase for phrase in phrases if phrase not in text]
    assert not absent, "these phrases of tests/docs/outside_blocks.py are not on the page"
    left = figures_of(text, phrases)
    assert not left, "put these into a filled block, or name them in tests/docs/outside_blocks.py"


def test_only_pages_that_there_are_have_phrases():
    assert set(TRACED) | set(GIVEN) <= set(PAGES)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It is 12 % better.", 1),
        ("| a | 3.5 |", 1),
        ("`12` and [it](page-3.md), NeurIPS 2023, 1 - delta, n - 1 trials", 0),
        ("<!-- figures: x -->\n\n| 7 |\n\n<!-- end of figures -->\nand 8", 1),
        ("```\n9\n```\n1. First", 0),
        ("Run:\n\n    make it ARGS=5\n    make it\n\n4 times", 1),
        ("rbv2 and SHA-256", 1),
    ],
)
def test_what_counts_as_a_figure(text, left):
    assert len(figures_of(words(_ELSEWHERE.sub(" ", text)))) == left
