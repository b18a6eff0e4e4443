"""What commands say that need `make data`, before it was made."""

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "data"),
    [
        ("certificate_cost", True),
        ("certify", False),
        ("hpo.certificates", False),
        ("hpo.clock.limits", False),
        ("papers.rcucb_seconds", False),
        ("ray_tune.__main__", True),
    ],
)
def test_a_line_says_what_is_missing(module, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MFHPO_DATA", str(tmp_path))
    given = ["--data", str(tmp_path)] if data else []
    with pytest.raises(SystemExit):
        import_module(f"benchmarks.{module}").main(
            [*given, "--output", str(tmp_path / "results.json")]
        )
    last = capsys.readouterr().err.splitlines()[-1]
    assert "model.onnx is missing" in last
    assert "`make data` fetches it" in last
