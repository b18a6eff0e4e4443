"""Equilibria of games."""

from collections.abc import Callable

from benchmarks.evidence.tables import distinct, only, percent, result, table

_NAMES = {
    "MF-UCB-PNE": "MF-UCB-PNE, hyperparameters known",
    "MF-UCB-PNE, fitted": "the same, fitted (`NashSampler`)",
    "MF-UCB-PNE, Eq. 24": "the same, as published",
    "UCB-PNE": "UCB-PNE, target level alone",
    "probability of equilibrium": "probability of equilibrium",
    "random": "random profiles",
}


def regret() -> str:
    """Regret of the profile by budget, on random games."""
    found = result("nash")["games"]
    budgets = distinct(found, "budget")
    rows = []
    for rho in distinct(found, "rho"):
        for name, words in _NAMES.items():
            cells = [
                only(found, method=name, rho=rho, budget=budget)["recommended"]["mean"]
                for budget in budgets
            ]
            rows.append([words, f"{rho:g}", *(f"{cell:.2f}" for cell in cells)])
    head = ["method", "correlation", *(f"budget {budget:g}" for budget in budgets)]
    return table(head, rows)


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
    "intervals of games": intervals,
    "applications of games": applications,
    "decisions of games": decisions,
}
