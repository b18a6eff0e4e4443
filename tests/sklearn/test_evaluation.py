import time

import joblib

from mfhpo.experiment import Experiment, RaceSettings
from mfhpo_sklearn.evaluation import Evaluation, fits


def test_what_ends_first_is_not_told_before_what_was_begun_earlier(monkeypatch):
    def evaluated(wait):
        time.sleep(wait)
        return Evaluation(1.0 - wait, wait, wait, 0.0)

    monkeypatch.setattr("mfhpo_sklearn.evaluation.evaluate", evaluated)
    experiment = Experiment(RaceSettings.of([{"wait": 0.2}, {"wait": 0.0}], budget=8))
    with joblib.parallel_config(backend="threading"):
        found = fits(experiment, lambda wanted: (wanted.configuration["wait"],), 2, None)
        assert [wanted.configuration["wait"] for wanted, _ in found][:2] == [0.2, 0.0]
