"""What is fetched, from where, at which commit, and how it is known to be right."""

import abc
import hashlib
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.data.instances import digest, instance_of
from benchmarks.data.repository import check_out
from benchmarks.hpo.problems.families import FAMILIES


@dataclass(frozen=True)
class Part(abc.ABC):
    """Some files of one repository.

    Parameters
    ----------
    name
        Of the part.
    repository
        OWNER/REPOSITORY.
    commit
        The pinned one.
    """

    name: str
    repository: str
    commit: str

    @abc.abstractmethod
    def is_there(self, folder: Path) -> bool:
        """Whether the data folder has all of it, and what can be checked is right."""

    @abc.abstractmethod
    def fetch(self, base: str, fresh: Path, folder: Path) -> str:
        """Fetch it by way of an empty folder into the data folder; says how it was checked.

        Raises
        ------
        OSError
            If it cannot be fetched.
        ValueError
            If something else was fetched than what results rest on.
        """


@dataclass(frozen=True)
class Surrogates(Part):
    """Families of YAHPO Gym's surrogates, each three files.

    Parameters
    ----------
    families
        Their names.
    hashes
        SHA-256 by the path of a file; of those families that published results rest on.
    """

    families: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)

    @property
    def _files(self) -> list[str]:
        names = ("model.onnx", "encoding.json", "config_space.json")
        return [f"{family}/{name}" for family in self.families for name in names]

    def is_there(self, folder: Path) -> bool:
        there = folder / "yahpo"
        return all((there / file).is_file() for file in self._files) and not self._wrong(there)

    def fetch(self, base: str, fresh: Path, folder: Path) -> str:
        check_out(f"{base}/{self.repository}", self.commit, self._files, fresh)
        if wrong := self._wrong(fresh):
            raise ValueError(
                f"{', '.join(wrong)} at {self.commit[:12]} must be what results rest on, and is "
                "not, by SHA-256; nothing was kept"
            )
        for file in self._files:
            target = folder / "yahpo" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(fresh / file, target)
        return f"{len(self.hashes)} of {len(self._files)} files checked by SHA-256 as well"

    def _wrong(self, folder: Path) -> list[str]:
        return [file for file, right in self.hashes.items() if _sha256(folder / file) != right]


@dataclass(frozen=True)
class Instances(Part):
    """Instances of a paper, converted to `iise/*.npz`.

    Parameters
    ----------
    files
        By the name of an instance, the files that describe it.
    hashes
        By the name of an instance, the `digest` of it that published results rest on.
    """

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)

    def is_there(self, folder: Path) -> bool:
        there = {name: _digest_of(folder / "iise" / f"{name}.npz") for name in self.files}
        return None not in there.values() and there.items() >= self.hashes.items()

    def fetch(self, base: str, fresh: Path, folder: Path) -> str:
        needed = [file for files in self.files.values() for file in files]
        check_out(f"{base}/{self.repository}", self.commit, needed, fresh)
        found = {
            name: instance_of(*(fresh / file for file in files))
            for name, files in self.files.items()
        }
        wrong = [name for name, right in self.hashes.items() if digest(found[name]) != right]
        if wrong:
            raise ValueError(
                f"{', '.join(wrong)} at {self.commit[:12]} must be what results rest on, and is "
                "not, by SHA-256; nothing was kept"
            )
        (folder / "iise").mkdir(parents=True, exist_ok=True)
        for name, arrays in found.items():
            np.savez_compressed(folder / "iise" / f"{name}.npz", **arrays)
        return f"{len(self.hashes)} of {len(found)} instances checked by SHA-256 as well"


def _digest_of(file: Path) -> str | None:
    """Of an instance that was kept; None if there is none, or half a one."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return digest(dict(arrays))
    except (OSError, ValueError, zipfile.BadZipFile):
        return None


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


_DEVELOPED_ON = ("lcbench", "rbv2_xgboost")
_SYNTHETIC = "configs/simulation/ablation/setting_{}_Gaussian_{}.yml"

PARTS: tuple[Part, ...] = (
    Surrogates(
        name="yahpo",
        repository="slds-lmu/yahpo_data",
        commit="efdab9072f63bd680396cd4b78b927c4a0caaad3",
        families=_DEVELOPED_ON,
        hashes={
            "lcbench/model.onnx": (
                "b45c0d85ae39abf8820c8bea5ac82f415763afcbaf3b725e36af452b09cb6dcd"
            ),
            "lcbench/encoding.json": (
                "d8af928f412bbeb07e58ecd69877fcab35fbc595333d1c1c3f76120d2f2508da"
            ),
            "lcbench/config_space.json": (
                "4d1c78a91429b4a37628e13f286cf1abe15f778a09722a4c01714f2d72a8200d"
            ),
            "rbv2_xgboost/model.onnx": (
                "85125b6d97f553d10cd50f9e632e1a3f1ad44bcb00300dd2880d70dfd043d9f3"
            ),
            "rbv2_xgboost/encoding.json": (
                "0bd3cf9a4c9459a3148adf740f20b347fd11a6714f89348f41467a8f1206172a"
            ),
            "rbv2_xgboost/config_space.json": (
                "acf4485d314d86801f61b615d64ffea7859c414c363da9e7f943621468ebbda4"
            ),
        },
    ),
    *(
        Surrogates(
            name=f"yahpo-{name}",
            repository="slds-lmu/yahpo_data",
            commit="efdab9072f63bd680396cd4b78b927c4a0caaad3",
            families=(name,),
        )
        for name in FAMILIES
        if name not in _DEVELOPED_ON
    ),
    Instances(
        name="iise",
        repository="riccardopoiani/mf-bai",
        commit="15c077f8aa95d6b0d877914dc1643b1e6b5ee959",
        files={
            "synthetic_a": (_SYNTHETIC.format(1, "maxbound"), _SYNTHETIC.format(1, "order")),
            "synthetic_b": (_SYNTHETIC.format(2, "maxbound"), _SYNTHETIC.format(2, "order")),
            "yahtzee": ("configs/yahtzee/max_bound.yml", "configs/yahtzee/order.yml"),
        },
        hashes={
            "synthetic_a": "dfe808f6b7e70327dc7f455c1b4ec7c56797b256118d1d2b4052667f96a8c720",
            "synthetic_b": "4b7249c45f67565d03a1cb6dc7444e2d8b0dad710f7ea7b8d43c17303867d879",
            "yahtzee": "33920eabd8d1c3b811b458185e8fb7922860035d3ea645a22297495de74bba0f",
        },
    ),
    Instances(
        name="mf-grad",
        repository="riccardopoiani/adv-mf-bai",
        commit="800352f358058a2f5a42717a07055aea0dba3fc8",
        files={
            "bai_4x5": ("configs/cfg4x5.yml",),
            "bai_5x2": ("configs/cfg5x2.yml",),
            "forever": ("configs/forever.yml",),
        },
        hashes={
            "bai_4x5": "27da3b74bdb8b8ddd1d305431a1d8f6203ec01580951ca939c24a9afd31c5972",
            "bai_5x2": "58fe939dad674ae776ebaa48293fa751506eaca4eb1f69d2381a808c451b5e0d",
            "forever": "dddb5ddee863690aee6e727932119aa3efd6f104ed2508746af05322168b0853",
        },
    ),
)
"""All that benchmarks read, and no program needs to be run for it."""
