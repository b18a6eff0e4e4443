import json

import pytest

from benchmarks.replay.__main__ import main
from benchmarks.replay.differences import first_difference

_ONLY = ["--workers", "1", "--only", "optuna IISE, declared", "ray MF, declared"]


def test_a_changed_choice_is_reported(tmp_path, capsys):
    file = tmp_path / "before.json"
    assert main([*_ONLY, "--output", str(file)]) == 0
    assert main([*_ONLY, "--against", str(file)]) == 0
    assert capsys.readouterr().out == "2 of 2 runs are the same\n"
    report = json.loads(file.read_text(encoding="utf-8"))
    report["runs"]["ray MF, declared"]["trials"][4]["config"]["epochs"] = 81
    file.write_text(json.dumps(report), encoding="utf-8")
    assert main([*_ONLY, "--against", str(file)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("ray MF, declared: trials[4].config.epochs: ")
    assert said[0].endswith(", was 81")
    assert said[1:] == ["1 of 2 runs are the same"]


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "no run's name begins with 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("now", "before", "difference"),
    [
        ([float("nan"), 0.1], [float("nan"), 0.1], None),
        ([1], [1.0], "[0]: 1, was 1.0"),
        ({"trials": [1, 2]}, {"trials": [1]}, "trials[1]: 2, was the end: nothing"),
        ({"cost": 1}, {"price": 1}, "cost: 1, was price: 1"),
    ],
)
def test_values_are_compared_exactly(now, before, difference):
    assert first_difference(now, before) == difference
