import pickle
import sys
from functools import partial

import optuna
import pytest

from benchmarks.overhead import objective
from benchmarks.postgres import Postgres, postgres_programs
from benchmarks.scale.contestants import CLOCKED
from benchmarks.scale.engine import SILENT, history, one_more, settings
from benchmarks.scale.history import played, repeated
from benchmarks.scale.long_studies import Case, measure
from benchmarks.scale.processes import LONGEST, SHORTEST, crew
from benchmarks.scale.storages import STUDY, fill, opened
from mfhpo.experiment import Experiment

needs_postgres = pytest.mark.skipif(
    postgres_programs() is None, reason="PostgreSQL is not installed"
)


@pytest.fixture(scope="module")
def searched():
    return played("SearchSampler", 40)


@pytest.fixture
def postgres():
    server = Postgres()
    yield server
    server.close()


def arm_of(trial):
    return trial.user_attrs["mfhpo:pull"]["arm"]


class TestHistory:
    def test_goes_on_with_other_configurations(self, searched):
        trials = list(repeated(searched, 100, others=True))
        assert [trial.number for trial in trials[40:]] == list(range(40, 100))
        first, later = trials[:40], trials[40:80]
        assert {arm_of(trial) for trial in first}.isdisjoint(map(arm_of, later))
        for before, after in zip(first, later, strict=True):
            assert before.params["fidelity"] == after.params["fidelity"]
            assert before.params["x0"] != after.params["x0"]
            assert before.datetime_complete < after.datetime_complete
        params = {}
        for trial in later:
            known = params.setdefault(arm_of(trial), trial.params["x0"])
            assert known == trial.params["x0"]

    def test_goes_on_with_the_same_arms(self):
        trials = list(repeated(played("IISESampler", 20), 50, others=False))
        for before, after in zip(trials[:20], trials[20:40], strict=True):
            assert arm_of(before) == arm_of(after)
            assert before.params == after.params
            assert before.value != after.value

    def test_is_a_history_that_the_sampler_goes_on_with(self, searched):
        study = optuna.create_study(study_name=STUDY, sampler=CLOCKED["SearchSampler"](0))
        study.add_trials(repeated(searched, 100, others=True))
        study.optimize(objective, n_trials=1)
        counted = study.sampler.recommendation(study).trials
        assert counted == 101


class TestFill:
    def same(self, place, trials):
        fill(place, trials)
        found = optuna.load_study(study_name=STUDY, storage=opened(place)).trials
        assert len(found) == len(trials)
        for given, read in zip(trials, found, strict=True):
            for name in ("number", "state", "value", "params", "distributions", "user_attrs"):
                assert getattr(given, name) == getattr(read, name)
            assert given.system_attrs == read.system_attrs
            assert given.datetime_start == read.datetime_start
            assert given.datetime_complete == read.datetime_complete

    def test_a_journal(self, searched, tmp_path):
        self.same(str(tmp_path / "study.log"), list(repeated(searched, 60, others=True)))

    @needs_postgres
    def test_postgres_which_goes_on_numbering(self, searched, postgres):
        place = postgres.url()
        self.same(place, list(repeated(searched, 60, others=True)))
        study = optuna.load_study(study_name=STUDY, storage=opened(place))
        assert study.ask().number == 60
        assert postgres.cpu_seconds() > 0.0


def test_a_study_is_gone_on_with(searched, tmp_path):
    block, place = tmp_path / "block", str(tmp_path / "study.log")
    block.write_bytes(pickle.dumps(searched))
    fill(place, repeated(searched, 60, others=True))
    found = measure(Case("SearchSampler", "somewhere", place, 60, block), window=3)
    assert (found.sampler, found.storage, found.trials, found.window) == (
        "SearchSampler",
        "somewhere",
        60,
        3,
    )
    assert 0.0 < found.own_cpu_ms[0] <= found.own_cpu_ms[1]
    assert found.first_cpu_seconds > 0.0
    assert 0.0 < found.mib_before <= found.mib_peak


def at_once(what, do):
    return do()


def read(experiment, events):
    for event in events:
        experiment.apply(event)
    return experiment.history()


class TestEngine:
    def calls(self, do):
        """How many functions of Python are called."""
        counted = []
        sys.setprofile(lambda frame, event, arg: counted.append(event == "call"))
        try:
            do()
        finally:
            sys.setprofile(None)
        return sum(counted)

    def test_one_more_event_and_choice_take_as_long_after_many_as_after_few(self):
        found = []
        for evaluations in (500, 5000):
            experiment = Experiment.replay(settings(SILENT), history(evaluations))
            one_more(experiment, at_once)
            found.append(self.calls(partial(one_more, experiment, at_once)))
        few, many = found
        assert many < 1.2 * few
        assert few < 1000

    def test_a_replay_takes_as_many_calls_for_each_event(self):
        counts = []
        for evaluations in (500, 2000):
            events, experiment = list(history(evaluations)), Experiment(settings(SILENT))
            counts.append(self.calls(partial(read, experiment, events)) / len(events))
        assert counts[1] < 1.2 * counts[0]


@needs_postgres
@pytest.mark.slow
def test_a_crew_shares_a_study(postgres):
    found = crew(postgres, "IISESampler", 2, 2.0, 0)
    assert found.workers == 2
    assert found.possible == pytest.approx(4.0 / (SHORTEST + LONGEST))
    assert 0.0 < found.trials_per_second < 2.0 / SHORTEST
    assert found.worker_cpu_ms > 0.0
    assert found.database_cpu_ms > 0.0
