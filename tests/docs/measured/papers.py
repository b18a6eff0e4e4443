"""Published results, limits of time, and games."""

from math import hypot

from benchmarks.evidence.tables import distinct, only, result, rows
from tests.docs.cases import column, every, less, over

AT_LEAST_AS_GOOD = 1.15  # times the other's regret, for noise


def table_3(algorithm, reading="published", key="cost"):
    """Costs of an algorithm in Table 3 of LUCB."""
    found = result("mf_mab")["parts"]["table3"]["rows"]
    return column(found, key, algorithm=algorithm, reading=reading)


def cheaper_than_the_target_in_figure_1():
    """The instances, algorithms and deltas at which the target alone costs more."""
    found = result("mf_mab")["parts"]["figure1"]["rows"]
    alone = {(row["instance"], row["delta"]): row["cost"] for row in rows(found, algorithm="top")}
    return {
        (row["instance"], row["algorithm"], row["delta"])
        for row in found
        if row["cost"] < alone[row["instance"], row["delta"]]
    }


def off_published():
    """How far EXPLORE-A's cost is from the published one."""
    return [abs(ratio - 1) for ratio in over(table_3("A"), table_3("A", key="published"))]


def mf_grad(algorithm):
    return {
        (row["instance"], row["delta"]): row["cost"]
        for row in rows(result("mf_grad")["rows"], algorithm=algorithm)
    }


def target_alone_is_cheaper_on_forever():
    """Whether SE costs less there than the chosen policy, beyond noise."""
    found = rows(result("mf_grad")["rows"], instance="forever")
    alone, chosen = (only(found, algorithm=name) for name in ("SE", "default"))
    return chosen["cost"] - alone["cost"] > hypot(alone["ci95"], chosen["ci95"])


def ucb_is_better_beyond(capital):
    """Whether it is better than MF-UCB on the third instance there, and not well before."""
    found = rows(result("mf_ucb")["ratios"], instance=3)
    beyond = [row["ratio"] > 1 for row in found if row["capital"] > capital]
    before = [row["ratio"] < 1 for row in found if row["capital"] < capital / 2]
    return every(beyond) and every(before)


def lower_regret(one, other):
    """The cases of RCUCB in which one method has less regret than another."""
    regret = {(row["case"], row["method"]): row["regret"] for row in result("rcucb")["rows"]}
    return {case for case, _ in regret if regret[case, one] < regret[case, other]}


def reward(method):
    return only(result("rcucb_forest")["rows"], method=method)["reward"]


def earned(method):
    return column(result("rcucb_seconds")["rows"], "earned", method=method)


def regret_of_games(method, profile="recommended", **values):
    found = column(result("nash")["games"], profile, method=method, **values)
    return [regret["mean"] for regret in found]


def behind_from(budget):
    """Whether MF-UCB-PNE as published has the larger regret from here on, by Eq. 49."""
    return every(
        less(*(regret_of_games(name, "best evaluated", budget=one) for name in _BY_EQ_49))
        == (one >= budget)
        for one in distinct(result("nash")["games"], "budget")
    )


_BY_EQ_49 = ("UCB-PNE", "MF-UCB-PNE, Eq. 24")


def target_alone_catches_up():
    """Whether it is behind fitted hyperparameters with the least budget, and not with the most."""
    names = ("UCB-PNE", "MF-UCB-PNE, fitted")
    budgets = sorted(distinct(result("nash")["games"], "budget"))
    alone, fitted = (regret_of_games(name, budget=budgets[0]) for name in names)
    at_last = [sum(regret_of_games(name, budget=budgets[-1])) for name in names]
    return less(fitted, alone) and at_last[0] < AT_LEAST_AS_GOOD * at_last[1]


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
