"""Equilibria of games."""

from collections.abc import Callable

from benchmarks.evidence.tables import distinct, percent, result, table
from benchmarks.evidence.tables import rows as rows_with

_NAMES = {
    "MF-UCB-PNE": "MF-UCB-PNE, hyperparameters known",
    "MF-UCB-PNE, fitted": "the same, fitted (`NashSampler`)",
    "MF-UCB-PNE, Eq. 24": "the same, exploring as published (Eq. 24)",
    "UCB-PNE": "UCB-PNE, target level alone",
    "probability of equilibrium": "probability of equilibrium",
    "random": "random profiles",
}


_RECOMMENDED, _LAST = "our recommendation", "Algorithm 1's"


def regret() -> str:
    """Regret of the profile that is handed over by budget, on random games."""
    found = result("nash")["games"]
    rows = []
    for rho in distinct(found, "rho"):
        for name, words in _NAMES.items():
            rows.append([words, _RECOMMENDED, f"{rho:g}", *_means(name, rho, "recommended")])
            if name == "MF-UCB-PNE, Eq. 24":
                rows.append([words, _LAST, f"{rho:g}", *_means(name, rho, "last evaluated")])
    return table(["method", "profile", "correlation", *_heads_of_budgets()], rows, words=2)


def best_evaluated() -> str:
    """Regret of the best of all evaluated profiles by budget, as the paper plots it."""
    rows = [
        [words, f"{rho:g}", *_means(name, rho, "best evaluated")]
        for rho in distinct(result("nash")["games"], "rho")
        for name, words in _NAMES.items()
    ]
    return table(["method", "correlation", *_heads_of_budgets()], rows)


def _means(method: str, rho: float, profile: str) -> list[str]:
    """The mean regret of a kind of profile for each budget."""
    found = rows_with(result("nash")["games"], method=method, rho=rho)
    return [f"{row[profile]['mean']:.2f}" for row in found]


def _heads_of_budgets() -> list[str]:
    return [f"budget {budget:g}" for budget in distinct(result("nash")["games"], "budget")]


def intervals() -> str:
    """How often the intervals that are said to hold with 90 % hold."""
    found = [row for row in result("nash")["games"] if row["method"] == "MF-UCB-PNE, fitted"]
    rows = [
        [words, percent(min(shares)), percent(max(shares))]
        for words, key in (
            ("gains by deviating", "intervals held"),
            ("objectives", "utilities held"),
        )
        if (shares := [row[key]["mean"] for row in found])
    ]
    return table(["intervals of 90 % for", "hold at least in", "at most in"], rows)


def applications() -> str:
    """Random access and power allocation."""
    found = result("nash")
    rows = [["random access", "", *_errors(found["random access"])]]
    for kind, what in (
        ("power allocation", "power allocation"),
        ("power allocation, informed design", "power allocation, evaluations spread evenly"),
    ):
        for links in distinct(found[kind], "links"):
            of_links = [row for row in found[kind] if row["links"] == links]
            for budget in distinct(of_links, "budget"):
                rows.append([what, links, *_errors([r for r in of_links if r["budget"] == budget])])
    head = ["game", "links", "budget", "seeds", "error, mean of seeds", "largest"]
    return table([*head, "seeds within 5 %"], rows)


def _errors(rows: list[dict[str, float]]) -> list[str]:
    """Budget, seeds, and the error of the player that is furthest off."""
    errors = [row["largest error"] for row in rows]
    within = sum(error <= 0.05 for error in errors)
    mean = percent(sum(errors) / len(errors), 1)
    return [f"{rows[0]['budget']:,.0f}", str(len(rows)), mean, percent(max(errors), 1), str(within)]


def decisions() -> str:
    """How long a decision takes."""
    rows = []
    for row in result("nash")["decisions"]:
        game = f"{row['players']} players, {row['parameters']} parameters"
        seconds = [row["the next evaluation"], row["the answer"]]
        rows.append([game, row["told"], *(f"{1000 * second:,.0f}" for second in seconds)])
    return table(["game", "queries so far", "next evaluation, ms", "answer, ms"], rows)


FIGURES: dict[str, Callable[[], str]] = {
    "regret of games": regret,
    "best evaluated of games": best_evaluated,
    "intervals of games": intervals,
    "applications of games": applications,
    "decisions of games": decisions,
}
