"""What a release is made of: its workflow, its wheel, and what pages say of installing it."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHECKS = runpy.run_path(str(ROOT / ".ci" / "check_wheel.py"))
WRITTEN = ("README.md", "docs/**/*.md", "hub/**/*.md", "examples/*.py")
SOURCES = ("mfhpo/**/*.py", "integrations/**/*.py")


@pytest.fixture(scope="module")
def jobs():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as a boolean
    assert workflow["permissions"] == {"contents": "read"}
    return workflow["jobs"]


def steps(job):
    """What a job runs and uses, without versions of actions."""
    return [step.get("run") or step["uses"].partition("@")[0] for step in job["steps"]]


def test_the_wheel_is_built_checked_and_tested_before_it_is_published(jobs):
    assert 'make wheel TAG="$GITHUB_REF_NAME"' in steps(jobs["build"])
    assert jobs["test"]["needs"] == "build"
    assert "make test-wheel" in steps(jobs["test"])
    assert jobs["test"]["strategy"]["matrix"]["python"] == ["3.10", "3.11", "3.12", "3.13"]
    published = {name for name, job in jobs.items() if "permissions" in job}
    assert published == {"release", "index", "pages"}
    assert all(jobs[name]["needs"] == "test" for name in published)


def test_no_password_is_needed(jobs):
    assert "pypa/gh-action-pypi-publish" in steps(jobs["index"])
    assert jobs["index"]["permissions"] == {"id-token": "write"}
    assert jobs["index"]["environment"] == "pypi"
    assert steps(jobs["pages"])[-3:] == [
        "make docs",
        "actions/upload-pages-artifact",
        "actions/deploy-pages",
    ]


def test_targets_of_the_workflow_exist(jobs):
    targets = {run.split()[1] for job in jobs.values() for run in steps(job) if "make " in run}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets == {"wheel", "test-wheel", "docs"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_is_the_product_and_small(wheel):
    assert CHECKS["faults"](wheel) == []
    assert CHECKS["faults"](wheel, "v99")[0].startswith("the tag is v99, the version ")


def test_the_wheel_says_what_it_is(wheel):
    about = CHECKS["metadata"](wheel)
    assert f'version = "{about.version}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert about.metadata["License-Expression"] == "MIT"
    assert [point.value for point in about.entry_points] == ["mfhpo_command:main"]
    assert [need for need in about.requires if "extra" not in need] == [
        "numpy>=1.26",
        "scipy>=1.15",
    ]


@pytest.mark.parametrize("pattern", [*WRITTEN, *SOURCES])
def test_nobody_is_told_to_install_us_by_name(pattern):
    """As no package index need have us."""
    files = list(ROOT.glob(pattern))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert re.findall(r"pip install[^`\n]*\bmfhpo(?!-VERSION)[^`\n]*", text) == [], file
