"""Old names of public classes find the new ones, and say so."""

import importlib

import pytest

OLD_NAMES = {
    ("mfhpo", "BestArmPolicy"): "Race",
    ("mfhpo.search", "SearchRace"): "BudgetedSearch",
    ("mfhpo_optuna", "RaceRecommendation"): "SearchRecommendation",
    ("mfhpo_optuna", "RaceSampler"): "SearchSampler",
    ("mfhpo_ray", "RaceSearch"): "SpaceSearch",
    ("mfhpo_ray", "TuneRaceRecommendation"): "TuneSearchRecommendation",
    ("mfhpo_sklearn", "RaceSearchCV"): "SpaceSearchCV",
}


@pytest.mark.parametrize(("module", "old"), OLD_NAMES)
def test_an_old_name_is_the_new_one_and_warns_once_where_it_is_used(module, old):
    new = OLD_NAMES[module, old]
    package = importlib.import_module(module)
    vars(package).pop(old, None)  # another test may have used it
    with pytest.warns(FutureWarning, match=f"{module}.{old} is now called {module}.{new}") as said:
        exec(compile(f"from {module} import {old}", __file__, "exec"), {})
    assert [one.filename for one in said] == [__file__]
    assert getattr(package, old) is getattr(package, new)
    assert old not in getattr(package, "__all__", ())
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = package.Nothing
