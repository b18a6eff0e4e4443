import pytest
from importlinter.application.use_cases import lint_imports
from importlinter.configuration import configure

from benchmarks.size import PACKAGES, ROOT, entries, floors


def test_each_layer_imports_from_those_below_only(monkeypatch):
    monkeypatch.chdir(ROOT)
    configure()
    assert lint_imports(cache_dir=None)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_at_most_eight_floors(package):
    deep = {name: height for name, height in floors(package).items() if height > 8}
    assert not deep


@pytest.mark.parametrize("folder", PACKAGES.values(), ids=PACKAGES)
def test_type_checkers_of_users_see_the_types_of_a_package(folder):
    assert (folder / "py.typed").is_file()


@pytest.mark.parametrize("folder", [*PACKAGES.values(), ROOT / "tests"], ids=lambda path: path.name)
def test_no_folder_shows_more_than_fourteen_entries(folder):
    crowded = {path: shown for path, shown in entries(folder).items() if shown > 14}
    assert not crowded
