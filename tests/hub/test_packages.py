"""The packages for OptunaHub have the form that its registry wants, and their examples run."""

import re
import runpy
from functools import partial
from pathlib import Path

import optuna
import pytest

import mfhpo_optuna

optunahub = pytest.importorskip("optunahub")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2] / "hub" / "package"
PACKAGES = sorted(path.parent for path in ROOT.glob("*/*/__init__.py"))
NAMES = [package.relative_to(ROOT).as_posix() for package in PACKAGES]
PRINTED = {
    "samplers/mfhpo_search": "CERTIFIED",
    "samplers/mfhpo_iise": "CERTIFIED",
    "samplers/mfhpo_rcucb": "slow",
    "samplers/mfhpo_nash": "row",
    "pruners/mfhpo_elimination": "stopped",
    "pruners/mfhpo_iise": "stopped",
    "pruners/mfhpo_time_limit": "at 0.2 s",
}
load = partial(optunahub.load_local_module, registry_root=str(ROOT))


def test_all_packages_are_known():
    assert sorted(PRINTED) == NAMES
    names = {name for package in NAMES for name in load(package).__all__}
    samplers = {"SearchSampler", "IISESampler", "RCUCBSampler", "NashSampler"}
    pruners = {name for name in mfhpo_optuna.__all__ if name.endswith("Pruner")}
    assert samplers | pruners <= names


@pytest.mark.parametrize("name", NAMES)
def test_package_is_loaded(name):
    module = load(name)
    bases = {
        "samplers": optuna.samplers.BaseSampler,
        "pruners": optuna.pruners.BasePruner,
    }
    for each in module.__all__:
        assert getattr(module, each) is getattr(mfhpo_optuna, each)
        assert issubclass(getattr(module, each), bases[name.split("/")[0]])


@pytest.mark.parametrize("name", NAMES)
def test_readme_has_what_the_registry_wants(name):
    folder = ROOT / name
    text = (folder / "README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    matter = yaml.safe_load(front)
    wanted = {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert set(matter) == wanted
    assert matter["license"] == "MIT License"
    assert matter["tags"][0] == name.split("/")[0].removesuffix("s")
    assert all(isinstance(tag, str) for tag in matter["tags"])
    assert (folder / "LICENSE").read_text().startswith("MIT License")
    for each in load(name).__all__:
        assert f"- {each}\n" in body
    code = re.search(r"```python\n(.*?)```", body, re.DOTALL).group(1)
    assert (folder / "example.py").read_text(encoding="utf-8").endswith(code)


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name, monkeypatch, capsys):
    monkeypatch.setattr(optunahub, "load_module", load)
    runpy.run_path(str(ROOT / name / "example.py"))
    assert PRINTED[name] in capsys.readouterr().out
