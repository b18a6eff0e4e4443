"""`make data`, from repositories made on the spot."""

import hashlib
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.data.__main__ import main
from benchmarks.data.folder import cache_folder, data_folder
from benchmarks.data.instances import digest
from benchmarks.data.sources import PARTS, Instances, Surrogates
from benchmarks.papers.iise import load_instance

OF_2022 = """
costs: [1, 10]
distribution_type: Gaussian
{}_fidelity: [0.5, 0.0]
options:
  !!python/tuple [0, 0.1]: 5
theta: [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
variance_proxy: 0.25
"""
OF_2024 = """
arms: [[0.1, 0.4], [0.2, 0.5], [0.3, 0.6]]
costs: [1, 10]
fidelity_bounds: [0.5, 0.0]
other_fixed_dist_param: 0.5
"""
FILES = {
    "family/model.onnx": "a model",
    "family/encoding.json": "{}",
    "family/config_space.json": "[]",
    "family/data.csv": "large, and not wanted",
    "max.yml": OF_2022.format("max"),
    "order.yml": OF_2022.format("order"),
    "of_2024.yml": OF_2024,
}
ARRAYS = {
    "means": np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]),
    "costs": np.array([1.0, 10.0]),
    "variance": np.array(0.25),
    "xi": np.array([0.5, 0.0]),
}


def git(folder, *arguments):
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def write_all(files, folder):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def base(tmp_path):
    """Folder of a repository authors/published, whose pinned commit is not its last one."""
    folder = tmp_path / "base" / "authors" / "published"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    write_all(FILES, folder)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=pinned")
    git(folder, "tag", "pinned")
    (folder / "family/model.onnx").write_text("another model", encoding="utf-8")
    git(folder, "commit", "--quiet", "--all", "--message=later")
    return folder.parents[1]


@pytest.fixture
def parts(base):
    commit = git(base / "authors" / "published", "rev-parse", "pinned")
    model = hashlib.sha256(b"a model").hexdigest()
    where = {"repository": "authors/published", "commit": commit}
    hashes = {"family/model.onnx": model}
    return (
        Surrogates("surrogates", **where, families=("family",), hashes=hashes),
        Instances(
            "instances",
            **where,
            files={"old": ("max.yml", "order.yml"), "new": ("of_2024.yml",)},
            hashes={"new": digest(ARRAYS)},
        ),
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MFHPO_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


class TestFetch:
    def test_what_is_missing_is_fetched_and_converted(self, base, parts, folder, capsys):
        assert main(["--from", str(base)], parts) == 0
        said = capsys.readouterr().err
        assert (
            f"surrogates: fetched from {base}/authors/published at {parts[0].commit[:12]}" in said
        )
        assert "1 of 3 files checked by SHA-256 as well" in said
        assert "complete" in said
        there = folder / "yahpo" / "family"
        assert sorted(file.name for file in there.iterdir()) == [
            "config_space.json",
            "encoding.json",
            "model.onnx",
        ]
        assert (there / "model.onnx").read_text("utf-8") == "a model"
        for name, xi in (("old", [0.5, 0.0]), ("new", [0.5, 0.0])):
            instance = load_instance(folder / "iise" / f"{name}.npz")
            assert instance.means.tolist() == ARRAYS["means"].tolist()
            assert list(instance.xi) == xi
            assert instance.variance == 0.25
        assert list(load_instance(folder / "iise" / "old.npz").gamma) == [0.5, 0.0]
        assert not list(folder.glob(".fetched-*"))

    def test_damaged_files_are_fetched_again(self, base, parts, folder, monkeypatch):
        monkeypatch.chdir(base)
        assert main(["--from", "."], parts) == 0
        model = folder / "yahpo" / "family" / "model.onnx"
        model.write_text("half a mod", encoding="utf-8")
        instance = folder / "iise" / "new.npz"
        instance.write_bytes(instance.read_bytes()[:100])
        assert main(["--from", "."], parts) == 0
        assert model.read_text("utf-8") == "a model"
        assert load_instance(instance).variance == 0.25


class TestWhatGoesWrong:
    def test_other_contents_than_results_rest_on_are_not_kept(self, base, parts, folder, capsys):
        wrong = [
            replace(parts[0], hashes={"family/model.onnx": "0" * 64}),
            replace(parts[1], hashes={"new": "0" * 64}),
        ]
        assert main(["--from", str(base)], wrong) == 1
        said = capsys.readouterr().err
        assert "family/model.onnx at" in said
        assert said.count("nothing was kept") == 2
        assert not list(folder.iterdir())


def test_the_data_that_results_rest_on_have_the_published_hashes(data_folder):
    checked = [part for part in PARTS if part.hashes]
    assert [part.name for part in checked if not part.is_there(data_folder)] == []


def test_the_folder_is_the_one_that_is_named_else_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("MFHPO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "mfhpo"
    assert data_folder() == tmp_path / "mfhpo" / "data"
    monkeypatch.setenv("MFHPO_DATA", "elsewhere")
    assert str(data_folder()) == "elsewhere"
