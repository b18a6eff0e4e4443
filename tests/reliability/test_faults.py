"""Workers that are killed or frozen, and storages that go away, in the middle of a race."""

import pytest

from tests.reliability.cells import check, play
from tests.reliability.faults import (
    LEASE,
    Clock,
    clock_library,
    crash_and_restart,
    cut_for_10_seconds,
    fill_the_disk_for_5_seconds,
    freeze_one_past_its_lease,
    kill_all_twice,
    kill_one_after_the_other,
    lock_for_20_seconds,
    stop_for_20_seconds,
)
from tests.reliability.workers import OPTUNA

pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]

PAUSE = 0.7  # seconds of a trial, so that a race takes several times that of a fault
BOTH = ["IISESampler", OPTUNA]


def cells(*names):
    for place, fault in (
        ("PostgreSQL", kill_one_after_the_other),
        ("SQLite", kill_one_after_the_other),
        ("journal file", kill_one_after_the_other),
        ("gRPC proxy", kill_one_after_the_other),
        ("journal on Redis", kill_all_twice),
        ("PostgreSQL", crash_and_restart),
        ("PostgreSQL", stop_for_20_seconds),
        ("SQLite", lock_for_20_seconds),
        ("gRPC proxy", cut_for_10_seconds),
        ("journal file", fill_the_disk_for_5_seconds),
        ("journal on Redis", freeze_one_past_its_lease),
    ):
        for name in names:
            yield pytest.param(place, fault, name, id=f"{place}-{fault.__name__}-{name}")


@pytest.mark.parametrize(("place", "fault", "name"), list(cells(*BOTH)), indirect=["place"])
def test_a_fault(place, fault, name, tmp_path, results, request):
    lease = {"lease": LEASE} if fault is freeze_one_past_its_lease else {}
    if fault is fill_the_disk_for_5_seconds:
        reason = place.mount()
        if reason:
            pytest.skip(reason)
    found = play(place.url, name, tmp_path, pause=PAUSE, fault=fault(place), **lease)
    kind = request.node.callspec.params["place"]
    words = fault.__name__.replace("_", " ")
    results.append({"storage": kind, "sampler": name, "fault": words} | found)
    assert found["values_before"] < found["values_noted"]
    check(found, name)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("place", ["PostgreSQL", "SQLite"], indirect=True)
def test_kills_with_trials_made_anew(place, name, tmp_path, results, request):
    """Optuna's heartbeat, and its callback that queues a lost trial's parameters once more."""
    fault = kill_all_twice(place)
    found = play(f"heartbeat:{place.url}", name, tmp_path, pause=PAUSE, fault=fault, n=4)
    kind = request.node.callspec.params["place"]
    words = "kill all twice, trials made anew"
    results.append({"storage": kind, "sampler": name, "fault": words} | found)
    assert found["values_before"] < found["values_noted"]
    assert found["made_anew"] > 0
    assert found["disagreements"] == 0
    check(found, name)


@pytest.mark.parametrize("name", [*BOTH, "RCUCBSampler"])
@pytest.mark.parametrize(("words", "seconds"), [("set back", -3600), ("set forward", 3600)])
@pytest.mark.parametrize("place", ["SQLite"], indirect=True)
def test_a_clock_that_is_set(place, words, seconds, name, tmp_path, results):
    if clock_library() is None:
        pytest.skip("libfaketime is not installed (Debian: apt install faketime)")
    clock = Clock(tmp_path)
    found = play(
        place.url,
        name,
        tmp_path,
        pause=0.3,
        fault=clock.set_by(seconds),
        environment=clock.environment,
        n=4,
    )
    results.append({"storage": "SQLite", "sampler": name, "fault": f"clock {words}"} | found)
    assert found["values_before"] < found["values_noted"]
    check(found, name)
