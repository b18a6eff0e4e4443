"""Models trained on data that scikit-learn ships or generates, in HPOBench's spaces.

The spaces are those of HPOBench's machine-learning benchmarks (Eggensperger et al., "HPOBench: a
collection of reproducible multi-fidelity benchmark problems for HPO", NeurIPS 2021), with LightGBM
in place of XGBoost. Trees and iterations end at 81, and networks have at most 256 units a layer
and at least 16 samples a batch, so that a training takes seconds at most.

The seed of a run chooses the split of the data, one third being held out, and the model's own
randomness: together they are the noise. The value is the accuracy on the held-out part in percent.
The cost is the CPU time of the training, in seconds, so it differs a little each time.

Every evaluation trains from scratch. Where more iterations or trees go on from where fewer of them
ended, a training with the same seed passes through the same states, so what goes on from a
checkpoint is worth as much as what is trained anew, and only the difference of the costs is paid.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from benchmarks.hpo.problem import Evaluation, FidelitySpace, Problem
from benchmarks.hpo.problems.known import checked_level, require_valid
from benchmarks.hpo.space import Configuration, ConfigurationSpace, Float, Integer, Parameter
from mfhpo.knowledge.arrays import FloatArray

_GENERATED: Mapping[str, tuple[str, Mapping[str, Any]]] = {  # scikit-learn's function, arguments
    "clusters": (  # six of them, in three classes, with wrong labels
        "make_classification",
        {"n_samples": 900, "n_features": 20, "n_informative": 5, "n_classes": 3, "flip_y": 0.1},
    ),
    "corners": (  # of a cube in six dimensions; no plane tells the classes apart
        "make_classification",
        {
            "n_samples": 900,
            "n_features": 6,
            "n_informative": 6,
            "n_redundant": 0,
            "n_clusters_per_class": 16,
            "class_sep": 1.5,
        },
    ),
    "wide": (  # few rows, many features that say nothing
        "make_classification",
        {"n_samples": 300, "n_features": 100, "n_informative": 10, "n_redundant": 0},
    ),
}
DATA_SETS = ("digits", "breast_cancer", "wine", *_GENERATED)
"""Names of the data sets: three that ship with scikit-learn, three that it generates."""

_HELD_OUT = 1 / 3
_COUNTS = (3.0, 9.0, 27.0, 81.0)
_SHARES = (1 / 9, 1 / 3, 1.0)  # a ninth of the smallest data set has few samples of each class
_FOR_FULL_COST = 5


def _logistic_regression(given: Configuration, iterations: float, seed: int, _: int) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        loss="log_loss",
        alpha=given["alpha"],
        eta0=given["eta0"],
        learning_rate="constant",  # HPOBench's "adaptive" is the same where nothing ends early
        max_iter=int(iterations),
        tol=None,
        random_state=seed,
    )


def _svm(given: Configuration, share: float, seed: int, _: int) -> Any:
    from sklearn.svm import SVC

    return SVC(C=given["C"], gamma=given["gamma"], random_state=seed)


def _random_forest(given: Configuration, trees: float, seed: int, features: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=int(trees),
        max_depth=given["max_depth"],
        min_samples_split=given["min_samples_split"],
        max_features=round(features ** given["max_features"]),
        min_samples_leaf=given["min_samples_leaf"],
        random_state=seed,
    )


def _gradient_boosting(given: Configuration, trees: float, seed: int, _: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=int(trees),
        learning_rate=given["learning_rate"],
        max_depth=given["max_depth"],
        colsample_bytree=given["colsample_bytree"],
        reg_lambda=given["reg_lambda"],
        random_state=seed,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbose=-1,
    )


def _mlp(given: Configuration, iterations: float, seed: int, _: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=(given["width"],) * given["depth"],
        batch_size=given["batch_size"],
        alpha=given["alpha"],
        learning_rate_init=given["learning_rate_init"],
        max_iter=int(iterations),
        n_iter_no_change=int(iterations),  # never ends early
        random_state=seed,
    )


@dataclass(frozen=True)
class Model:
    """What is tuned.

    Parameters
    ----------
    untrained
        The model for a configuration, a level, a seed and a number of features.
    parameters
        What is tuned.
    fidelity
        Its levels.
    scaled
        Whether features are brought to mean 0 and variance 1 first.
    """

    untrained: Callable[[Configuration, float, int, int], Any]
    parameters: Mapping[str, Parameter]
    fidelity: FidelitySpace
    scaled: bool


MODELS = {
    "logistic_regression": Model(
        _logistic_regression,
        {"alpha": Float(1e-5, 1.0, log=True), "eta0": Float(1e-5, 1.0, log=True)},
        FidelitySpace("iterations", _COUNTS, continues=True),
        scaled=True,
    ),
    "svm": Model(
        _svm,
        {"C": Float(2**-10, 2**10, log=True), "gamma": Float(2**-10, 2**10, log=True)},
        FidelitySpace("share", _SHARES, continues=False),
        scaled=True,
    ),
    "random_forest": Model(
        _random_forest,
        {
            "max_depth": Integer(1, 50, log=True),
            "min_samples_split": Integer(2, 128, log=True),
            "max_features": Float(0.0, 1.0),  # an exponent of the number of features
            "min_samples_leaf": Integer(1, 20),
        },
        FidelitySpace("trees", _COUNTS, continues=True),
        scaled=False,
    ),
    "gradient_boosting": Model(
        _gradient_boosting,
        {
            "learning_rate": Float(2**-10, 1.0, log=True),
            "max_depth": Integer(1, 50, log=True),
            "colsample_bytree": Float(0.1, 1.0),
            "reg_lambda": Float(2**-10, 2**10, log=True),
        },
        FidelitySpace("trees", _COUNTS, continues=True),
        scaled=False,
    ),
    "mlp": Model(
        _mlp,
        {
            "depth": Integer(1, 3),
            "width": Integer(16, 256, log=True),
            "batch_size": Integer(16, 256, log=True),
            "alpha": Float(1e-8, 1.0, log=True),
            "learning_rate_init": Float(1e-5, 1.0, log=True),
        },
        FidelitySpace("iterations", _COUNTS, continues=True),
        scaled=True,
    ),
}
"""By name; iterations and trees are counted, a share is of the data."""


class LiveProblem(Problem):
    """A model that is trained for every evaluation.

    Parameters
    ----------
    model
        A name in `MODELS`.
    data_set
        One of `DATA_SETS`.
    levels
        Levels of the fidelity; by default the model's.

    Raises
    ------
    ValueError
        If a name is unknown, or the levels are not what the model can be trained at.

    Notes
    -----
    The full cost is the median CPU time of 5 random configurations at the target level, measured
    once in a process. The true values are not known.

    Examples
    --------
    >>> problem = LiveProblem("random_forest", "wine")
    >>> problem.fidelity
    FidelitySpace(name='trees', levels=(3.0, 9.0, 27.0, 81.0), continues=True)
    >>> forest = problem.space.at([0.5, 0.0, 0.5, 0.0])
    >>> forest
    {'max_depth': 5, 'min_samples_split': 2, 'max_features': 0.5, 'min_samples_leaf': 1}
    >>> 90.0 < problem.objective_function(forest, fidelity=81.0, seed=0).value <= 100.0
    True
    """

    def __init__(self, model: str, data_set: str, levels: tuple[float, ...] | None = None) -> None:
        if model not in MODELS:
            raise ValueError(f"model must be one of {tuple(MODELS)}, got {model!r}.")
        if data_set not in DATA_SETS:
            raise ValueError(f"data_set must be one of {DATA_SETS}, got {data_set!r}.")
        self.name = f"{model} {data_set}"
        self._model, self._data_set = model, data_set
        self.space = ConfigurationSpace(MODELS[model].parameters)
        self.fidelity = _at_levels(MODELS[model].fidelity, levels)
        self.full_cost = self.seconds = _full_cost(model, data_set, self.fidelity.target)

    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        """Train the model and test it on what is held out."""
        checked_level(self.fidelity, fidelity)
        require_valid(self.space, configuration)
        result = trained(self._model, self._data_set, configuration, fidelity, seed)
        return Evaluation(result.accuracy, result.seconds)

    def true_value(self, configuration: Configuration) -> None:
        """Not known: None."""
        require_valid(self.space, configuration)


class Training(NamedTuple):
    """What a training gave on the part held out, and the CPU seconds that it took.

    Parameters
    ----------
    accuracy
        In percent.
    log_loss
        In nats; probabilities are clipped as scikit-learn's `log_loss` does.
    seconds
        Of the training alone.
    """

    accuracy: float
    log_loss: float
    seconds: float


def trained(
    model: str, data_set: str, configuration: Configuration, fidelity: float, seed: int
) -> Training:
    """Train a model once.

    Parameters
    ----------
    model, data_set
        Names in `MODELS` and `DATA_SETS`.
    configuration, fidelity
        Values of its parameters, and the level.
    seed
        Of the split and of the model.

    Returns
    -------
    Training
        What it gave and took.
    """
    return trainings(model, data_set, configuration, [fidelity], seed)[0]


def trainings(
    model: str, data_set: str, configuration: Configuration, levels: Sequence[float], seed: int
) -> list[Training]:
    """Train a model to each of some levels; networks are trained once, and tested on the way.

    Parameters
    ----------
    model, data_set, configuration, seed
        As for `trained`.
    levels
        Increasing.

    Returns
    -------
    list of Training
        What `trained` gives at each level.
    """
    seed %= 2**31  # as large as LightGBM takes
    if model != "mlp":
        return [_trained(model, data_set, configuration, [level], seed)[0] for level in levels]
    return _trained(model, data_set, configuration, levels, seed)


def _trained(
    model: str, data_set: str, configuration: Configuration, levels: Sequence[float], seed: int
) -> list[Training]:
    """Train once, to the last level."""
    train, held_out, train_target, held_out_target = split(data_set, seed)
    if MODELS[model].fidelity.name == "share":
        train, train_target = _share(train, train_target, levels[-1], seed)
    if MODELS[model].scaled:
        mean, scale = train.mean(axis=0), train.std(axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        train, held_out = (train - mean) / scale, (held_out - mean) / scale
    learner = MODELS[model].untrained(configuration, levels[-1], seed, train.shape[1])
    found: list[Training] = []
    tests = 0.0  # CPU seconds

    def test() -> None:
        nonlocal tests
        until = time.process_time()
        found.append(_tested(learner, held_out, held_out_target, until - began - tests))
        tests += time.process_time() - until

    for level in levels[:-1]:
        _after(learner, level, test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few iterations do not converge is what is looked at
        began = time.process_time()
        learner.fit(train, train_target)
        test()
    return found


def _after(network: Any, iterations: float, test: Callable[[], None]) -> None:
    """Call a function when a network of scikit-learn has ended so many iterations."""
    goes_on = network._update_no_improvement_count  # called at the end of each

    def tested(*arguments: Any) -> None:
        goes_on(*arguments)
        if network.n_iter_ == iterations:
            test()

    network._update_no_improvement_count = tested


def _tested(model: Any, held_out: FloatArray, target: FloatArray, seconds: float) -> Training:
    from sklearn.metrics import log_loss

    accuracy = 100.0 * np.mean(model.predict(held_out) == target)
    loss = log_loss(target, _probabilities(model, held_out))
    return Training(float(accuracy), float(loss), seconds)


def _probabilities(model: Any, features: FloatArray) -> FloatArray:
    """Of the classes; a model without any has its decision values taken as their logarithms."""
    if hasattr(model, "predict_proba"):
        probabilities: FloatArray = model.predict_proba(features)
        return probabilities
    scores = model.decision_function(features)
    if scores.ndim == 1:  # for the second of two classes
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    probabilities = softmax(scores, axis=1)
    return probabilities


def _at_levels(fidelity: FidelitySpace, levels: tuple[float, ...] | None) -> FidelitySpace:
    if levels is None:
        return fidelity
    if fidelity.name == "share":
        if not (levels[0] >= _SHARES[0] and levels[-1] <= 1.0):
            raise ValueError(f"levels must be shares of 1/9 to 1, got {levels!r}.")
    elif not all(level >= 1.0 and level == int(level) for level in levels):
        raise ValueError(f"levels must be whole numbers of {fidelity.name}, got {levels!r}.")
    return FidelitySpace(fidelity.name, levels, fidelity.continues)


@cache
def _full_cost(model: str, data_set: str, target: float) -> float:
    rng = np.random.default_rng(0)
    space = ConfigurationSpace(MODELS[model].parameters)
    trained(model, data_set, space.draw(rng), target, 0)  # takes the time of imports
    costs = [
        trained(model, data_set, space.draw(rng), target, seed).seconds
        for seed in range(_FOR_FULL_COST)
    ]
    return float(np.median(costs))


@cache
def _data(name: str) -> tuple[FloatArray, FloatArray]:
    from sklearn import datasets

    if name in _GENERATED:
        function, arguments = _GENERATED[name]
        features, target = getattr(datasets, function)(**arguments, random_state=0)
    else:
        features, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    return features, target


def split(data_set: str, seed: int) -> list[FloatArray]:
    """Features to learn from and held out, then their classes; one third is held out."""
    from sklearn.model_selection import train_test_split

    features, target = _data(data_set)
    parts: list[FloatArray] = train_test_split(
        features, target, test_size=_HELD_OUT, stratify=target, random_state=seed
    )
    return parts


def _share(
    train: FloatArray, target: FloatArray, share: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    """A part of the data, in which classes have their shares."""
    from sklearn.model_selection import train_test_split

    if share == 1.0:
        return train, target
    kept, _, kept_target, _ = train_test_split(
        train, target, train_size=share, stratify=target, random_state=seed
    )
    return kept, kept_target
