"""The figures of README and docs are those of benchmarks/results."""

import re

import pytest

from benchmarks.evidence.__main__ import FIGURES, main, pages, renewed


def test_no_figure_is_out_of_date(capsys):
    assert main([]) == 0, capsys.readouterr().out


def test_all_figures_are_shown_and_exist():
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    assert set(re.findall(r"<!-- figures: (.+) -->", text)) == set(FIGURES)
    assert text.count("<!-- figures: ") == text.count("<!-- end of figures -->")


def test_a_wrong_figure_is_renewed():
    wrong = "Before.\n<!-- figures: delta -->\n\n| 1 | 2 |\n\n<!-- end of figures -->\nAfter.\n"
    right = renewed(wrong)
    assert right != wrong
    assert right == renewed(right)
    assert FIGURES["delta"]() in right
    assert right.startswith("Before.\n")
    assert right.endswith("\nAfter.\n")


def test_an_empty_place_is_filled_and_no_more():
    empty = "<!-- figures: delta -->\n<!-- end of figures -->\n"
    assert renewed(f"{empty}Between.\n{empty}").count("\nBetween.\n") == 1


def test_figures_that_there_are_not_are_named():
    with pytest.raises(KeyError, match="no such"):
        renewed("<!-- figures: no such -->\n<!-- end of figures -->\n")
