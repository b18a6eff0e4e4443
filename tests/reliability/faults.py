"""What goes wrong in the middle of a race; each fault undoes itself, also if the race ends first.

A fault is made for a place. It is called with the workers, and yields the seconds until it goes on.
"""

import contextlib
import functools
import glob

KILLS = 5
_LIBRARIES = ["/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1"]


def fault(steps):
    """Make a fault for places of its steps, which are given the place and the workers."""
    return functools.wraps(steps)(lambda place: functools.partial(steps, place))


@fault
def kill_one_after_the_other(place, crew):
    for _ in range(KILLS):
        crew.kill_one()
        yield 3.0


@fault
def kill_all_twice(place, crew):
    for _ in range(2):
        crew.kill_all()
        yield 6.0


@fault
def crash_and_restart(place, crew):
    place.crash()
    place.server.start()
    yield 0.0


@fault
def stop_for_20_seconds(place, crew):
    place.server.stop()
    try:
        yield 20.0
    finally:
        place.server.start()


@fault
def lock_for_20_seconds(place, crew):
    unlock = place.lock()
    try:
        yield 20.0
    finally:
        unlock()


@fault
def cut_for_10_seconds(place, crew):
    place.proxy.cut()
    try:
        yield 10.0
    finally:
        place.proxy.mend()


@fault
def fill_the_disk_for_5_seconds(place, crew):
    empty = place.fill()
    try:
        try:
            yield 5.0
        finally:
            empty()
        yield 2.0  # now somebody has written behind what the full disk has cut off
    finally:
        crew.kill_all()
        place.mend()


@fault
def freeze_one_past_its_lease(place, crew):
    go_on = crew.freeze_one()
    try:
        yield 6.0
    finally:
        go_on()


LEASE = 3.0  # seconds, where a worker is frozen past it

# What fits any storage of several processes, and what fits one kind alone.
EVERYWHERE = (kill_one_after_the_other, kill_all_twice, freeze_one_past_its_lease)
OF_STORAGE = {
    "SQLite": (lock_for_20_seconds,),
    "PostgreSQL": (crash_and_restart, stop_for_20_seconds),
    "journal file": (fill_the_disk_for_5_seconds,),
    "gRPC proxy": (cut_for_10_seconds,),
}


def clock_library():
    """libfaketime's file, or None."""
    return next((file for pattern in _LIBRARIES for file in glob.glob(pattern)), None)


class Clock:
    """The workers' time of day, which may be set; their monotonic clock goes on as it should."""

    def __init__(self, folder):
        self._file = folder / "clock"
        self._file.write_text("+0")
        self.environment = {
            "LD_PRELOAD": clock_library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set_by(self, seconds):
        def script(crew):
            self._file.write_text(f"{seconds:+d}")
            yield 0.0

        return script


def one_after_the_other(*steps):
    """One fault of several, each after some seconds: pairs of seconds and a script."""

    def script(crew):
        for seconds, step in steps:
            yield seconds
            with contextlib.closing(step(crew)) as running:
                yield from running

    return script
