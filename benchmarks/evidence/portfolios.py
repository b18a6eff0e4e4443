"""The worth of portfolios."""

from benchmarks.evidence.tables import result, table

_NAMES = {
    "elastic_net": "elastic nets",
    "lightgbm": "LightGBM",
    "mlp": "networks",
    "random_forest": "random forests",
    "svm": "SVMs",
    "xgboost": "XGBoost",
}
_FIRST, _OTHERS = "portfolio, then TPE", ("TPE", "random search")


def regrets() -> str:
    """Regrets of each portfolio, and of searches from scratch."""
    found = result("portfolios")
    after = found["evaluations"]
    rows = []
    for model, one in found["portfolios"].items():
        for method in (_FIRST, *_OTHERS):
            cells = [f"{points:.2f}" for points in one["regret"][method]]
            cells += [""] * (len(after) - len(cells))
            ahead = ", ".join(map(str, one["better"][1:]))
            about = (
                [one["seeds"], f"{ahead} of {one['data sets']}"] if method == _FIRST else ["", ""]
            )
            rows.append([_NAMES[model] if method == _FIRST else "", method, *cells, *about])
    head = ["", "regret", *(f"after {number}" for number in after), "seeds", "ahead"]
    return table(head, rows, words=2)


FIGURES = {"portfolios": regrets}
