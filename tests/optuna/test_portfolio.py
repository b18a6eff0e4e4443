"""`enqueue_portfolio`: ordinary trials, whose values are in the objective's ranges."""

import warnings

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mfhpo.portfolios import MODELS, portfolio
from mfhpo_optuna import SearchSampler, enqueue_portfolio


def enqueued(study):
    return [trial.system_attrs["fixed_params"] for trial in study.trials]


def test_a_study_tries_the_portfolio_first_and_in_its_order():
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    enqueue_portfolio(study, "elastic_net", names={"C": "strength"})

    def objective(trial):
        return trial.suggest_float("strength", 1e-4, 1e4, log=True) + trial.suggest_float(
            "l1_ratio", 0, 1
        )

    study.optimize(objective, n_trials=12)
    tried = [trial.params for trial in study.trials]
    assert tried[:10] == portfolio("elastic_net", names={"C": "strength"})
    assert tried[10]["strength"] != tried[9]["strength"]


def test_the_project_s_own_search_tries_it_too():
    study = optuna.create_study(sampler=SearchSampler(trials=12, certify_share=0.0, seed=0))
    enqueue_portfolio(study, "elastic_net")
    study.optimize(
        lambda trial: trial.suggest_float("C", 1e-4, 1e4) + trial.suggest_float("l1_ratio", 0, 1)
    )
    assert [trial.params for trial in study.trials[:10]] == portfolio("elastic_net")


@pytest.mark.parametrize("model", MODELS)
def test_values_are_in_the_ranges_of_a_space(model):
    names = {name for one in portfolio(model) for name in one}
    space = {name: FloatDistribution(0.02, 0.5, log=True) for name in names}
    space |= {name: IntDistribution(3, 9, step=3) for name in names if "num" in name}
    study = optuna.create_study()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enqueue_portfolio(study, model, space=space)
        for params in enqueued(study):
            trial = study.ask()
            for name, distribution in space.items():
                value = trial._suggest(name, distribution)
                assert params.get(name, value) == value
                assert distribution._contains(distribution.to_internal_repr(value))


def test_numbers_outside_a_range_are_moved_to_its_end_and_others_stay():
    study = optuna.create_study()
    space = {
        "n_estimators": IntDistribution(50, 200, step=50),
        "learning_rate": FloatDistribution(0.05, 0.2, log=True),
        "reg_alpha": FloatDistribution(1e-3, 1.0, log=True),
        "gamma": FloatDistribution(0, 1),
        "something": FloatDistribution(0, 1),
    }
    enqueue_portfolio(study, "xgboost", space=space)
    first = {"n_estimators": 100, "learning_rate": 0.2, "reg_alpha": 0.001, "gamma": 0}
    assert enqueued(study)[0] == first
    given = portfolio("xgboost")
    for params, one in zip(enqueued(study), given, strict=True):
        assert params["n_estimators"] in (50, 100, 150, 200)
        assert abs(params["n_estimators"] - min(max(one["n_estimators"], 50), 200)) <= 25
        assert params["learning_rate"] == min(max(one["learning_rate"], 0.05), 0.2)


def test_words_are_left_out_where_a_range_has_numbers():
    study = optuna.create_study()
    enqueue_portfolio(study, "svm")
    assert enqueued(study)[0] == {"C": 1.0}
    assert all("gamma" in params for params in enqueued(study)[1:])
    study = optuna.create_study()
    enqueue_portfolio(
        study, "svm", space={"gamma": FloatDistribution(0.1, 1), "C": FloatDistribution(0, 9)}
    )
    assert enqueued(study)[0] == {"C": 1.0}


def test_choices_are_those_of_the_space():
    study = optuna.create_study()
    space = {"gamma": CategoricalDistribution(["scale", "auto"]), "C": FloatDistribution(0.5, 9)}
    enqueue_portfolio(study, "svm", space=space)
    assert enqueued(study)[0] == {"C": 1.0, "gamma": "scale"}
    assert all(params.keys() == {"C"} for params in enqueued(study)[1:])
    study = optuna.create_study()
    enqueue_portfolio(
        study, "lightgbm", space={"extra_trees": CategoricalDistribution([False, True])}
    )
    assert enqueued(study) == [{"extra_trees": False}, {"extra_trees": True}]


def test_nothing_is_enqueued_twice():
    study = optuna.create_study()
    for _ in range(2):
        enqueue_portfolio(study, "xgboost")
    assert enqueued(study) == portfolio("xgboost")
    study = optuna.create_study()
    enqueue_portfolio(study, "elastic_net", space={"C": FloatDistribution(0.5, 2.0)})
    assert sorted(params["C"] for params in enqueued(study)) == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"study": None}, TypeError, "study must be an optuna.Study, got None"),
        ({"model": "svc"}, ValueError, "model must be one of"),
        ({"names": {"c": "C"}}, ValueError, "names must be one of"),
        ({"space": {"C": (0, 1)}}, TypeError, r"space\['C'\] must be a distribution such as"),
        ({"space": [1]}, TypeError, "space must be a dictionary of distributions"),
        (
            {"space": {"c": FloatDistribution(0, 1)}},
            ValueError,
            r"space must have some of the parameters \['C', 'gamma'\]",
        ),
    ],
)
def test_wrong_arguments_are_named(given, error, words):
    study = optuna.create_study()
    with pytest.raises(error, match=words):
        enqueue_portfolio(**{"study": study, "model": "svm", **given})
    assert not study.trials
