import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_as_a_module(database):
    done = run(sys.executable, "-m", "mfhpo_command", "show", str(database), "race")
    assert done.returncode == 0, done.stderr
    assert "Certified: x=" in done.stdout


def test_the_installed_command_is_the_same():
    [point] = entry_points(group="console_scripts", name="mfhpo")
    assert point.value == "mfhpo_command:main"
    done = run(str(Path(sys.executable).with_name("mfhpo")), "--help")
    assert done.returncode == 0, done.stderr
    for command in ("demo", "show", "report", "certify"):
        assert command in done.stdout


@pytest.mark.parametrize("package", ["typer", "optuna", "jinja2"])
def test_without_a_package_the_message_names_all_that_are_needed(database, tmp_path, package):
    arguments = ["mfhpo", "report", str(database), "race", "-o", str(tmp_path / "page.html")]
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = {arguments}\n"
        "from mfhpo_command import main; main()"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode != 0
    assert f"needs {package}" in done.stderr.lower()
    assert 'pip install "jinja2>=' in done.stderr
    assert done.stderr.count("\n") == 1
