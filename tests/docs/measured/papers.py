"""Published results, limits of time, and games."""

from math import hypot
from operator import add, sub

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from benchmarks.evidence.papers import INDEPENDENT_MF_GRAD
from benchmarks.evidence.tables import distinct, only, result, rows
from benchmarks.papers.nash_applications import played
from benchmarks.papers.nash_games import RandomAccess, RandomGame
from mfhpo.games import MFUCBPNE, Hyperparameters
from tests.docs.cases import column, every, less, over

AT_LEAST_AS_GOOD = 1.15  # times the other's regret, for noise


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
    names = ("top", "A", "B", "AB", "C")
    costs = zip(*(table_3(name, "our radius") for name in names), strict=True)
    return [
        {name for name, cost in zip(names, of_case, strict=True) if cost < as_cheap * min(of_case)}
        for of_case in costs
    ]


def cheaper_with_declared_means(algorithm):
    """The cases in which a method costs less than the target alone, beyond noise."""
    alone = table_3("top", "our radius"), table_3("top", "our radius", "ci95")
    reading = "our radius, means declared"
    declared = table_3(algorithm, reading), table_3(algorithm, reading, "ci95")
    return {
        case
        for case, (least, most) in enumerate(
            zip(map(sub, *alone), map(add, *declared), strict=True), start=1
        )
        if most < least
    }


def figure_1(instance, algorithm):
    """Costs of an algorithm in Figure 1 of LUCB, for each delta."""
    found = result("mf_mab")["parts"]["figure1"]["rows"]
    return column(found, "cost", instance=f"figure {instance}", algorithm=algorithm)


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


def gaps_to_independent(costs):
    """How far a cost is above that of an independent MF-GRAD, in sums of both half intervals."""
    gaps = {}
    for instance, (mean, half) in INDEPENDENT_MF_GRAD.items():
        cost, own_half = costs(instance)
        gaps[instance] = (cost - mean) / (half + own_half)
    return gaps


def cost_as_published(instance):
    """Our MF-GRAD as published at delta 0.01."""
    found = rows(result("mf_grad")["rows"], algorithm="MF-GRAD, published", delta=0.01)
    row = only(found, instance=instance)
    return row["cost"], row["ci95"]


def cost_of_authors(instance):
    found = rows(result("authors")["rows"], algorithm="MF-GRAD, published")
    theirs = only(found, instance=instance)["theirs"]
    return theirs["cost"], theirs["ci95"]


def target_alone_is_cheaper_on_forever():
    """Whether SE costs less there than the chosen policy, beyond noise."""
    found = rows(result("mf_grad")["rows"], instance="forever")
    alone, chosen = (only(found, algorithm=name) for name in ("SE", "default"))
    return chosen["cost"] - alone["cost"] > hypot(alone["ci95"], chosen["ci95"])


def authors_costs_are_ours():
    """Whether no difference is significant at 5 % among all eight, where the rules are the same."""
    of_all = ndtri(1 - 0.05 / 8 / 2) / ndtri(0.975)
    found = [
        (row["theirs"], row["ours"])
        for row in result("authors")["rows"]
        if row["program"] == "mf-bai" or row["algorithm"] == "MF-GRAD, published"
    ]
    return len(found) == 8 and every(
        abs(theirs["cost"] - ours["cost"]) < of_all * hypot(theirs["ci95"], ours["ci95"])
        for theirs, ours in found
    )


def ucb_is_better_beyond(capital):
    """Whether it is better than MF-UCB on the third instance there, and not well before."""
    found = rows(result("mf_ucb")["ratios"], instance=3)
    beyond = [row["ratio"] > 1 for row in found if row["capital"] > capital]
    before = [row["ratio"] < 1 for row in found if row["capital"] < capital / 2]
    return every(beyond) and every(before)


def speeds(method):
    """Plays of MF-UCB in a second."""
    found = rows(result("mf_ucb")["speeds"], method=method, same_plays=True)
    return over(column(found, "plays"), column(found, "seconds"))


def lower_regret(one, other):
    """The cases of RCUCB in which one method has less regret than another."""
    regret = {(row["case"], row["method"]): row["regret"] for row in result("rcucb")["rows"]}
    return {case for case, _ in regret if regret[case, one] < regret[case, other]}


def off_published_shares(method, *instances):
    """How far the shares of stopped trials are from the published ones on these instances."""
    return [
        abs(row["censored"] - row["published_censored"])
        for row in rows(result("rcucb")["rows"], method=method)
        if row["published_censored"] is not None and row["case"].startswith(instances)
    ]


def stopped_at_the_best_pair(case):
    """How often the best configuration and limit end a trial, by the printed parameters."""
    return only(result("rcucb")["rows"], case=case, method="KL+")["censored_at_optimum"]


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


def queries_by_eta(eta):
    """What MF-UCB-PNE as published asks for in a random game of two players with one model."""
    game = RandomGame.draw(np.random.default_rng(0), n_actions=21)
    model = Hyperparameters.shared(3.56, 3.12, correlations=[0.768], noise=0.1, n_features=2)
    policy = MFUCBPNE(
        game.players, (1.0, 8.0), 64.0, hyperparameters=[model] * 2, information="level", eta=eta
    )
    return played(policy, game, np.random.default_rng(0))


def printed_sending():
    """How often each terminal sends at the printed throughputs, and how often it may.

    The throughput of each is p / (1 - p) times the probability that all are silent. Two such
    probabilities give the printed throughputs, and both are looked at.
    """
    throughputs = np.array([0.09187, 0.07232, 0.06236, 0.05229, 0.04627])
    energies = np.array([57.0, 55.0, 50.0, 45.0, 40.0])

    def excess(silent):
        return silent - np.prod(silent / (silent + throughputs))

    game = RandomAccess()
    allowed = energies / (game.active + game.sending)
    for low, high in ((0.05, 0.3), (0.3, 0.9)):
        silent = brentq(excess, low, high)
        yield throughputs / (silent + throughputs), allowed


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
