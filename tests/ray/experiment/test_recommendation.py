"""The answer of a race, as it is shown, written down and read again."""

import json
from types import SimpleNamespace

import pyarrow.fs
import pytest
from ray.tune import ResultGrid
from ray.tune.search import ConcurrencyLimiter, SearchGenerator

from mfhpo_ray import TuneRecommendation, recommendation
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import RECOMMENDATION, Journal
from tests.ray.searchers.searching import ARMS, limited, make, run


def _race(arms=ARMS):
    search = make(arms=arms)
    run(search)
    return search


def _limits(horizon=20):
    search = limited([{"x": (1, 2)}, {"x": (3, 4)}], horizon=horizon)
    for number in range(horizon):
        config = search.suggest(str(number))
        result = {"loss": 0.1 * config["x"][0], "time_total_s": 0.5}
        if config["seed"] % 4 == 0:
            result = {"mfhpo/censored_at": config["time_limit_s"]}
        search.on_trial_complete(str(number), result)
    return search


def _cut():
    search = make(epsilon=0.0)
    run(search, at_most=20)
    return search.recommendation()


ANSWERS = {
    "certified": lambda: _race().recommendation(),
    "cut short": _cut,
    "nested": lambda: _race([{"m": {"x": (x,)}, "x": x} for x in (-0.5, 0.0)]).recommendation(),
    "limits": lambda: _limits().recommendation(),
}


@pytest.mark.parametrize("answer_of", ANSWERS.values(), ids=ANSWERS.keys())
def test_writing_and_reading(answer_of):
    answer = answer_of()
    again = decode(json.loads(json.dumps(encode(answer))))
    assert type(again) is type(answer)
    # NaN is not equal to itself; the texts are.
    assert repr(again) == repr(answer)
    assert str(again) == str(answer)


def test_where_the_answer_comes_from():
    search = _race()
    answer = search.recommendation()
    assert recommendation(search) == answer
    assert recommendation(SearchGenerator(ConcurrencyLimiter(search, 2))) == answer
    scheduler = SimpleNamespace(recommendation=lambda: answer)
    assert recommendation(scheduler) is answer
    for wrong in (None, 3, "results", object()):
        with pytest.raises(TypeError, match="what must be a searcher or a scheduler"):
            recommendation(wrong)


def test_how_it_is_shown():
    answer = _race(arms=[{"net": {"x": x}, "x": x} for x in (-0.5, 0.0)]).recommendation()
    assert answer.config == {"net": {"x": 0.0}, "x": 0.0}
    assert str(answer).startswith("CERTIFIED: x=0, net/x=0")
    assert _limits().recommendation().config == {"x": (1, 2)}


class Results(ResultGrid):
    experiment_path = None
    filesystem = pyarrow.fs.LocalFileSystem()

    def __init__(self, folder):
        self.experiment_path = str(folder)


def _journal(folder, run_name="run"):
    return Journal(pyarrow.fs.LocalFileSystem(), str(folder / "mfhpo" / run_name))


def test_results_are_read_from_the_storage(tmp_path):
    earlier, later = _cut(), _race().recommendation()
    for answer, run_name in ((earlier, "2026-01-01_00-00-00"), (later, "2026-01-02_00-00-00")):
        _journal(tmp_path, run_name).write(RECOMMENDATION, {"answer": encode(answer)})
    answer = recommendation(Results(tmp_path))
    assert isinstance(answer, TuneRecommendation)
    assert answer == later


def test_results_without_an_answer_or_with_one_of_an_earlier_version(tmp_path):
    with pytest.raises(ValueError, match=r"no answer is stored in .*scheduler=search.scheduler"):
        recommendation(Results(tmp_path))
    _journal(tmp_path).write("trial", {"a": 1})
    with pytest.raises(ValueError, match="no answer is stored"):
        recommendation(Results(tmp_path))
    _journal(tmp_path).write(RECOMMENDATION, {"kind": "arm", "answer": {"arm": 0}})
    with pytest.raises(ValueError, match="is of an earlier version of mfhpo"):
        recommendation(Results(tmp_path))
