import json
from types import SimpleNamespace

import pytest

from benchmarks.fingerprints import recorded


@pytest.fixture(autouse=True)
def _known_fingerprints(request, monkeypatch):
    """Reports of tests carry what is recorded: playing it again would take seconds in each."""
    if request.path.stem not in ("test_fingerprints", "test_provenance"):
        known = recorded()

        def found(kinds):
            return {kind: known[kind] for kind in kinds}

        for user in ("provenance", "hpo.identity", "hpo.certificate_records"):
            monkeypatch.setattr(f"benchmarks.{user}.fingerprints", found)


@pytest.fixture
def command(tmp_path, capsys):
    """Runs a command line that writes a report and a figure; returns these and what it printed."""

    def run(main, *arguments):
        output, figure = tmp_path / "new" / "out.json", tmp_path / "new" / "out.html"
        code = main([*arguments, f"--output={output}", f"--figure={figure}"])
        written, page = (file.read_text(encoding="utf-8") for file in (output, figure))
        assert str(tmp_path) not in written
        assert len(page) < 200_000  # the library itself is not in it
        printed = capsys.readouterr().out
        return SimpleNamespace(code=code, report=json.loads(written), page=page, printed=printed)

    return run
