"""Figures of studies that were loaded from a storage, with Optuna's default sampler then."""

from concurrent.futures import ThreadPoolExecutor

import optuna
from optuna.samplers import RandomSampler

from mfhpo_optuna import SearchSampler, certify
from mfhpo_optuna.visualization import (
    games,
    plot_dissatisfaction,
    plot_equilibrium,
    plot_gain,
    plot_race,
)
from mfhpo_optuna.visualization.reading import record_of
from tests.optuna.games.nash_games import on_a_grid, play
from tests.optuna.samplers.time_limits.timed import make, run


def loaded(study):
    return optuna.load_study(study_name=study.study_name, storage=study._storage)


def test_the_study_names_its_sampler(certified, finished, monkeypatch):
    monkeypatch.setattr(games, "_STAGES", 2)
    game = play(on_a_grid, budget=5)
    for plot, study in (
        (plot_race, certified),
        (plot_race, finished),
        (plot_gain, run(make(), n_trials=30)),
        (plot_equilibrium, game),
        (plot_dissatisfaction, game),
    ):
        again = loaded(study)
        assert type(again.sampler) is not type(study.sampler)
        assert plot(again) == plot(study)


def test_a_sampler_that_has_not_run_the_study_does_not_read_it(certified):
    again = loaded(certified)
    again.sampler = SearchSampler("epochs", budget=60)
    assert plot_race(again) == plot_race(certified)


def test_a_picture_does_not_wait_for_workers(certified):
    with certified.sampler._studies.lock, ThreadPoolExecutor() as pool:
        assert pool.submit(plot_race, certified).result(timeout=60) == plot_race(certified)


def noisy(trial):
    return trial.suggest_float("x", -1, 1) ** 2 + 0.01 * (trial.number % 7)


def test_a_certificate_about_a_deleted_study_is_not_taken_for_that_of_its_namesake():
    name, storage = "plain", optuna.storages.InMemoryStorage()
    for is_certified in (True, False):
        study = optuna.create_study(study_name=name, storage=storage, sampler=RandomSampler(seed=0))
        study.optimize(noisy, n_trials=6)
        assert record_of(study) is None
        if is_certified:
            certify(study, noisy, top=2, budget=8, progress=False)
            optuna.delete_study(study_name=name, storage=storage)
