"""The searchers in real experiments: failing trials, a driver that is killed, the answer stored."""

import math
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import ray
from pyarrow.fs import LocalFileSystem
from ray import tune

from mfhpo import IISE, Bias, Fidelity, Observation, Problem, Pull, SubGaussian
from mfhpo.censored import Linear
from mfhpo.experiment import Begun, Ended
from mfhpo.racing.race import ArmWithdrawnWarning
from mfhpo_ray import IISESearch, RCUCBSearch, recommendation
from mfhpo_ray.experiment.journal import Journal, events_in
from tests.ray.experiments import kill_driver, tuner_of
from tests.ray.searchers import interrupted
from tests.ray.searchers.searching import ARMS, EPOCHS, bowl, make

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("ray_cluster"),
]


def _play(config):
    if config["model"] == "hangs":
        time.sleep(60)
    time.sleep(0.1)
    tune.report({"score": 0.8})


def test_limits_are_kept_and_learned_from(tmp_path):
    options = {"cost": Linear(0.1), "reward_range": (0, 1), "horizon": 8, "seed": 0}
    models = [{"model": "quick"}, {"model": "hangs"}]
    search = RCUCBSearch(models, [0.5, 1.0], metric="score", mode="max", **options)
    results = tuner_of(_play, tmp_path, search_alg=search, max_concurrent_trials=2).fit()
    answer = recommendation(results)
    assert results.num_errors == 0
    assert (answer.config, answer.limit) == ({"model": "quick"}, 0.5)
    assert answer.trials == len(results) >= 8  # those that still ran at the horizon count, too
    stopped = [result for result in results if "mfhpo/censored_at" in result.metrics]
    assert {result.config["model"] for result in stopped} == {"hangs"}
    for result in stopped:
        assert result.metrics["mfhpo/censored_at"] == result.config["time_limit_s"]
    assert answer.censored == len(stopped) / len(results)


def _train(config):
    if config["fate"] == "crash":
        raise RuntimeError("on purpose")
    tune.report({"loss": math.nan if config["fate"] == "nan" else bowl(config)})


class _Noting(IISESearch):
    """Notes what it suggests: the results of processes that are used again may not show that."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.suggested = []
        self.suggested_too_late = 0
        self.running_at_the_end, self.waiting_at_the_end = 0, 0

    def suggest(self, trial_id):
        was_over = self.finished
        config = super().suggest(trial_id)
        if isinstance(config, dict):
            self.suggested.append(config)
            self.suggested_too_late += was_over
        return config

    def on_trial_complete(self, trial_id, result=None, error=False):
        was_over = self.finished
        super().on_trial_complete(trial_id, result, error)
        if self.finished and not was_over:
            experiment = self.evaluations.log.experiment
            ended = sum(isinstance(event, Ended) for event in experiment.events)
            self.running_at_the_end = len(experiment.open)
            self.waiting_at_the_end = ended - len(experiment.history())


def test_a_race_with_arms_that_fail_ends_by_itself_with_a_certificate(tmp_path):
    fine = [{"x": x, "fate": "fine"} for x in (-0.9, 0.0)]
    arms = [*fine, {"x": 0.0, "fate": "nan"}, {"x": 0.0, "fate": "crash"}]
    known = {"sigma": 0.05, "bias": [0.1, 0.0], "epsilon": 0.1, "max_failures": 2, "seed": 0}
    search = _Noting(Fidelity("epochs", levels=[1, 9]), arms, **known)
    options = {"metric": "loss", "mode": "min", "search_alg": search, "max_concurrent_trials": 3}
    space = {"data": "constant"}
    tuner = tuner_of(_train, tmp_path, space=space, name="failing", **options)
    with pytest.warns(ArmWithdrawnWarning, match="leaves the race: 2 of 2 pulls"):
        results = tuner.fit()
    answer = search.recommendation()
    assert (answer.certified, answer.compared) == (True, 2)
    assert answer.config == {"x": 0.0, "fate": "fine"}
    assert len(search.suggested) == len(results)
    fates = Counter(config["fate"] for config in search.suggested)
    # Failures count in their order: while one of the first two takes long, as a process that
    # crashes may, ten others may wait for it, and three be under way.
    assert 2 <= results.num_errors <= fates["crash"] <= 2 + 10 + 3
    assert 2 <= fates["nan"] <= 2 + 10 + 3
    # They ran when the race ended, and were stopped, or waited for an earlier one of their arm.
    assert search.running_at_the_end <= 2
    surplus = fates["fine"] - answer.trials
    assert 0 <= surplus <= search.running_at_the_end + search.waiting_at_the_end
    assert search.suggested_too_late == 0
    assert all(result.config["data"] == "constant" for result in results)
    seeds = [config["seed"] for config in search.suggested]
    assert len(set(seeds)) == len(seeds)
    # The answer from the storage alone.
    stored = recommendation(tune.Tuner.restore(str(tmp_path / "failing"), _train).get_results())
    assert (stored.arm, stored.mean, stored.interval) == (answer.arm, answer.mean, answer.interval)
    assert stored.certified
    assert stored.assumptions == answer.assumptions
    assert stored == recommendation(results)
    assert results.get_best_result().metrics["loss"] < stored.mean  # it was only lucky


def _mended(config):
    if config["x"] == ARMS[0]["x"] and not Path(config["mended"]).exists():
        raise RuntimeError("on purpose")
    tune.report({"loss": bowl(config)})


@pytest.mark.parametrize("how", ["restart_errored", "resume_errored"])
def test_what_failed_is_evaluated_again_after_a_restart(how, tmp_path):
    mended = tmp_path / "mended"
    search = make(arms=ARMS[:2], max_failures=9, bias=None, epsilon=0.0)
    options = {"search_alg": search, "num_samples": 6, "max_concurrent_trials": 2}
    space = {"mended": str(mended)}
    results = tuner_of(_mended, tmp_path, space=space, name="again", **options).fit()
    n_failed = results.num_errors
    assert recommendation(results).failures == n_failed > 0
    mended.touch()
    tuner = tune.Tuner.restore(str(tmp_path / "again"), _mended, **{how: True})
    answer = recommendation(tuner.fit())
    assert (answer.failures, answer.trials) == (0, 6)


def test_nothing_is_lost_when_the_driver_is_killed(tmp_path):
    address = ray.get_runtime_context().gcs_address
    experiment = tmp_path / "interrupted"
    kill_driver(
        [sys.executable, "-m", "tests.ray.searchers.interrupted", address, str(tmp_path)],
        lambda: len(_ends_in(experiment)) >= 12,
        env={**os.environ, "TUNE_GLOBAL_CHECKPOINT_S": "3600"},  # Ray takes no later snapshot
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    before = _ends_in(experiment)
    assert len(before) >= 12
    results = tune.Tuner.restore(str(experiment), interrupted.train).fit()
    answer = recommendation(results)
    after = _ends_in(experiment)
    assert answer.certified
    assert answer.config == {"x": 0.0}
    # Every observation of the first driver is among those that the answer is of, once.
    assert {name: after[name] for name in before} == before
    assert answer.trials == len(after)
    # The answer is that of a policy that was told all this without a break.
    policy = _bare_policy(_journalled(experiment))
    expected = policy.recommend()
    assert policy.finished
    assert answer.survivors == expected.survivors
    # Sums in another order differ in their last digits.
    assert -answer.mean == pytest.approx(expected.mean)
    assert [-end for end in reversed(answer.interval)] == pytest.approx(list(expected.interval))
    # What had been observed was not evaluated again: only what was under way was.
    evaluations = (tmp_path / interrupted.LOG).read_text().splitlines()
    again = Counter(evaluations)
    assert sum(count - 1 for count in again.values()) <= 3
    # Nor is any trial missing or twice in the results, but for those that Ray itself forgot.
    assert len({result.path for result in results}) == len(results)


def _bare_policy(events):
    problem = Problem(
        len(ARMS), EPOCHS.levels, bias=Bias.max(0.1, 0.04, 0), noise=SubGaussian(0.05)
    )
    policy = IISE(problem, delta=0.05, epsilon=0.1, measure=10)
    begun = {event.id: event for event in events if isinstance(event, Begun)}
    ends = [event for event in events if isinstance(event, Ended)]
    latest, turns = {}, []  # one that ended before an earlier one of its kind waits for it
    for ended in sorted(ends, key=lambda ended: begun[ended.id].order):
        kind = begun[ended.id].configuration["x"], begun[ended.id].levels
        latest[kind] = max(latest.get(kind, ended.order), ended.order)
        turns.append((latest[kind], ended))
    for _, ended in sorted(turns, key=lambda turn: turn[0]):
        [level] = begun[ended.id].levels
        policy.tell(
            Pull(ARMS.index(begun[ended.id].configuration), level), Observation(-ended.value)
        )
    return policy


def _journalled(experiment):
    journals = Journal.of_runs(LocalFileSystem(), str(experiment))  # none at the beginning
    records = [record for journal in journals for record in journal.read().values()]
    return [event for record in records for event in events_in(record)]


def _ends_in(experiment):
    return {event.id: event for event in _journalled(experiment) if isinstance(event, Ended)}
