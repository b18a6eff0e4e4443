"""Many races in a few figures."""

from collections import Counter

from scipy.stats import binom

DELTA = 0.05  # of the samplers
_UNLIKELY = 1e-3  # of so many wrong answers, if each is wrong with probability DELTA
# What may be more after the last race than after a quarter of them.
_GROWTH = {"descriptors": 5, "threads": 0, "processes": 0, "temporary_files": 0}
# The first races import what others have, too. SQLAlchemy keeps up to 0.25 MB of each database that
# a process opens, and a race opens some.
_MEGABYTES, _MEGABYTES_OF_A_RACE = 50, 0.5


def summary(played, seconds):
    """What came of the races so far, first what is to be seen at a glance."""
    ended = [race for race in played if "values" in race]
    values = sum(race["values"] for race in ended)
    wasted = sum(race.get("wasted", 0) for race in ended)
    wrong = [race for race in ended if not race["right"]]
    failures = [race for race in played if race["wrong"]]
    leaks = _leaks([race["left"] for race in played])
    holds = {
        "no race has failed": not failures,
        "no more answers are wrong than delta allows": _is_allowed(len(wrong), len(ended)),
        "nothing leaks": not any(leak["grows"] for leak in leaks.values()),
    }
    slowest = max(ended, key=lambda race: race["seconds"], default=None)
    return {
        "holds": all(holds.values()),
        "what_must_hold": holds,
        "minutes": round(seconds / 60, 1),
        "races": len(played),
        "values": values,
        "values_lost": sum(race["values_lost"] for race in ended),
        "wasted": wasted,
        "workers_lost": sum(race["workers_lost"] for race in ended),
        "trials_left_running": sum(race["left_running"] for race in ended),
        "locks_left": sum(race.get("locks_left", 0) for race in ended),
        "went_on": sum(race["went_on"] > 0 for race in ended),
        "wrong_answers": len(wrong),
        "slowest": slowest and _in_short(slowest),
        "leaks": leaks,
        "races_of": {
            "storage": _counts(race["storage"] for race in played),
            "sampler": _counts(race["sampler"] for race in played),
            "fault": _counts(fault for race in played for fault in race["faults"]),
            "more": _counts(
                word for race in played for word in ("heartbeat", "limited") if race[word]
            ),
        },
        "wrong_answer": [_in_short(race) for race in wrong],
        "failures": failures,
    }


def _is_allowed(wrong, answers):
    return bool(binom.sf(wrong - 1, answers, DELTA) >= _UNLIKELY)


def _leaks(left):
    """Each figure after a quarter of the races and after the last one."""
    quarter = len(left) // 4
    early, last = left[quarter], left[-1]
    megabytes = _MEGABYTES + _MEGABYTES_OF_A_RACE * (len(left) - quarter)
    growth = {"megabytes": megabytes, **_GROWTH}
    return {
        name: {
            "early": early[name],
            "end": last[name],
            "grows": last[name] - early[name] > most,
        }
        for name, most in growth.items()
    }


def _counts(words):
    return dict(sorted(Counter(words).items()))


def _in_short(race):
    names = ("number", "storage", "sampler", "workers", "faults", "values", "seconds", "kept")
    return {name: race[name] for name in names if name in race}
