"""What README and docs say of the search before and after the judged tasks were played."""

import pytest

from benchmarks.evidence import readme, search, tables

ON_DEVELOPMENT = "was developed on these tasks"
ON_JUDGED = "were kept to judge it"


def in_one_line(text):
    return " ".join(text.split())


@pytest.fixture
def judged(monkeypatch):
    """As if the judged tasks had been played, with the figures of the others."""
    read = tables._read
    as_judged = read("hpo") | {"versions": {"mfhpo": "9.9"}, "date": "2026-01-02"}
    monkeypatch.setattr(
        tables, "_read", lambda name: as_judged if name == "hpo_judged" else read(name)
    )
    for page in (readme, search):
        monkeypatch.setattr(page, "is_there", lambda name: name == "hpo_judged")


@pytest.fixture
def not_judged(monkeypatch):
    for page in (readme, search):
        monkeypatch.setattr(page, "is_there", lambda name: False)


def test_the_headline_is_that_of_the_judged_tasks(judged):
    with tables.reading() as names:
        said = in_one_line(readme.how_sure())
    assert f"They {ON_JUDGED}, and are played once per release, here 9.9." in said
    assert ON_DEVELOPMENT not in said
    assert "hpo_judged" in names
    assert "hpo" not in names


def test_the_headline_says_that_they_have_not_been_played(not_judged):
    said = in_one_line(readme.how_sure())
    assert ON_DEVELOPMENT in said
    assert "have not been played yet" in said
    assert ON_JUDGED not in said
    assert search.judged() == "This version has not been judged yet."


def test_the_table_says_which_version_was_judged_on_what(judged):
    said = search.judged()
    lines = said.splitlines()
    assert lines[2].startswith("| **`RaceSampler`, search alone** |")
    assert "Version 9.9, on 2026-01-02; 30 seeds; tasks: 8 of LCBench, 4 of rbv2_xgboost." in said
    last = [float(line.split("|")[-2]) for line in lines[2 : lines.index("")]]
    assert last == sorted(last)
