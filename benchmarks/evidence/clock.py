"""The search on a virtual clock, with several workers."""

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.evidence.search import GROUPS, OURS, name_of
from benchmarks.evidence.tables import only, paragraph, result, table

_RESULT = "hpo_clock"


def ranks() -> str:
    """Mean rank of every optimiser at each time, by the number of workers."""
    said = (
        f"{played()}. By mean rank, ours is first at {'; '.join(_firsts())}. Tests over the runs "
        f"leave another optimiser statistically alike at {alike()} of these {_points()} points."
    )
    return f"{_by_workers('rank', 'all tasks')}\n\n{paragraph(said)}"


def regret(group: str) -> Callable[[], str]:
    """Mean regret of every optimiser at each time on a group of tasks, by the number of workers."""
    return lambda: _by_workers("points", group)


def losses() -> str:
    """Where the search on the clock is not the first."""
    first, points = firsts()
    of_groups = [
        f"on {group} at {sum(_least(part, group) for part in _parts().values())}"
        for group in GROUPS
    ]
    workers, times_alone = most_workers()
    said = (
        f"- In [seconds, with 1 to {workers} workers](evidence/search.md"
        f"#several-workers-in-seconds), ours is first by mean rank at {first} of {points} points, "
        f"but its mean regret is the least {' and '.join(of_groups)} of them. With "
        f"{workers} it ends at {times_alone:.1f} times one worker's regret."
    )
    return paragraph(said, "  ")


def worth_of_workers() -> str:
    """Regret of the search after the same work, over that of one worker."""
    parts = _parts()
    alone = _row(parts["1"], OURS)["percent"]
    rows = []
    for workers, part in parts.items():
        regrets = _row(part, OURS)["percent"]
        ratios = [one / other for one, other in zip(regrets, alone, strict=True)]
        rows.append([workers, *(_cell(figures) for figures in (regrets, ratios))])
    return table(["workers", f"regret after {_times(parts['1'])}", "over one worker's"], rows)


def firsts() -> tuple[int, int]:
    """At how many points of all numbers of workers ours is first by mean rank, and of how many."""
    first = sum(
        of_budget["order"][0] == OURS for part in _parts().values() for of_budget in _rankings(part)
    )
    return first, _points()


def most_workers() -> tuple[str, float]:
    """The most workers, and the last regret over that of one worker."""
    parts = _parts()
    most = max(parts, key=int)
    last = [_row(parts[workers], OURS)["percent"][-1] for workers in (most, "1")]
    return most, last[0] / last[1]


def _parts() -> dict[str, Any]:
    found: dict[str, Any] = result(_RESULT)["workers"]
    return found


def _by_workers(key: str, group: str) -> str:
    parts = _parts()
    names = sorted(
        (row["method"] for row in parts["1"]["groups"][group]["methods"]),
        key=lambda name: sum(sum(_row(part, name)["rank"]) for part in parts.values()),
    )
    rows = [
        [name_of(name), *(_cell(_row(part, name, group)[key]) for part in parts.values())]
        for name in names
    ]
    workers = [f"{number} worker{'' if number == '1' else 's'}" for number in parts]
    return table([f"after {_times(parts['1'])}", *workers], rows)


def _times(part: dict[str, Any]) -> str:
    return " / ".join(f"{budget:g}" for budget in part["budgets"])


def _cell(figures: Iterable[float]) -> str:
    return " / ".join(f"{one:.1f}" for one in figures)


def played() -> str:
    """How many runs of each optimiser there are with each number of workers."""
    part = _parts()["1"]
    return f"{len(part['seeds'])} seeds of {len(part['tasks'])} tasks"


def _firsts() -> list[str]:
    found = []
    for workers, part in _parts().items():
        orders = [of_budget["order"] for of_budget in _rankings(part)]
        first = sum(order[0] == OURS for order in orders)
        ahead = dict.fromkeys(name_of(order[0]) for order in orders if order[0] != OURS)
        behind = f", behind {' and '.join(ahead)}" if ahead else ""
        found.append(f"{first} of {len(orders)} points with {workers}{behind}")
    return found


def alike() -> int:
    """At how many of these points tests over the runs do not tell ours from another optimiser."""
    return sum(
        any(OURS in clique for clique in of_budget["alike"])
        for part in _parts().values()
        for of_budget in _rankings(part)
    )


def _points() -> int:
    return sum(len(_rankings(part)) for part in _parts().values())


def _rankings(part: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = part["groups"]["all tasks"]["rankings"]
    return found


def _least(part: dict[str, Any], group: str) -> int:
    """At how many points no other has the lower mean regret."""
    regrets = {row["method"]: row["points"] for row in part["groups"][group]["methods"]}
    return sum(ours == min(at) for ours, *at in zip(regrets[OURS], *regrets.values(), strict=True))


def _row(part: dict[str, Any], name: str, group: str = "all tasks") -> dict[str, Any]:
    return only(part["groups"][group]["methods"], method=name)


FIGURES: dict[str, Callable[[], str]] = {
    "clock ranks": ranks,
    "clock regret on LCBench": regret("LCBench"),
    "clock regret on rbv2_xgboost": regret("rbv2_xgboost"),
    "clock losses": losses,
    "worth of workers": worth_of_workers,
}
