import json
import math

import numpy as np
import pytest

from benchmarks.papers.iise import ALGORITHMS, INSTANCES, fresh_instance, main, measure, published
from mfhpo.simulation.instances import GaussianInstance, load_instance


@pytest.mark.slow
@pytest.mark.parametrize("name", list(INSTANCES))
def test_published_figures(data_folder, name):
    case = INSTANCES[name]
    instance = load_instance(data_folder / "iise" / f"{name}.npz", case.noise)
    figures = measure(instance, 20, mfe_fraction=case.mfe_fraction)
    assert list(figures) == list(ALGORITHMS)
    for algorithm, figure in figures.items():
        assert figure.errors == 0
        paper = published(name, algorithm)
        if paper is None:
            continue
        percent, ci95 = paper
        # Four standard errors of the difference: 20 runs here, 100 in the paper.
        tolerance = 4.0 * math.hypot(figure.ci95, ci95) / 1.96
        assert figure.percent == pytest.approx(percent, abs=tolerance), algorithm
        assert figure.ci95 < 0.1 * figure.percent


def test_runs_are_reproducible_and_the_best_known_order_holds():
    instance = fresh_instance("synthetic_a", seed=1)
    first = measure(instance, 2, seed=(3,), algorithms=("IISE", "IISE-gamma"))
    again = measure(instance, 2, seed=(3,), algorithms=("IISE", "IISE-gamma"))
    assert list(first) == ["SE", "IISE", "IISE-gamma"]
    assert [figure.percent for figure in first.values()] == [
        figure.percent for figure in again.values()
    ]
    assert first["IISE-gamma"].percent < first["IISE"].percent
    assert (first["SE"].percent, first["SE"].ci95) == (100.0, 0.0)
    assert 0.0 < first["IISE"].cpu_s < 5.0


class TestCommand:
    @pytest.mark.slow
    def test_json(self, data_folder, tmp_path, capsys):
        written = tmp_path / "table.json"
        arguments = ["--data", str(data_folder / "iise"), "--runs", "2", "--json"]
        main([*arguments, "--instances", "yahtzee", "--output", str(written)])
        printed = capsys.readouterr()
        results = json.loads(printed.out)
        report = json.loads(written.read_text(encoding="utf-8"))
        assert report["results"] == results
        assert report["command"].endswith("--data=FOLDER --runs=2 --delta=0.001 --seed=0")
        assert set(report["versions"]) == {"python", "mfhpo", "numpy", "scipy"}
        assert list(results) == ["yahtzee"]
        assert list(results["yahtzee"]) == list(ALGORITHMS)
        assert set(results["yahtzee"]["IISE"]) == {"percent", "ci95", "errors", "cpu_s"}
        assert results["yahtzee"]["IISE"]["percent"] == pytest.approx(0.53, abs=0.05)
        assert "yahtzee: 13 arms" in printed.err

    def test_without_data_it_draws_instances_and_says_so(self, monkeypatch, capsys):
        def small(name, seed):
            rng = np.random.default_rng([seed, len(name)])
            return GaussianInstance(rng.normal(size=(2, 3)) * [[1.0], [3.0]], costs=[1.0, 100.0])

        monkeypatch.setattr("benchmarks.papers.iise.fresh_instance", small)
        main(["--runs", "2"])
        printed = capsys.readouterr()
        assert "drawn afresh" in printed.err
        assert "Yahtzee has no recipe" in printed.err
        assert "synthetic_a: IISE-gamma" in printed.out
        assert "2.53 ± 0.06" in printed.out
        assert "yahtzee" not in printed.out
