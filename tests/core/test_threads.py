import threading

import pytest

from mfhpo.games import UCBPNE, Query
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.problem import Observation, Pull
from mfhpo.racing import native
from mfhpo.racing.native import one_thread
from mfhpo.search import ModelSearch, Numeric, SearchSpace
from mfhpo.search.model.process import LevelProcess

threadpoolctl = pytest.importorskip("threadpoolctl")


@pytest.fixture(autouse=True)
def two_threads():
    """Also where the machine has but one core, or all libraries were told to use one thread."""
    with threadpoolctl.threadpool_limits(2, "blas"):
        assert counts() == {2}
        yield
        assert counts() == {2}


def counts():
    info = threadpoolctl.threadpool_info()
    return {library["num_threads"] for library in info if library["user_api"] == "blas"}


def test_inside_and_outside_and_after_an_error():
    with one_thread():
        assert counts() == {1}
        with one_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert counts() == {2}


def test_two_that_overlap():
    first_left, second_in = threading.Event(), threading.Event()
    seen = []

    def second():
        with one_thread():
            seen.append(counts())
            second_in.set()
            assert first_left.wait(10.0)

    other = threading.Thread(target=second)
    with one_thread():
        other.start()
        assert second_in.wait(10.0)
    first_left.set()
    other.join()
    assert seen == [{1}]
    assert counts() == {2}


def test_without_what_sets_them_nothing_happens(monkeypatch):
    monkeypatch.setattr(native, "_controller", lambda: None)
    with one_thread():
        assert counts() == {2}


def watched(monkeypatch, kind, name):
    seen = []
    method = getattr(kind, name)

    def spied(*arguments, **options):
        seen.append(counts())
        return method(*arguments, **options)

    monkeypatch.setattr(kind, name, spied)
    return seen


def test_a_search_keeps_to_one(monkeypatch):
    seen = watched(monkeypatch, LevelProcess, "at_target")
    search = ModelSearch(costs=(1.0,), initial=3)
    search.space = SearchSpace({"x": Numeric()})
    for arm in range(3):
        search.describe(arm, {"x": arm / 2.0})
        search.tell(Pull(arm, 0), Observation(float(arm)))
    questions = (lambda: search.ask(3), search.leader, lambda: search.contenders(2))
    for number, question in enumerate(questions):
        search.describe(3, {"x": 0.1 * number})  # or what the model said is kept
        seen.clear()
        question()
        assert set().union(*seen) == {1}


def test_a_game_keeps_to_one(monkeypatch):
    seen = watched(monkeypatch, MultiOutputGP, "_solve")
    game = UCBPNE({"row": {"x": Numeric()}, "column": {"y": Numeric()}}, costs=(1.0,), budget=20.0)
    for place in (0.1, 0.9):
        game.tell(Query({"x": place, "y": 1.0 - place}, (0, 0)), (place, -place))
    for question in (game.ask, game.recommend, lambda: game.deviations({"x": 0.2, "y": 0.4})):
        seen.clear()
        question()
        assert set().union(*seen) == {1}
