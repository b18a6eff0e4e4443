import itertools
import json
import math

import numpy as np
import pytest

from benchmarks.hpo.problems import SYNTHETIC, problem_named
from benchmarks.hpo.problems.known import KnownProblem
from benchmarks.hpo.problems.scikit_learn import MODELS
from benchmarks.hpo.problems.surrogate import SurrogateProblem
from benchmarks.hpo.problems.synthetic import Synthetic
from benchmarks.hpo.reference import reference

SURROGATES = ("lcbench 3945", "rbv2_xgboost 16")
TABLES = (
    "logistic_regression digits table",
    "svm digits table",
    "gradient_boosting breast_cancer table",
)
KNOWN = (*SURROGATES, *SYNTHETIC, *TABLES)
TRAINED = tuple(f"{model} wine" for model in MODELS)
PROBLEMS = (
    *KNOWN,
    *(
        pytest.param(name, marks=[pytest.mark.slow] * name.startswith(("random_forest", "mlp")))
        for name in TRAINED
    ),
)


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request):
    return named(request.param, request)


@pytest.fixture(scope="module", params=KNOWN)
def known(request):
    return named(request.param, request)


def named(name, request):
    if name in SURROGATES:
        return problem_named(name, request.getfixturevalue("data_folder") / "yahpo")
    return problem_named(name)


def draws(problem, count, seed=0):
    rng = np.random.default_rng(seed)
    return (problem.space.draw(rng) for _ in range(count))


def evaluated(problem, configuration, level=None, seed=0):
    level = problem.fidelity.target if level is None else level
    return problem.objective_function(configuration, level, seed)


class TestContract:
    def test_values_are_finite_and_cost_something(self, problem):
        for configuration, level in itertools.product(draws(problem, 2), problem.fidelity.levels):
            result = evaluated(problem, configuration, level, seed=1)
            assert math.isfinite(result.value)
            assert result.cost > 0.0

    def test_the_seed_is_the_noise(self, problem):
        differ = 0
        for configuration in draws(problem, 20 if isinstance(problem, KnownProblem) else 3, 10):
            first, second, again = (
                evaluated(problem, configuration, seed=seed).value for seed in (0, 1, 1)
            )
            assert again == second
            differ += first != second
        assert differ >= 1  # a model that names one class for all scores the same on all splits

    def test_full_cost_is_that_of_the_target(self, known):
        costs = [evaluated(known, configuration).cost for configuration in draws(known, 101)]
        assert known.full_cost == pytest.approx(np.median(costs), rel=0.3)

    def test_higher_levels_cost_more(self, known):
        for configuration in draws(known, 5):
            costs = [evaluated(known, configuration, at).cost for at in known.fidelity.levels]
            if known.name in TABLES:  # measured, so neighbours may be in the wrong order
                assert costs[0] < costs[-1]
            else:
                assert (np.diff(costs) > 0.0).all()

    def test_true_value_is_the_mean_of_the_noisy_ones(self, known):
        [configuration] = draws(known, 1, seed=4)
        values = [evaluated(known, configuration, seed=seed).value for seed in range(300)]
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - known.true_value(configuration)) <= 5.0 * error

    def test_no_value_is_better_than_the_best(self, known):
        if known.best_value is None:
            assert isinstance(known, SurrogateProblem)
            return
        assert known.true_values(list(draws(known, 2000))).max() <= known.best_value


class TestNames:
    def test_options(self, data_folder):
        problem = problem_named("lcbench 3945", data_folder / "yahpo", 0.0, (1, 3, 9, 27, 52))
        assert problem.fidelity.levels == (1.0, 3.0, 9.0, 27.0, 52.0)
        assert problem.full_cost == 52.0
        [configuration] = draws(problem, 1)
        assert evaluated(problem, configuration).value == problem.true_value(configuration)
        assert problem_named("svm wine", levels=[0.5, 1.0]).fidelity.levels == (0.5, 1.0)


class TestSurrogates:
    def test_lcbench_by_hand(self, data_folder):
        folder = data_folder / "yahpo"
        problem = problem_named("lcbench 7593", folder, sigma=0.0)
        configuration = {
            "max_units": 200,
            "num_layers": 3,
            "batch_size": 64,
            "learning_rate": 0.01,
            "momentum": 0.5,
            "weight_decay": 0.02,
            "max_dropout": 0.25,
        }
        code = 35  # of task 7593 in encoding.json
        for epochs in (2.0, 52.0):
            row = [epochs, 64, 0.01, 0.5, 0.02, 3, 200, 0.25]
            outputs = run(folder / "lcbench" / "model.onnx", row, [code])
            found = evaluated(problem, configuration, epochs)
            assert found.value == pytest.approx(outputs[1], abs=1e-4)
            assert found.cost == epochs
        assert problem.fidelity.continues
        assert 10.0 < problem.seconds < 10_000.0

    @pytest.mark.parametrize("booster", ["gblinear", "gbtree", "dart"])
    def test_rbv2_xgboost_by_hand(self, booster, data_folder):
        folder = data_folder / "yahpo"
        problem = problem_named("rbv2_xgboost 1501", folder, sigma=0.0)
        # In the order of the model's columns.
        names = "nrounds eta gamma lambda alpha subsample max_depth min_child_weight"
        names += " colsample_bytree colsample_bylevel rate_drop skip_drop"
        values = (300, 0.05, 0.01, 0.1, 0.2, 0.7, 8, 5.0, 0.6, 0.8, 0.3, 0.4)
        of_trees = {"eta", "gamma", "max_depth", "min_child_weight"}
        of_trees |= {"colsample_bytree", "colsample_bylevel"}
        of_dart = {"rate_drop", "skip_drop"}
        lacks = {"gblinear": of_trees | of_dart, "gbtree": of_dart, "dart": set()}[booster]
        numbers = dict(zip(names.split(), values, strict=True))
        row = [0.0 if name in lacks else value for name, value in numbers.items()] + [1 / 27, 10]
        given = {name: value for name, value in numbers.items() if name not in lacks}
        given |= {"booster": booster, "num.impute.selected.cpo": "impute.hist"}
        # Codes of encoding.json; "#na#" is 0, then come the names in alphabetical order.
        encoding = json.loads((folder / "rbv2_xgboost" / "encoding.json").read_text("utf-8"))
        codes = [encoding["task_id"]["1501"], {"dart": 1, "gblinear": 2, "gbtree": 3}[booster], 1]
        outputs = run(folder / "rbv2_xgboost" / "model.onnx", row, codes)
        found = evaluated(problem, given, 1 / 27)
        assert found.value == pytest.approx(100.0 * outputs[0], abs=1e-4)
        assert found.cost == 1 / 27
        assert not problem.fidelity.continues
        other = "gblinear" if booster != "gblinear" else "dart"
        with pytest.raises(ValueError, match=r"what applies and no more|lacks"):
            evaluated(problem, {**given, "booster": other}, 1 / 27)


def run(model, continuous, categories):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model))
    inputs = {
        "x_cont": np.array([continuous], dtype=np.float32),
        "x_cat": np.array([categories], dtype=np.int32),
    }
    return session.run(None, inputs)[0][0]


class TestSynthetic:
    @pytest.mark.parametrize(
        ("name", "place", "value"),
        [
            ("branin", (-math.pi, 12.275), -0.397887),
            ("branin", (math.pi, 2.275), -0.397887),
            ("branin", (9.42478, 2.475), -0.397887),
            ("currin", (0.216667, 0.0), 13.798722),
            ("forrester", (0.757249,), 6.020740),
            ("hartmann3", (0.114614, 0.555649, 0.852547), 3.86278),
            ("hartmann6", (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), 3.32237),
        ],
    )
    def test_published_optima(self, name, place, value):
        problem = problem_named(name)
        found = problem.true_value({f"x{i}": x for i, x in enumerate(place, 1)})
        assert found == pytest.approx(value, abs=2e-6)
        assert problem.best_value == pytest.approx(value, abs=5e-6)
        assert found <= problem.best_value

    def test_lower_levels_by_hand(self):
        def at(name, place, level):
            problem = Synthetic(name, sigma=0.0, levels=(level, 1.0))
            configuration = {f"x{i}": x for i, x in enumerate(place, 1)}
            return evaluated(problem, configuration, level).value

        # (0 - 0 + 0 - 6)^2 + 10 (1 - 1 / (8 pi) - .005 * 2 / 3) cos(0) + 10
        assert at("branin", (0.0, 0.0), 1 / 3) == pytest.approx(-(36.0 + 9.568779 + 10.0))
        # sin(2) at the target, sin(2) / 2 - 5 below it
        assert at("forrester", (0.5,), 1 / 3) == pytest.approx(
            -(math.sin(2.0) / 3 + (math.sin(2.0) / 2 - 5.0) * 2 / 3)
        )

        def ratio(x):
            return (2300 * x**3 + 1900 * x**2 + 2092 * x + 60) / (
                100 * x**3 + 500 * x**2 + 4 * x + 20
            )

        # Of the four places around (.5, 0), two are above it and two are put back onto x2 = 0.
        crude = (ratio(0.45) + ratio(0.55)) * (1.0 + 1.0 - math.exp(-10.0)) / 4
        assert at("currin", (0.5, 0.0), 0.25) == pytest.approx(0.25 * ratio(0.5) + 0.75 * crude)
        # In the third centre the third peak is whole; each peak is .1 (1 - .2) lower than at 1.
        centres = [(0.3689, 0.117, 0.2673), (0.4699, 0.4387, 0.747), (0.1091, 0.8732, 0.5547)]
        centres.append((0.0381, 0.5743, 0.8828))
        widths = [(3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35)]
        peaks = [
            math.exp(-sum(a * (x - c) ** 2 for a, x, c in zip(w, centres[2], centre, strict=True)))
            for w, centre in zip(widths, centres, strict=True)
        ]
        heights = (0.92, 1.12, 2.92, 3.12)
        assert peaks[2] == 1.0
        assert at("hartmann3", centres[2], 0.2) == pytest.approx(
            sum(h * p for h, p in zip(heights, peaks, strict=True))
        )


@pytest.mark.slow
def test_local_search_finds_the_optimum():
    problem = Synthetic("hartmann3")
    exact = problem.best_value
    problem.best_value, problem.name = None, "hartmann3 of unknown optimum"
    found = reference(problem)
    assert exact - 1e-3 < found.best <= exact
    assert reference(problem) is found
