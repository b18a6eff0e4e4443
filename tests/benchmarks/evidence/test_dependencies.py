"""Which modules a program runs, in a small project that is made up."""

import pytest

from benchmarks.dependencies import code_of, modules_of

PROJECT = {
    "mfhpo/__init__.py": (
        "from mfhpo.race import Race\nfrom mfhpo.game import Game\n__version__ = '1'"
    ),
    "mfhpo/race.py": "from mfhpo.inner.arms import arms\nclass Race: pass",
    "mfhpo/game.py": "class Game: pass",
    "mfhpo/inner/__init__.py": "",
    "mfhpo/inner/arms.py": "def arms(): return 1",
    "integrations/host/__init__.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from host.sampler import Sampler\n    from host.plot import plot\n"
    ),
    "integrations/host/sampler.py": (
        "from typing import TYPE_CHECKING\nimport mfhpo.inner.arms\n"
        "if TYPE_CHECKING:\n    from mfhpo.game import Game\n"
    ),
    "integrations/host/plot.py": "import numpy",
    "benchmarks/__init__.py": "",
    "benchmarks/table.py": (
        "import mfhpo\nfrom benchmarks.shared import x\nprint(mfhpo.__version__)"
    ),
    "benchmarks/shared.py": "from mfhpo import Race\nx = Race",
    "benchmarks/lazily.py": "def main():\n    from host import Sampler",
    "benchmarks/whole.py": "STATEMENTS = ('from host import *',)",
    "benchmarks/starts.py": "COMMAND = ['-m', 'benchmarks.lazily']",
    "benchmarks/by_attribute.py": "import mfhpo as ours\nours.Game()",
    "benchmarks/packaged/__init__.py": "",
    "benchmarks/packaged/__main__.py": "from mfhpo.game import Game",
}
RACE = ["mfhpo/inner/arms.py", "mfhpo/race.py"]
SAMPLER = ["integrations/host/sampler.py", "mfhpo/inner/arms.py"]


def project(folder, **changes):
    """Writes the project; a change replaces what a file holds."""
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(changes.get(name, text), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("program", "modules"),
    [
        ("benchmarks.table", RACE),
        ("benchmarks/shared.py", RACE),
        ("benchmarks.lazily", SAMPLER),
        ("benchmarks.starts", SAMPLER),
        ("benchmarks.by_attribute", ["mfhpo/game.py"]),
        ("benchmarks.packaged", ["mfhpo/game.py"]),
        ("benchmarks.whole", ["__init__", "plot", "sampler", "arms"]),
    ],
)
def test_names_lead_to_the_modules_that_define_them(program, modules, tmp_path):
    found = modules_of(program, root=project(tmp_path))
    if program == "benchmarks.whole":
        found = [path.rpartition("/")[2].removesuffix(".py") for path in found]
    assert found == modules


def test_programs_together(tmp_path):
    found = modules_of("benchmarks.table", "benchmarks.by_attribute", root=project(tmp_path))
    assert found == ["mfhpo/game.py", *RACE]


def test_a_program_that_there_is_not_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no program of ours is named 'benchmarks\.nothing'"):
        modules_of("benchmarks.nothing", root=project(tmp_path))


class TestHash:
    def code(self, folder, **changes):
        return code_of("benchmarks.table", root=project(folder, **changes))

    @pytest.mark.parametrize(
        "text",
        [
            '"""What it is."""\n\ndef arms():\n    """Arms."""\n    return 1  # one',
            "# first\n\ndef arms():\n\n    return 1",
        ],
        ids=["docstrings", "comments"],
    )
    def test_words_do_not_count(self, text, tmp_path):
        plain = "def arms():\n    return 1"
        before = self.code(tmp_path / "before", **{"mfhpo/inner/arms.py": plain})
        assert self.code(tmp_path / "after", **{"mfhpo/inner/arms.py": text}) == before

    @pytest.mark.parametrize(
        ("name", "text", "counts"),
        [
            ("mfhpo/inner/arms.py", "def arms(): return 2", True),
            ("mfhpo/inner/arms.py", "def arms(): return '# 1'", True),
            ("mfhpo/race.py", "class Race: pass", True),  # leads nowhere else any more
            ("mfhpo/game.py", "class Game: other = 1", False),
            ("benchmarks/shared.py", "from mfhpo import Race\nx = Race, 2", False),
        ],
    )
    def test_what_is_run_and_measured_counts(self, name, text, counts, tmp_path):
        before = self.code(tmp_path / "before")
        assert (self.code(tmp_path / "after", **{name: text}) != before) == counts


def test_the_race_of_the_quickstart_is_found_among_our_own_modules():
    found = modules_of("benchmarks.quickstart")
    assert "integrations/mfhpo_optuna/samplers/choice.py" in found
    assert not [path for path in found if "visualization" in path or "mfhpo_ray" in path]
