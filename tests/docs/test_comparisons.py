"""Comparisons in words on the pages of docs hold on the results files."""

import pytest

from tests.docs.comparisons import COMPARISONS
from tests.docs.pages import FILLED, ROOT, words


@pytest.mark.parametrize(
    ("page", "phrase"), [(page, phrase) for page, of in COMPARISONS.items() for phrase in of]
)
def test_a_comparison_is_on_its_page_and_holds(page, phrase):
    text = FILLED.sub(" ", (ROOT / page).read_text(encoding="utf-8"))
    assert phrase in words(text), "correct the phrase in tests/docs/comparisons.py"
    assert COMPARISONS[page][phrase](), "correct the sentence on the page"
