"""What portfolios are worth."""

from benchmarks.evidence.tables import result, table

_NAMES = {
    "elastic_net": "elastic nets",
    "lightgbm": "LightGBM",
    "mlp": "networks",
    "random_forest": "random forests",
    "svm": "SVMs",
    "xgboost": "XGBoost",
}
_METHODS = {
    "portfolio": "portfolio",
    "portfolio, then TPE": "portfolio, then TPE",
    "TPE": "TPE",
    "random search": "random search",
}


def regrets() -> str:
    """Regrets of each portfolio, and of searches from scratch."""
    found = result("portfolios")
    after = found["evaluations"]
    rows = []
    for model, one in found["portfolios"].items():
        for method, name in _METHODS.items():
            cells = [f"{points:.2f}" for points in one["regret"][method]]
            cells += [""] * (len(after) - len(cells))
            ahead, n = ", ".join(map(str, one["better"][1:])), one["data sets"]
            last = f"{ahead} of {n}" if method == "portfolio" else ""
            rows.append([_NAMES[model] if method == "portfolio" else "", name, *cells, last])
    return table(["", "regret", *(f"after {number}" for number in after), "ahead"], rows, words=2)


FIGURES = {"portfolios": regrets}
