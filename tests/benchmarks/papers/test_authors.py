"""The authors' programs beside ours; the programs are made up, with the same command line."""

import json
import textwrap

import pytest

from benchmarks.papers.authors import RACES, main

OF_2022 = textwrap.dedent(
    """
    costs: [1, 10]
    {}_fidelity: [0.5, 0.0]
    theta: [[0.1, 0.2, 2.3], [0.0, 0.0, 2.0]]
    variance_proxy: 0.25
    """
)
OF_2024 = textwrap.dedent(
    """
    arms: [[0.1, 0.0], [0.2, 0.0], [2.3, 2.0]]
    costs: [1, 10]
    fidelity_bounds: [0.5, 0.0]
    other_fixed_dist_param: 0.5
    """
)
PROGRAM = """
import argparse, os
parser = argparse.ArgumentParser()
for name in ("--algo", "--env-cfg", "{folder}", "--delta", "--n-jobs", "--n-runs", {more}):
    parser.add_argument(name)
options = vars(parser.parse_args())
if options["algo"] == "{broken}":
    raise ValueError("it broke")
assert os.path.exists(options["env_cfg"])
assert options["n_jobs"] == "1"
text = "results: {{correctness: 100.0, cost_complexity: {{mean: %s, ci: 2.5}}}}\\n"
text += "a: !!python/tuple [1, 2]\\n"
with open(os.path.join(options["{key}"], "{file}"), "w") as file:
    file.write(text % (100 * float(options["n_runs"]) * float(options["delta"])))
"""


def add(folder, name, broken=""):
    """One of the programs, with its configurations."""
    old = name == "mf-bai"
    text = PROGRAM.format(
        folder="--dump-dir" if old else "--results-dir",
        key="dump_dir" if old else "results_dir",
        file="config.yml" if old else "run_specs.yml",
        more="'--discard-all-th'" if old else "'--algo-cfg'",
        broken=broken,
    )
    for race in RACES:
        for file in race.configurations if race.program == name else ():
            kind = "order" if "order" in file else "max"
            place = folder / name / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(OF_2022.format(kind) if old else OF_2024, encoding="utf-8")
    (folder / name / "run.py").write_text(text, encoding="utf-8")


def test_both_sides_race_on_the_same_instances(tmp_path, capsys):
    add(tmp_path, "mf-bai")
    add(tmp_path, "adv-mf-bai")
    file = tmp_path / "authors.json"
    assert main([f"--programs={tmp_path}", "--runs=5", f"--output={file}"]) == 0
    report = json.loads(file.read_text(encoding="utf-8"))
    assert len(report["rows"]) == len(RACES) == 12
    assert str(tmp_path) not in report["command"]
    for row, race in zip(report["rows"], RACES, strict=True):
        assert (row["instance"], row["algorithm"]) == (race.instance, race.algorithm)
        assert row["theirs"]["cost"] == pytest.approx(500 * race.delta)
        # They divide the variance of five races by 5, we by 4; Student's quantile is 2.776.
        assert row["theirs"]["ci95"] == pytest.approx(2.5 * (5 / 4) ** 0.5 * 2.776 / 1.96, rel=1e-3)
        assert row["theirs"]["seconds"] > 0.0
        # Certain of a gap of four noise deviations, after a few pulls of each arm.
        assert row["ours"]["right_percent"] == 100.0
        assert 30.0 < row["ours"]["cost"] < 30_000.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("synthetic_a: SE")
    assert "0.5 ± 4" in lines[1]


def test_a_program_that_is_not_there_is_left_out(tmp_path, capsys):
    add(tmp_path, "adv-mf-bai")
    assert main([f"--programs={tmp_path}", "--runs=2"]) == 0
    said = capsys.readouterr()
    assert "mf-bai is left out" in said.err
    assert "synthetic" not in said.out
    assert main([f"--programs={tmp_path / 'nothing'}"]) == 1
