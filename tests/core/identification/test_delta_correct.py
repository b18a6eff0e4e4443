"""Certificates are wrong with probability at most delta: a short `benchmarks.delta_correctness`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import get_args

import pytest
from scipy.stats import beta, binom

from benchmarks.delta_correctness import (
    CONDITIONS,
    VALUES,
    VARIANTS,
    Condition,
    Told,
    check,
    main,
)

DELTA = 0.1
TOLD = get_args(Told)
SHORTLISTS = ("certify", "group-sequential", "paired")


def assert_delta_is_kept(condition: Condition, instances: int, seed: int) -> None:
    # The one-sided 95 % Clopper-Pearson bound must be at most delta: no error in 29 races would
    # do, and in a hundred up to 4 are allowed.
    [row] = check([condition], instances=instances, delta=DELTA, seed=seed)
    assert row.upper <= DELTA, row
    # A policy that never answers is never wrong. One in four instances cannot be certified.
    assert row.certified >= 0.3, row


@pytest.mark.slow
@pytest.mark.parametrize("tolerant", [False, True], ids=["best", "epsilon"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_policy_keeps_delta(variant: str, tolerant: bool) -> None:
    # 40 races each; `make delta` plays many more.
    told = TOLD[(VARIANTS.index(variant) + tolerant) % 3]
    known = "estimated" if variant in SHORTLISTS else "mixture"
    assert_delta_is_kept(Condition(variant, known, tolerant, told), 40, seed=1 + tolerant)


@pytest.mark.slow
@pytest.mark.parametrize("knowledge", [name for name in VALUES if name != "mixture"])
def test_every_radius_keeps_delta(knowledge: str) -> None:
    condition = Condition("IISE max", knowledge, told="out of order")
    assert_delta_is_kept(condition, 40, seed=5)


@pytest.mark.slow
def test_a_radius_that_is_too_small_is_found_out() -> None:
    # With three tenths of the radius, the error rate is above delta beyond chance: what the tests
    # above do not find, they would find.
    [row] = check([Condition("IISE max", shrink=0.3)], instances=300, delta=DELTA)
    assert row.wrong > binom.ppf(0.999, row.races, DELTA), row
    [row] = check([Condition("SE", shrink=0.3, told="out of order")], instances=300, delta=DELTA)
    assert row.wrong > binom.ppf(0.999, row.races, DELTA), row


def test_the_benchmark_covers_every_policy_radius_and_order() -> None:
    assert len(set(CONDITIONS)) == len(CONDITIONS)
    for variant in VARIANTS:
        for tolerant in (False, True):
            told = {c.told for c in CONDITIONS if (c.variant, c.tolerant) == (variant, tolerant)}
            if variant in SHORTLISTS:
                assert told == {"in order"}
            else:
                assert told == (set(TOLD) - {"by duration"} if tolerant else set(TOLD))
    assert {condition.knowledge for condition in CONDITIONS} == set(VALUES)
    assert any(condition.shrink < 1.0 for condition in CONDITIONS)


def test_rows_are_repeatable_and_do_not_depend_on_the_number_of_processes() -> None:
    conditions = [Condition("SE"), Condition("SE", told="by duration")]
    found = []
    for workers in (1, 2, 1):
        rows = list(check(conditions, instances=7, seed=3, workers=workers))
        found.append([(row.condition, row.wrong, row.certified, row.pulls) for row in rows])
        for row in rows:
            assert row.share == row.wrong / 7
            assert row.upper == pytest.approx(beta.ppf(0.95, row.wrong + 1, 7 - row.wrong))
            assert not math.isnan(row.pulls)
    assert found[0] == found[1] == found[2]


def test_the_command_writes_what_makes_a_result_repeatable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "result.json"
    arguments = ["--instances", "1", "--workers", "1", "--seed", "4", "--json"]
    # One race of each kind cannot show anything, and the exit status says so.
    assert main([*arguments, "--output", str(file)]) == 1
    printed = capsys.readouterr()
    content = json.loads(file.read_text(encoding="utf-8"))
    assert json.loads(printed.out) == content
    assert f"{len(CONDITIONS)} of {len(CONDITIONS)} rows" in printed.err
    assert content["seed"] == 4
    assert set(content["versions"]) == {"mfhpo", "numpy", "scipy", "python"}
    assert content["date"]
    assert content["command"].startswith("python -m benchmarks.delta_correctness --instances=1 ")
    assert len(content["rows"]) == len(CONDITIONS)
    assert content["delta_kept"] is False


@pytest.mark.parametrize("arguments", [["--instances", "0"], ["--workers", "0"]])
def test_arguments_out_of_range(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "--instances and --workers must be at least 1" in capsys.readouterr().err
