"""Eight workers on each storage: the race ends, the answer holds, no value is lost."""

import pytest
from optuna.storages import InMemoryStorage

from tests.reliability.cells import WORKERS, check, play, to_the_end
from tests.reliability.places import PLACES
from tests.reliability.workers import SAMPLERS, run

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

# Those that are quick enough for `make test`, or need no server; others have the marker `faults`.
QUICK = {("journal file", "IISESampler"), ("journal on Redis", "MFSampler")}
FILES = {"SQLite", "journal file"}


def cells():
    for place in PLACES:
        for name in SAMPLERS:
            mark = pytest.mark.slow if place in FILES else pytest.mark.faults
            marks = [] if (place, name) in QUICK else [mark]
            yield pytest.param(place, name, marks=marks, id=f"{place}-{name}")


@pytest.mark.parametrize(("place", "name"), list(cells()), indirect=["place"])
def test_processes(place, name, tmp_path, results, request):
    found = play(place.url, name, tmp_path)
    kind = request.node.callspec.params["place"]
    results.append({"storage": kind, "sampler": name, "fault": "none"} | found)
    check(found, name)


@pytest.mark.parametrize("name", SAMPLERS)
def test_threads(name, tmp_path, results):
    storage = InMemoryStorage()
    run(storage, name, 0.005, tmp_path, jobs=WORKERS)
    found = to_the_end(storage, name, tmp_path)
    results.append({"storage": "memory", "sampler": name, "fault": "none", "workers": 8} | found)
    check(found, name)
