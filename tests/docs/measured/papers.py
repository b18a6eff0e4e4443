"""Published results, limits of time, and games."""

from math import hypot

from benchmarks.evidence.tables import distinct, only, result
from tests.docs.cases import column, every, less, over, rows


def table_3(algorithm, reading="published", key="cost"):
    """Costs of an algorithm in Table 3 of LUCB."""
    found = result("mf_mab")["parts"]["table3"]["rows"]
    return column(found, key, algorithm=algorithm, reading=reading)


def order_in_table_3(key):
    """The methods with published costs from the cheapest to the dearest."""
    costs = zip(*(table_3(name, key=key) for name in ("A", "B", "top")), strict=True)
    return [sorted(range(3), key=of_case.__getitem__) for of_case in costs]


def cheapest_with_our_radius(as_cheap):
    """The methods whose cost is the least, or at most so many times as much."""
    names = ("top", "A", "B", "C")
    costs = zip(*(table_3(name, "our radius") for name in names), strict=True)
    return [
        {name for name, cost in zip(names, of_case, strict=True) if cost < as_cheap * min(of_case)}
        for of_case in costs
    ]


def off_published():
    """How far EXPLORE-A's cost is from the published one."""
    return [abs(ratio - 1) for ratio in over(table_3("A"), table_3("A", key="published"))]


def mf_grad(algorithm):
    return {
        (row["instance"], row["delta"]): row["cost"]
        for row in rows(result("mf_grad")["rows"], algorithm=algorithm)
    }


def cheapest_on_forever():
    found = rows(result("mf_grad")["rows"], instance="forever")
    return min(found, key=lambda row: row["cost"])["algorithm"]


def agrees_with_authors(row):
    """Whether the interval of the difference of both costs holds 0."""
    theirs, ours = row["theirs"], row["ours"]
    return abs(theirs["cost"] - ours["cost"]) < hypot(theirs["ci95"], ours["ci95"])


def ucb_is_better_beyond(capital):
    """Whether it is better than MF-UCB on the third instance there, and not before."""
    found = rows(result("mf_ucb")["ratios"], instance=3)
    return every((row["ratio"] > 1) == (row["capital"] > capital) for row in found)


def speeds(method):
    """Plays of MF-UCB in a second."""
    found = rows(result("mf_ucb")["speeds"], method=method, same_plays=True)
    return over(column(found, "plays"), column(found, "seconds"))


def lower_regret(one, other):
    """The cases of RCUCB in which one method has less regret than another."""
    regret = {(row["case"], row["method"]): row["regret"] for row in result("rcucb")["rows"]}
    return {case for case, _ in regret if regret[case, one] < regret[case, other]}


def reward(method):
    return only(result("rcucb_forest")["rows"], method=method)["reward"]


def earned(method):
    return column(result("rcucb_seconds")["rows"], "earned", method=method)


def regret_of_games(method, **values):
    found = column(result("nash")["games"], "recommended", method=method, **values)
    return [regret["mean"] for regret in found]


def target_alone_is_better():
    """At each budget, whether it is so with each correlation, than fitted hyperparameters."""
    names = ("UCB-PNE", "MF-UCB-PNE, fitted")
    budgets = sorted(distinct(result("nash")["games"], "budget"))
    return [less(*(regret_of_games(name, budget=of) for name in names)) for of in budgets]


def errors(kind, **values):
    """The error of the player that is furthest off, for each seed."""
    return column(result("nash")[kind], "largest error", **values)


def held_in_games():
    """How often each interval of `NashSampler` holds."""
    found = rows(result("nash")["games"], method="MF-UCB-PNE, fitted")
    return column(column(found, "intervals held") + column(found, "utilities held"), "mean")


def decision_of_games(players):
    row = only(result("nash")["decisions"], players=players)
    return row["the next evaluation"], row["the answer"]
