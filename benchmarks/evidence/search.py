"""The search beside other optimisers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.evidence.tables import distinct, is_there, only, paragraph, percent, result, table
from benchmarks.hpo.judged import NAME as JUDGED
from benchmarks.hpo.problems.table import FOLDER, Table
from benchmarks.hpo.statistics import ranking

OURS = "mfhpo search"
GROUPS = ("LCBench", "rbv2_xgboost")
NAMES = {
    OURS: "**`SearchSampler`, search alone**",
    "optuna gp": "Optuna GP",
    "optuna tpe": "Optuna TPE",
    "optuna tpe + hyperband": "Optuna TPE + Hyperband",
    "optuna tpe + median": "Optuna TPE + median pruner",
    "optuna tpe + sha": "Optuna TPE + successive halving",
    "optuna random": "Optuna random",
    "optuna random + sha": "Optuna random + successive halving",
    "flaml blendsearch": "FLAML BlendSearch",
    "flaml cfo": "FLAML CFO",
    "syne tune asha": "Syne Tune ASHA",
    "dehb": "DEHB",
    "random": "random search",
}


_FIVE = {
    OURS: NAMES[OURS],
    "neps hyperband": "NePS Hyperband",
    "openbox bohb": "OpenBox BOHB",
    "smac multi-fidelity": "SMAC multi-fidelity",
    "syne tune bohb": "Syne Tune BOHB",
}

_WITHOUT_RECORDS = {"ax": "Ax", "hebo": "HEBO", "syne tune mobster": "Syne Tune MOBSTER"}

_ALL = NAMES | _FIVE | _WITHOUT_RECORDS


def name_of(method: str) -> str:
    return _ALL.get(method, method)


def regret(group: str) -> Callable[[], str]:
    """Mean regret of every optimiser on a group of tasks."""

    def figures() -> str:
        found = result("hpo")
        methods = found["groups"][group]["methods"]
        rows = [
            [NAMES[name], *(f"{points:.1f}" for points in only(methods, method=name)["points"])]
            for name in NAMES
        ]
        head = ["points of accuracy", *(f"after {budget:g}" for budget in found["budgets"])]
        return table(head, rows)

    return figures


def rank() -> str:
    """Mean rank and time of every optimiser on all tasks."""
    found = result("hpo")
    methods = found["groups"]["all tasks"]["methods"]
    rows = []
    for name in NAMES:
        row = only(methods, method=name)
        rows.append(
            [NAMES[name], *(f"{rank:.1f}" for rank in row["rank"]), f"{row['milliseconds']:.1f}"]
        )
    head = ["mean rank", *(f"after {budget:g}" for budget in found["budgets"])]
    return f"{table([*head, 'ms per evaluation'], rows)}\n\n{_verdict()}"


def judged() -> str:
    """Mean rank and regret on the tasks that judge the search, if they have been played."""
    if not is_there(JUDGED):
        return "This version has not been judged yet."
    found = result(JUDGED)
    groups = [name for name in found["groups"] if name != "all tasks"]
    rows = [
        [
            name_of(row["method"]),
            *(f"{rank:.1f}" for rank in row["rank"]),
            *(_points(found["groups"][group]["methods"], row["method"]) for group in groups),
        ]
        for row in sorted(
            found["groups"]["all tasks"]["methods"], key=lambda row: float(row["rank"][-1])
        )
    ]
    budgets = [f"{budget:g}" for budget in found["budgets"]]
    head = ["mean rank", *(f"after {budget}" for budget in budgets)]
    head += [f"{group}, {' / '.join(budgets)}" for group in groups]
    tasks = [f"{len(found['groups'][group]['tasks'])} of {group}" for group in groups]
    missing = never_judged()
    said = (
        f"Version {found['versions']['mfhpo']}, on {found['date']}; {len(found['seeds'])} seeds; "
        f"tasks: {', '.join(tasks)}. Regret is in points of accuracy."
        + (f" Not played on them yet: {', '.join(missing)}." if missing else "")
    )
    return f"{table(head, rows)}\n\n{paragraph(said)}\n\n{_verdict(JUDGED)}"


def not_judged() -> list[str]:
    """The optimisers of the tables that have not been played on the tasks that judge the search.

    Those that take too long for 30 seeds are not waited for.
    """
    return _unplayed(NAMES)


def never_judged() -> list[str]:
    """All that can be played here, and have not been on the tasks that judge the search."""
    return _unplayed(_ALL)


def _unplayed(names: dict[str, str]) -> list[str]:
    played = set()
    if is_there(JUDGED):
        played = {row["method"] for row in result(JUDGED)["groups"]["all tasks"]["methods"]}
    return [words for name, words in names.items() if name not in played]


def _points(methods: Sequence[dict[str, Any]], name: str) -> str:
    return " / ".join(f"{points:.1f}" for points in only(methods, method=name)["points"])


def comparison(name: str, group: str) -> str:
    """Mean regret, mean rank and time of every optimiser on tasks that are a group of their own."""
    found = result(name)
    rows = [
        [
            name_of(row["method"]),
            " / ".join(f"{points:.2f}" for points in row["points"]),
            " / ".join(f"{rank:.1f}" for rank in row["rank"]),
            f"{row['milliseconds']:.1f}",
        ]
        for row in sorted(found["groups"][group]["methods"], key=lambda row: sum(row["rank"]))
    ]
    budgets = " / ".join(f"{budget:g}" for budget in found["budgets"])
    head = [f"after {budgets}", "points of accuracy", "mean rank", "ms per evaluation"]
    places, apart = [], []
    for of_budget in found["groups"][group]["rankings"]:
        order = of_budget["order"]
        after = f"after {of_budget['budget']:g}"
        ahead = [name_of(method) for method in order[: order.index(OURS)]]
        behind = f", behind {', '.join(ahead)}" if ahead else ""
        places.append(f"{1 + len(ahead)} of {len(rows)} {after}{behind}")
        alike = {OURS}.union(*(clique for clique in of_budget["alike"] if OURS in clique))
        others = [name_of(method) for method in order if method not in alike]
        apart.append(f"{after}, {', '.join(others) or 'none'}")
    said = (
        f"By mean rank, the place of ours is {'; '.join(places)}. Tests of all pairs, corrected "
        f"for their number, tell these from ours: {'; '.join(apart)}."
    )
    return f"{table(head, rows)}\n\n{paragraph(said)}"


def recorded() -> str:
    """Trainings that are recorded with the project."""
    found = [Table.load(file) for file in sorted(FOLDER.glob("*.npz"))]
    rows = []
    for model in dict.fromkeys(one.name.partition(" ")[0] for one in found):
        of_model = [one for one in found if one.name.startswith(f"{model} ")]
        data_sets = ", ".join(one.name.partition(" ")[2] for one in of_model)
        configurations, levels, seeds = of_model[0].values.shape
        rows.append([model, data_sets, f"{configurations:,}", levels, seeds])
    head = ["model", "data", "configurations", "levels", "seeds"]
    size = sum(file.stat().st_size for file in FOLDER.glob("*.npz")) / 1e6
    return f"{table(head, rows, words=2)}\n\n{len(found)} tables, {size:.1f} MB."


def _verdict(name: str = "hpo") -> str:
    found = result(name)
    rankings = found["groups"]["all tasks"]["rankings"]
    first = sum(of_budget["order"][0] == OURS for of_budget in rankings)
    alike = sum(any(OURS in clique for clique in of_budget["alike"]) for of_budget in rankings)
    said = (
        f"By mean rank, ours is first at {first} of {len(rankings)} budgets. Over the runs on "
        f"these very tasks, another optimiser is statistically alike at {alike} of them. Tests "
        f"with one value for each task, its mean regret, speak about other tasks of the same kind. "
        f"They do not tell ours from these: {_alike_by_tasks(found)}."
    )
    return paragraph(said)


def _alike_by_tasks(found: dict[str, Any]) -> str:
    """At each budget, the optimisers that tests with a pair of values for each task leave alike."""
    regrets = found["groups"]["all tasks"]["points_by_task"]
    methods = list(next(iter(regrets.values())))
    scales = {task: known["best"] - known["median"] for task, known in found["tasks"].items()}
    shares = np.array(
        [[np.array(row[name]) / scales[task] for task, row in regrets.items()] for name in methods]
    )
    ours = methods.index(OURS)
    parts = []
    for at, budget in enumerate(found["budgets"]):
        of_budget = ranking(shares[..., at])
        alike = [
            name_of(methods[other])
            for other in of_budget.order
            if other != ours and of_budget.p_values[ours, other] >= 0.05
        ]
        parts.append(f"after {budget:g}, {', '.join(alike) or 'none'}")
    return "; ".join(parts)


def five_seeds() -> str:
    """Mean regret with the first five seeds, of more optimisers."""
    groups = result("hpo_five_seeds")["groups"]
    rows = []
    for name, words in _FIVE.items():
        cells = [only(groups[group]["methods"], method=name)["points"] for group in GROUPS]
        rows.append([words, *(" / ".join(f"{point:.1f}" for point in row) for row in cells)])
    return table(["after 10 / 20 / 50 / 100", *GROUPS], rows)


def over_optuna(name: str) -> Callable[[], str]:
    """Regret in a result over that of the best of Optuna's seven."""

    def figures() -> str:
        found = result(name)
        rows = []
        for group in GROUPS:
            ratios = found["groups"][group]["over_best_optuna"][OURS]
            for budget, ratio in zip(found["budgets"], ratios, strict=True):
                low, high = ratio["interval"]
                interval = f"{low:.2f} to {high:.2f}"
                best = NAMES[ratio["best"]]
                rows.append([group, best, f"{budget:g}", f"{ratio['ratio']:.2f}", interval])
        return table(["tasks", "best of Optuna", "budget", "ratio", "95 % interval"], rows, words=2)

    return figures


def losses(*names: str) -> Callable[[], str]:
    """Single tasks of these results on which another optimiser has the lower mean regret."""

    def figures() -> str:
        rows = []
        for found in map(result, names):
            for task, regrets in found["groups"]["all tasks"]["points_by_task"].items():
                for at, budget in enumerate(found["budgets"]):
                    ahead = _ahead(regrets, at)
                    if ahead:
                        best = min(ahead, key=lambda name: regrets[name][at])
                        both = [f"{regrets[name][at]:.2f}" for name in (OURS, best)]
                        rows.append([task, name_of(best), f"{budget:g}", *both, len(ahead)])
        head = ["task", "best optimiser", "budget", "ours", "theirs", "optimisers ahead of ours"]
        return table(head, rows, words=2)

    return figures


def _ahead(regrets: dict[str, Sequence[float]], at: int) -> list[str]:
    return [name for name in regrets if regrets[name][at] < regrets[OURS][at]]


def small_spaces() -> str:
    """Regret in spaces of one or two parameters, beside Optuna's Gaussian process."""
    rows = []
    for row in result("small_spaces")["table"]:
        low, high = row["difference"]
        rows.append(
            [
                row["task"],
                f"{row['full evaluations']:g}",
                f"{row['ours']:.1f}",
                f"{row['optuna gp']:.1f}",
                f"{low:.1f} to {high:.1f}",
                percent(row["ours is less"]),
            ]
        )
    head = ["percent of the median random regret", "after", "ours", "Optuna GP"]
    return table([*head, "difference, 95 %", "ours is less"], rows)


def earlier() -> str:
    """Regret of searches that begin with earlier results or beliefs, beside TPE."""
    found = result("earlier")
    rows = []
    for row in found["table"]:
        family = "LCBench" if row["family"] == "lcbench" else row["family"]
        cells = [
            f"{of:.1f} ({ratio:.2f})" for of, ratio in zip(row["regret"], row["ratio"], strict=True)
        ]
        missing = [""] * (len(found["budgets"]) - len(cells))
        rows.append([family, row["method"], *cells, *missing])
    head = ["tasks", "method", *(f"after {budget:g}" for budget in found["budgets"])]
    return table(head, rows, words=2)


def scikit_learn() -> str:
    """What scikit-learn's searches and ours hand over, for the same number of full fits."""
    rows = []
    for task, searches in result("sklearn_search")["summary"].items():
        if "SpaceSearchCV" not in searches:
            continue
        for name, row in searches.items():
            figures = (row["true"], row["size of the gap"], row["seconds"])
            rows.append(
                [task, name, f"{row['fits']:.0f}", *(f"{figure:.2f}" for figure in figures)]
            )
    head = ["data, model", "search", "full fits", "true score", "claim is off by", "CPU seconds"]
    return table(head, rows, words=2)


def new_data() -> str:
    """How often the interval for new data holds, by kind of data and shape of the splits."""
    found: list[dict[str, Any]] = result("new_data_interval")["records"]
    shapes = dict.fromkeys((row["splits"], row["test share"]) for row in found)
    lines = []
    for setting in distinct(found, "setting"):
        for truth, words in (("procedure", "fitted on new data"), ("model", "handed over")):
            here = [row for row in found if row["setting"] == setting]
            shares = [percent(row[f"corrected, {truth}"], 1) for row in here]
            lines.append([setting, words, *shares])
    head = [f"{splits} splits, {percent(share)} for the test" for splits, share in shapes]
    nominal = 1.0 - result("new_data_interval")["delta"]
    shares = [row[f"corrected, {truth}"] for row in found for truth in ("procedure", "model")]
    plain = [row["plain, procedure"] for row in found]
    least, most = min(shares), max(shares)
    said = (
        f"{percent(nominal)} are nominal; {found[0]['runs']} data sets were drawn of each kind. "
        f"It is off by {100.0 * (nominal - least):.1f} points where it is too narrow, and by "
        f"{100.0 * (most - nominal):.1f} where it is too wide, at most. Student's interval for "
        f"independent scores holds in {percent(min(plain))} to {percent(max(plain))}."
    )
    lines_of_all = table(["data, model", "the model is", *head], lines, words=2)
    return f"{lines_of_all}\n\n{paragraph(said)}"


def limits() -> str:
    """What limits of time save a search with runaway configurations."""
    found: dict[str, Any] = result("search_limits")
    rows = []
    for at, point in enumerate(found["points"]):
        for way in ("without limits", "with limits", "where none takes longer"):
            row = found[way]
            # A search that takes longer than all of the time is not told from one that takes it.
            most = round(found["points"][-1] / point, 4)
            low, high, ratio_itself = (
                percent(share) + (" or more" if share >= most else "")
                for share in (*(end[at] for end in row["interval"]), row["time over time"][at])
            )
            ratio = [ratio_itself, f"{low} to {high}"]
            if way == "without limits":
                ratio = ["", ""]
            rows.append([f"{point:g} trainings", way, f"{row['regret'][at]:.1f}", *ratio])
    regret = "% of the median random regret"
    head = ["after", "search", regret, "time to the regret without limits", "95 % interval"]
    return table(head, rows, words=2)


FIGURES: dict[str, Callable[[], str]] = {
    "regret on LCBench": regret("LCBench"),
    "regret on rbv2_xgboost": regret("rbv2_xgboost"),
    "rank": rank,
    "judged": judged,
    "five seeds": five_seeds,
    "over Optuna": over_optuna("hpo"),
    "over Optuna on judged tasks": over_optuna(JUDGED),
    "losses of the search": losses("hpo", "hpo_nas"),
    "losses on judged tasks": losses(JUDGED),
    "small spaces": small_spaces,
    "earlier": earlier,
    "scikit-learn's searches": scikit_learn,
    "new data": new_data,
    "search limits": limits,
    "architectures": partial(comparison, "hpo_nas", "NAS"),
    "comparison on recorded trainings": partial(comparison, "hpo_recorded", "scikit-learn"),
    "recorded trainings": recorded,
}
