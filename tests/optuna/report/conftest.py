"""Studies to report on: one of each kind of sampler, in an SQLite file where it is read again.

And a browser to look at pages.
"""

import shutil
import tempfile

import numpy as np
import optuna
import pytest

from mfhpo_optuna import IISESampler, NashSampler, RCUCBSampler, SearchSampler
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.summary import summary_of
from mfhpo_optuna.study.trials.attributes import SECONDS_KEY
from mfhpo_optuna.visualization.reading import read_study

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--enable-unsafe-swiftshader "  # WebGL without a graphics card
    "--disable-background-networking --disable-component-update"
)

SCRIPT = "<script>document.title = 'taken over'</script>"


def load(storage, name):
    return optuna.load_study(study_name=name, storage=storage)


def summarised(study, sampler=None):
    reading = read_study(study, sampler)
    return summary_of(reading, ledger_of(reading))


def noisy(seed):
    rng = np.random.default_rng(seed)

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        kind = trial.suggest_categorical("kind", ["plain", SCRIPT])
        epochs = trial.suggest_int("epochs", 1, 9)
        return (x - 0.3) ** 2 + 0.2 / epochs + 0.1 * (kind == SCRIPT) + 0.05 * rng.normal()

    return objective


@pytest.fixture(scope="session")
def storage(tmp_path_factory):
    """URL of a database with the studies "race", "search" and "plain" (by Optuna's own sampler)."""
    url = f"sqlite:///{tmp_path_factory.mktemp('studies') / 'studies.db'}"
    samplers = {
        "race": IISESampler("epochs", arms=5, epsilon=0.1, seed=0),
        "search": SearchSampler("epochs", budget=400, certify_share=0.4, top=3, seed=0),
    }
    for name, sampler in samplers.items():
        optuna.create_study(storage=url, study_name=name, sampler=sampler).optimize(noisy(0))
    random = optuna.samplers.RandomSampler(seed=0)
    plain = optuna.create_study(storage=url, study_name="plain", sampler=random)
    plain.optimize(noisy(1), n_trials=6)
    return url


@pytest.fixture(scope="session")
def counted():
    """A search whose budget counts evaluations; it ends before its certificate's first look."""
    sampler = SearchSampler("epochs", trials=40, seed=0)
    study = optuna.create_study(study_name="counted", sampler=sampler)
    study.optimize(noisy(0))
    return study


@pytest.fixture(scope="session")
def limits():
    """A study with time limits, whose seconds are made up."""
    arms, options = [{"model": "quick"}, {"model": "slow"}], {"reward_range": (0.0, 1.0)}
    sampler = RCUCBSampler(arms=arms, limits=[1.0, 2.0], horizon=30, seed=0, **options)
    study = optuna.create_study(direction="maximize", study_name="limits", sampler=sampler)
    while not sampler.recommendation(study).finished:
        trial = study.ask()
        model = trial.suggest_categorical("model", ["quick", "slow"])
        trial.set_user_attr("mfhpo:enforced_by", "time_limited")
        trial.set_user_attr(SECONDS_KEY, {"quick": 0.5, "slow": 0.9}[model])
        study.tell(trial, {"quick": 0.3, "slow": 0.9}[model])
    return study


@pytest.fixture(scope="session")
def game():
    """A game of two players."""
    sampler = NashSampler({"row": ["x"], "column": ["y"]}, budget=8, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, study_name="game", sampler=sampler)

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return (x - 0.5 * y) ** 2, (y + 0.5 * x - 0.75) ** 2

    study.optimize(objective)
    return study


@pytest.fixture(scope="module")
def driver():
    """A headless browser; none of its pages has said anything yet."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for option in (*OPTIONS.split(), f"--user-data-dir={profile}"):
            options.add_argument(option)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        yield driver
        driver.quit()
