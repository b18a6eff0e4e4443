"""Workers that are killed or frozen, and storages that go away, in the middle of a race."""

import glob

import pytest

from tests.reliability.cells import check, play
from tests.reliability.workers import OPTUNA

pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]

PAUSE = 0.7  # seconds of a trial, so that a race takes several times that of a fault
BOTH = ["IISESampler", OPTUNA]
_KILLS = 5


def kill_one_after_the_other(place):
    def script(crew):
        for _ in range(_KILLS):
            crew.kill_one()
            yield 3.0

    return script


def kill_all_twice(place):
    def script(crew):
        for _ in range(2):
            crew.kill_all()
            yield 6.0

    return script


def crash_and_restart(place):
    def script(crew):
        place.crash()
        place.server.start()
        yield 0.0

    return script


def stop_for_20_seconds(place):
    def script(crew):
        place.server.stop()
        yield 20.0
        place.server.start()

    return script


def lock_for_20_seconds(place):
    def script(crew):
        unlock = place.lock()
        yield 20.0
        unlock()

    return script


def cut_for_10_seconds(place):
    def script(crew):
        place.proxy.cut()
        yield 10.0
        place.proxy.mend()

    return script


def fill_the_disk_for_5_seconds(place):
    reason = place.mount()
    if reason:
        pytest.skip(reason)

    def script(crew):
        empty = place.fill()
        yield 5.0
        empty()
        yield 2.0  # now somebody has written behind what the full disk has cut off
        crew.kill_all()
        place.mend()

    return script


def freeze_one_past_its_lease(place):
    def script(crew):
        go_on = crew.freeze_one()
        yield 6.0
        go_on()

    return script


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
    lease = {"lease": 3.0} if fault is freeze_one_past_its_lease else {}
    found = play(place.url, name, tmp_path, pause=PAUSE, fault=fault(place), **lease)
    kind = request.node.callspec.params["place"]
    words = fault.__name__.replace("_", " ")
    results.append({"storage": kind, "sampler": name, "fault": words} | found)
    assert found["values_before"] < found["values_noted"]
    check(found, name)


_LIBRARIES = ["/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1"]


@pytest.mark.parametrize("name", [*BOTH, "RCUCBSampler"])
@pytest.mark.parametrize("place", ["SQLite"], indirect=True)
def test_a_clock_that_is_set_back(place, name, tmp_path, results):
    library = next((file for pattern in _LIBRARIES for file in glob.glob(pattern)), None)
    if library is None:
        pytest.skip("libfaketime is not installed (Debian: apt install faketime)")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }

    def set_back_by_an_hour(crew):
        clock.write_text("-3600")
        yield 0.0

    found = play(
        place.url,
        name,
        tmp_path,
        pause=PAUSE,
        fault=set_back_by_an_hour,
        environment=environment,
        n=4,
    )
    results.append({"storage": "SQLite", "sampler": name, "fault": "clock set back"} | found)
    assert found["values_before"] < found["values_noted"]
    check(found, name)
