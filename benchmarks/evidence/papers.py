"""Published results of papers, repeated."""

from collections.abc import Callable

from benchmarks.evidence.tables import distinct, only, percent, result, table
from benchmarks.evidence.tables import rows as rows_with
from benchmarks.papers.iise import published

INDEPENDENT_MF_GRAD = {"bai_5x2": (564.0, 20.0), "bai_4x5": (85.8, 1.8)}
"""Cost of MF-GRAD as published at delta 0.01, with half an interval: an independent implementation,
4,000 races each. No paper prints these figures."""


def table1() -> str:
    """Costs in percent of SE's."""
    rows = []
    for instance, methods in result("table1")["results"].items():
        for name in ("IISE", "IISE-gamma", "MFE"):
            found = methods[name]
            ours = f"{found['percent']:.4g} ± {found['ci95']:.2g}"
            paper = published(instance, name)
            beside = "" if paper is None else f"{paper[0]:g} ± {paper[1]:g}"
            rows.append([instance, name, ours, beside, found["errors"]])
    return table(["instance", "method", "% of SE's cost", "published", "errors"], rows, words=2)


def lower_bound() -> str:
    """Cost over the least that a certificate can cost."""
    found = result("mf_grad")["rows"]
    rows = []
    for instance, delta in dict.fromkeys((row["instance"], row["delta"]) for row in found):
        same = [row for row in found if (row["instance"], row["delta"]) == (instance, delta)]
        of = {row["algorithm"]: row for row in same}
        costs = [f"{of[name]['over_tight']:.1f}" if name in of else "" for name in _POLICIES]
        errors = sum(row["errors"] for row in same)
        rows.append([instance, delta, max(row["runs"] for row in same), *costs, errors])
    return table(["instance", "delta", "races", *_POLICIES.values(), "errors"], rows)


_POLICIES = {
    "default": "chosen policy",
    "MF-GRAD": "MF-GRAD",
    "IISE": "IISE",
    "SE": "SE",
    "LUCB, EXPLORE-A": "LUCB-A",
    "LUCB, EXPLORE-B": "LUCB-B",
    "LUCB, EXPLORE-C": "LUCB-C",
}


def mf_grad() -> str:
    """MF-GRAD's own cost, ours and as published, beside an independent implementation's."""
    rows = []
    for instance, (mean, half) in INDEPENDENT_MF_GRAD.items():
        costs = [
            only(result("mf_grad")["rows"], instance=instance, algorithm=name, delta=0.01)
            for name in ("MF-GRAD", "MF-GRAD, published")
        ]
        ours = [f"{row['cost']:.1f} ± {row['ci95']:.1f}" for row in costs]
        rows.append([instance, *ours, f"{mean:g} ± {half:g}"])
    heads = ["our defaults", "published variant", "published variant, independent implementation"]
    return table(["instance", *heads], rows)


def mf_mab() -> str:
    """Costs in Table 3 of the LUCB paper."""
    found = result("mf_mab")["parts"]["table3"]["rows"]
    rows = []
    for algorithm, words in _EXPLORE.items():
        for reading, radius in _READINGS.items():
            cases = [
                row for row in found if row["algorithm"] == algorithm and row["reading"] == reading
            ]
            if cases:
                rows.append([words, radius, *(_beside(row) for row in cases)])
    heads = [f"case {case}" for case in (1, 2, 3, 4)]
    return table(["method", "radius", *heads], rows, words=2)


_EXPLORE = {
    "top": "target alone",
    "B": "EXPLORE-B",
    "A": "EXPLORE-A",
    "AB": "EXPLORE-AB",
    "C": "EXPLORE-C",
}
_READINGS = {
    "published": "the paper's",
    "our radius": "ours",
    "our radius, means declared": "ours, means declared",
}


def figure_1() -> str:
    """Costs in Figure 1 of the LUCB paper."""
    found = result("mf_mab")["parts"]["figure1"]["rows"]
    rows = []
    for instance in sorted(distinct(found, "instance")):
        for delta in distinct(found, "delta"):
            same = rows_with(found, instance=instance, delta=delta)
            of = {row["algorithm"]: row for row in same}
            costs = [
                f"{of[name]['cost'] / 1e4:.1f} ± {of[name]['ci95'] / 1e4:.1f}" if name in of else ""
                for name in _EXPLORE
            ]
            races = max(row["runs"] for row in same)
            rows.append([instance.removeprefix("figure "), f"{delta:g}", races, *costs])
    return table(["instance", "delta", "races", *_EXPLORE.values()], rows)


def _beside(row: dict[str, float]) -> str:
    cost = f"{row['cost'] / 1e4:.1f}"
    return cost if row["published"] is None else f"{cost} ({row['published'] / 1e4:.1f})"


def mf_ucb() -> str:
    """Regret of MF-UCB over that of UCB."""
    found = [row for row in result("mf_ucb")["ratios"] if row["reference"] is not None]
    rows = [
        [row["instance"], f"{row['capital']:.0e}", f"{row['ratio']:.3f}", row["reference"]]
        for row in found
    ]
    return table(["instance", "capital", "regret over UCB's", "expected"], rows)


def exponents() -> str:
    """How elimination's regret grows with the budget."""
    rows = [[row["n_arms"], f"{row['exponent']:.2f}"] for row in result("mf_ucb")["exponents"]]
    return table(["arms", "exponent (theory: 0.67)"], rows)


_METHODS = {
    "KL+": "`kl+` (default)",
    "KL": "`kl`",
    "Bernstein": "`bernstein`",
    "published curves": "bound behind the published curves",
    "printed": "bound as printed",
    "UCB": "UCB",
    "TS": "Thompson sampling",
}


def rcucb() -> str:
    """Regret with time limits as decisions."""
    found = result("rcucb")["rows"]
    rows = []
    for case in distinct(found, "case"):
        of = {row["method"]: row for row in found if row["case"] == case}
        regrets = [f"{of[name]['regret']:,.0f}" if name in of else "" for name in _METHODS]
        rows.append([case, *regrets])
    return table(["case", *_METHODS.values()], rows)


def rcucb_stopped() -> str:
    """Shares of trials stopped, each beside what was published."""
    found = [row for row in result("rcucb")["rows"] if row["published_censored"] is not None]
    rows = []
    for case in distinct(found, "case"):
        cells = []
        for name in _STOPPED:
            row = only(found, case=case, method=name)
            cells += [percent(row["censored"], 1), percent(row["published_censored"], 1)]
        rows.append([case, *cells])
    heads = [head for words in _STOPPED.values() for head in (words, "published")]
    return table(["case", *heads], rows)


_STOPPED = {"published curves": "RCUCB", "UCB": "UCB", "TS": "Thompson sampling"}


def rcucb_forest() -> str:
    """672 random forests and ten limits."""
    found = result("rcucb_forest")
    rows = []
    for row in found["rows"]:
        paper = row["published_censored"]
        beside = "" if paper is None else percent(paper, 1)
        stopped = percent(row["censored"], 1)
        rows.append([_METHODS[row["method"]], f"{row['reward']:,.0f}", stopped, beside])
    best = found["best_pair"]
    rows.append(
        ["always the best pair", f"{best['reward']:,.0f}", percent(best["censored"], 1), ""]
    )
    return table(["method", "reward", "stopped", "stopped in the paper"], rows)


def rcucb_seconds() -> str:
    """Accuracy earned in the same seconds."""
    found = result("rcucb_seconds")["rows"]
    cases = distinct(found, "case")
    rows = []
    for method in distinct(found, "method"):
        of = {row["case"]: row for row in found if row["method"] == method}
        rows.append([method, *(f"{100 * of[case]['earned']:.0f} %" for case in cases)])
    return table(["method", *cases], rows)


def authors() -> str:
    """The authors' programs and ours, on the same instances."""
    rows = []
    for row in result("authors")["rows"]:
        cells = [row["instance"], row["algorithm"].removesuffix(", published")]
        sides = row["theirs"], row["ours"]
        cells += [_cost(side["cost"], side["ci95"]) for side in sides]
        cells += [f"{side['right_percent']:.0f} %" for side in sides]
        cells += [f"{side['seconds']:.2g}" for side in sides]
        rows.append(cells)
    heads = [f"{what}, {whose}" for what in ("cost", "right", "s") for whose in ("theirs", "ours")]
    return table(["instance", "method", *heads], rows, words=2)


def _cost(mean: float, half: float) -> str:
    if mean < 1e3:
        return f"{mean:.1f} ± {half:.1f}"
    if mean < 1e6:
        return f"{mean:,.0f} ± {half:,.0f}"
    return f"{mean / 1e6:.2f}e6 ± {half / 1e6:.2f}e6"


FIGURES: dict[str, Callable[[], str]] = {
    "Table 1 of IISE": table1,
    "over the lower bound": lower_bound,
    "MF-GRAD": mf_grad,
    "Table 3 of LUCB": mf_mab,
    "Figure 1 of LUCB": figure_1,
    "MF-UCB": mf_ucb,
    "exponents": exponents,
    "RCUCB": rcucb,
    "RCUCB stopped": rcucb_stopped,
    "RCUCB forest": rcucb_forest,
    "RCUCB seconds": rcucb_seconds,
    "authors' programs": authors,
}
