"""Races with random faults, one after the other for as long as it is told, and what came of them.

    python -m tests.reliability.soak --minutes 60 --seed 0 --output benchmarks/results/soak.json
    python -m tests.reliability.soak --seed 0 --race 17     plays one of them again

The summary is written after each race. The exit status says whether all has held; of a race that
failed, its study and what its workers said are kept below `--kept`, as the summary calls it.
"""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import optuna
from optuna.storages import InMemoryStorage

from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from tests.reliability import faults
from tests.reliability.cells import complaints, play, to_the_end
from tests.reliability.places import PLACES
from tests.reliability.soak.leaks import Watch
from tests.reliability.soak.summary import summary
from tests.reliability.workers import OPTUNA, SAMPLERS, STUDY, open_storage, run

MEMORY = "memory"
OURS = [name for name in SAMPLERS if name != OPTUNA]
_PACKAGES = ("optuna", "sqlalchemy", "psycopg", "redis", "grpcio")
_LONGEST = 300.0  # seconds of a race; a journal's lock that a killed worker left takes 30 of them
_LATEST = 12.0  # seconds until a fault begins, at most
_HOUR = 3600


@dataclass(frozen=True)
class Race:
    """What is played, drawn from the seed of all and the number of this one."""

    number: int
    storage: str
    sampler: str
    workers: int
    pause: float  # seconds of a trial
    heartbeat: bool  # Optuna's, with lost trials made anew
    limited: bool  # trials in processes that are ended at a limit
    faults: tuple[str, ...]
    moments: tuple[float, ...]  # seconds before each fault, after the one before it
    seed: int


def draw(seed, number, storages, may_mount):
    rng = random.Random(f"{seed} {number}")
    storage = rng.choice([MEMORY, *storages])
    possible = [] if storage == MEMORY else [fault.__name__ for fault in faults.EVERYWHERE]
    possible += [fault.__name__ for fault in faults.OF_STORAGE.get(storage, ())]
    if storage != MEMORY and faults.clock_library() is not None:
        possible += ["clock_set_back", "clock_set_forward"]
    if not may_mount:
        possible = [name for name in possible if "disk" not in name]
    chosen = rng.sample(possible, min(len(possible), rng.choice([1, 1, 2, 3])))
    return Race(
        number=number,
        storage=storage,
        sampler=rng.choice(OURS),
        workers=rng.randint(2, 6),
        pause=round(rng.uniform(0.02, 0.6), 2) if storage != MEMORY else 0.005,
        heartbeat=storage in ("SQLite", "PostgreSQL") and rng.random() < 0.3,
        limited=storage != MEMORY and rng.random() < 0.2,
        faults=tuple(chosen),
        moments=tuple(round(rng.uniform(0.0, _LATEST / len(chosen)), 1) for _ in chosen),
        seed=rng.randrange(2**31),
    )


def play_race(race, place, folder):
    """The race's figures; see `cells.play`."""
    options = {"seed": race.seed}
    if race.storage == MEMORY:
        began = time.monotonic()
        storage = InMemoryStorage()
        run(storage, race.sampler, race.pause, folder, jobs=race.workers, options=options)
        found = to_the_end(storage, race.sampler, folder, **options)
        return found | {"workers_lost": 0, "seconds": round(time.monotonic() - began, 1)}
    if any("lease" in name for name in race.faults):
        options["lease"] = faults.LEASE
    clock = faults.Clock(folder)
    scripts = {"clock_set_back": clock.set_by(-_HOUR), "clock_set_forward": clock.set_by(_HOUR)}
    steps = [
        scripts[name] if name in scripts else getattr(faults, name)(place) for name in race.faults
    ]
    return play(
        f"heartbeat:{place.url}" if race.heartbeat else place.url,
        race.sampler,
        folder,
        pause=race.pause,
        limit=30.0 if race.limited else None,
        fault=faults.one_after_the_other(*zip(race.moments, steps, strict=True)),
        environment=clock.environment if scripts.keys() & set(race.faults) else None,
        n=race.workers,
        longest=_LONGEST,
        **options,
    )


def outcome(race, servers, folder):
    """What was played and what came of it; what failed is kept in the folder."""
    try:
        with _place(race, servers, folder) as place:
            found = _judged(race, place, folder)
            if place is not None and (found["wrong"] or not found["right"]):
                _keep(place.url, folder)
    except Exception as error:  # of a server, when it began or ended; the others are to be played
        found = {"wrong": [_in_words(error)]}
    return asdict(race) | found


@contextlib.contextmanager
def _place(race, servers, folder):
    if race.storage == MEMORY:
        yield None
        return
    place = PLACES[race.storage](servers, folder)
    try:
        if race.storage == "journal file":
            place.mount()
        yield place
    finally:
        place.close()


def _judged(race, place, folder):
    """The race's figures, and what is wrong with them."""
    try:
        found = play_race(race, place, folder)
    except Exception as error:
        return {"wrong": [_in_words(error)], "right": False}
    wrong = complaints(found, race.sampler)
    if found["left_running"] > found["workers_lost"]:
        wrong.append("more trials were left running than workers were lost")
    return found | {"wrong": wrong, "locks_left": len(list(folder.rglob("*.lock")))}


def _in_words(error):
    return f"{type(error).__name__}: {error}"


def _keep(url, folder):
    """Copy the study to where it stays when its server is gone."""
    with contextlib.suppress(Exception):
        optuna.copy_study(
            from_study_name=STUDY,
            from_storage=open_storage(url),
            to_storage=f"sqlite:///{folder / 'kept.db'}",
        )


def soak(seed, numbers, until, output, kept):
    """Play races until it is time to stop; return whether all has held."""
    servers, played, began = {}, [], time.monotonic()
    storages = [name for name, kind in PLACES.items() if not kind.missing()]
    arguments = ["--minutes", f"{until / 60:g}", "--seed", str(seed)]
    with contextlib.ExitStack() as opened:
        work = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="mfhpo-soak-")))
        opened.callback(lambda: [server.close() for server in servers.values()])
        may_mount = _may_mount(servers, work)
        for name in {"PostgreSQL", "journal on Redis"} & set(storages):
            PLACES[name](servers, work).close()  # so that they are there before the watch
        watch = opened.enter_context(Watch(work / "temporary"))
        for number in numbers:
            if time.monotonic() - began >= until:
                break
            race = draw(seed, number, storages, may_mount)
            folder = work / f"race-{number}"
            folder.mkdir()
            found = outcome(race, servers, folder)
            if found["wrong"] or not found.get("right"):
                found["kept"] = folder.name
                shutil.copytree(folder, kept / folder.name, dirs_exist_ok=True)
            shutil.rmtree(folder)
            played.append(found | {"left": watch.look()})
            report = summary(played, time.monotonic() - began)
            made = provenance("tests.reliability.soak", arguments, *_PACKAGES)
            write(output, as_json({**made, **report}))
            progress(_line(found))
    return bool(played) and report["holds"]


def _may_mount(servers, folder):
    place = PLACES["journal file"](servers, folder)
    reason = place.mount()
    if reason:
        progress(f"no disk is filled: {reason}")
    place.close()
    return not reason


def _line(found):
    words = [
        f"{found['number']:4d}",
        f"{found['storage']}, {found['sampler']}, {found['workers']} workers,",
        f"{' + '.join(found['faults']).replace('_', ' ') or 'no fault'}:",
        f"{found.get('values', '?')} values in {found.get('seconds', '?')} s",
        "; ".join(found["wrong"]),
        "" if found.get("right") else "the answer is wrong",
        str(found.get("kept", "")),
    ]
    return " ".join(filter(None, words))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--race", type=int, help="play this one alone")
    parser.add_argument("--output", type=Path, default=Path("build/soak/summary.json"))
    parser.add_argument("--kept", type=Path, default=Path("build/soak"), help="of what failed")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    numbers = range(10**6) if options.race is None else [options.race]
    try:
        held = soak(options.seed, numbers, 60.0 * options.minutes, options.output, options.kept)
    except KeyboardInterrupt:
        progress(f"interrupted; what has been played is in {options.output}")
        return 130
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
