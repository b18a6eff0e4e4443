import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler
from mfhpo_optuna.study.trials import under_way
from mfhpo_optuna.study.trials.under_way import TrialNews
from tests.optuna.samplers.races import bowl

IN_PLACE = ["memory", "journal", "database"]  # where nothing goes through all trials


@pytest.fixture(params=IN_PLACE)
def studies(request, tmp_path):
    """One study, as two processes see it."""
    memory = InMemoryStorage()
    make = {
        "memory": lambda: memory,
        "journal": lambda: JournalStorage(JournalFileBackend(str(tmp_path / "study.log"))),
        "database": lambda: f"sqlite:///{tmp_path / 'study.db'}",
    }[request.param]
    name = {"study_name": "shared", "load_if_exists": True}
    return [optuna.create_study(storage=make(), **name) for _ in range(2)]


def numbers(news):
    return [trial.number for trial in news]


def check_reading(here, elsewhere):
    news = TrialNews()
    assert news.read(here) == []
    first, second = here.ask(), elsewhere.ask()
    elsewhere.enqueue_trial({"x": 0.5})
    assert numbers(news.read(here)) == [0, 1, 2]
    assert numbers(news.read(here)) == [0, 1, 2]
    second.set_user_attr("note", "seen")
    elsewhere.tell(second, 1.0)
    _, seen, waiting = news.read(here)
    assert (seen.state, seen.value, seen.user_attrs) == (TrialState.COMPLETE, 1.0, {"note": "seen"})
    assert waiting.state == TrialState.WAITING
    assert numbers(news.read(here)) == [0, 2]
    here.tell(first, 0.0)
    assert numbers(news.read(here)) == [0, 2]
    assert numbers(news.read(here)) == [2]
    assert [elsewhere.ask().number for _ in range(2)] == [2, 3]
    assert [trial.state for trial in news.read(here)] == [TrialState.RUNNING] * 2


def test_each_trial_is_read_while_it_is_open_and_once_when_it_has_ended(studies):
    check_reading(*studies)


def test_a_storage_that_reads_in_its_own_way_is_asked_for_all_trials():
    class Counting(InMemoryStorage):
        reads = 0

        def get_all_trials(self, *args, **options):
            Counting.reads += 1
            return super().get_all_trials(*args, **options)

    study = optuna.create_study(storage=Counting())
    check_reading(study, study)
    assert Counting.reads > 6


def test_a_storage_that_is_made_otherwise_is_asked_for_all_trials(studies, monkeypatch):
    """A later version of Optuna's may lack what is no public part of this one."""
    in_place = under_way._in_place

    def lacks_a_part(*args):
        in_place(*args)
        raise AttributeError

    monkeypatch.setattr(under_way, "_in_place", lacks_a_part)
    check_reading(*studies)


def test_no_reading_goes_through_all_trials(studies, monkeypatch):
    here, elsewhere = studies
    elsewhere.optimize(lambda trial: trial.number, n_trials=3)
    news = TrialNews()
    for study in studies:
        monkeypatch.setattr(study._storage, "get_all_trials", None)
    assert numbers(news.read(here)) == [0, 1, 2]
    assert news.read(here) == []


def test_a_study_that_was_made_again_is_known_by_the_trials_that_it_lacks(studies):
    here, elsewhere = studies
    elsewhere.optimize(lambda trial: trial.number, n_trials=3)
    news = TrialNews()
    news.read(here)
    again = optuna.create_study()
    again.optimize(lambda trial: trial.number, n_trials=2)
    assert news.read(again) is None
    again.optimize(lambda trial: trial.number, n_trials=2)
    assert numbers(news.read(again)) == [3]


def test_a_damaged_journal_is_no_study_without_news(tmp_path):
    path = tmp_path / "study.log"
    study = optuna.create_study(storage=JournalStorage(JournalFileBackend(str(path))))
    with path.open("a") as file:
        file.write('{"op_code": 6, "worker_id": "another"}\n')
    with pytest.raises(KeyError):
        TrialNews().read(study)


def test_a_trial_that_has_ended_is_under_way_no_longer_though_an_answer_so_far_was_added():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=4, epsilon=0.0, seed=0))
    study.optimize(bowl, n_trials=30)
    known = study.sampler.known(study)
    assert known.certificates, "each answer reads the study before the trial's end is stored"
    assert not known.under_way.claims
