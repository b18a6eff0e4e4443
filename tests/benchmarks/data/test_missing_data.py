"""What commands say that need `make data`, before it was made."""

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "module", ["certify", "hpo.certificates", "hpo.clock.limits", "papers.rcucb_seconds"]
)
def test_a_line_says_what_is_missing(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MFHPO_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        import_module(f"benchmarks.{module}").main(["--output", str(tmp_path / "results.json")])
    last = capsys.readouterr().err.splitlines()[-1]
    assert "model.onnx is missing" in last
    assert "`make data` fetches it" in last
