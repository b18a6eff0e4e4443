"""How sure certificates are, and what they cost."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.evidence.tables import distinct, only, percent, result, table

_POLICIES = ("MFTopTwo", "MFGrad", "MFLUCB", "IISE", "blocks", "certify", "group-sequential")
_PICK = "certify's pick minus its"


def quickstart() -> str:
    """Cost of the quickstart's race, by policy."""
    found = result("quickstart")
    names = {"shared splits": "shared splits (what `make quickstart` runs)"}
    names |= {"chosen": "a split for each evaluation, chosen policy"}
    names |= {"chosen, target alone": "the same, target level alone"}
    names |= {"IISE-gamma": "a split for each evaluation, IISE"}
    names |= {"SE": "a split for each evaluation, SE"}
    rows = [[words, f"{found['median_cost'][key]:g}"] for key, words in names.items()]
    return table(["race", "full evaluations, median"], rows)


def quickstart_promise() -> str:
    """What the certificate and the luckiest trial of one race promise, and what is true."""
    first = result("quickstart")["rows"]["shared splits"][0]
    rows = [
        ["the luckiest trial", f"{first['luckiest_claim']:.4f}", f"{first['luckiest_fresh']:.4f}"],
        ["the certificate", f"{first['claim']:.4f}", f"{first['fresh']:.4f}"],
    ]
    return table(["log-loss", "promised", "on 100 fresh splits"], rows)


def certificate_cost() -> str:
    """Cost of a certificate with all levels, and with the target alone."""
    rows = []
    for row in result("certificate_cost")["table"]:
        low, high = row["interval"]
        rows.append(
            [
                row["instance"],
                row["declared"],
                row["races"],
                f"{row['all levels']:.1f}",
                f"{row['target alone']:.1f}",
                f"{row['ratio']:.2f}",
                f"{low:.2f} to {high:.2f}",
                sum(row["wrong"]),
            ]
        )
    head = ["instance", "declared", "races", "all levels", "target alone", "ratio", "95 %", "wrong"]
    return table(head, rows, words=2)


def assumptions() -> str:
    """Percent of certificates that are wrong, by scenario and policy."""
    found = result("assumptions")["rows"]
    rows = []
    for scenario in distinct(found, "scenario"):
        of = {row["by"]: row for row in found if row["scenario"] == scenario}
        cells = [_wrong_of_few(of[by]) if by in of else "" for by in _POLICIES]
        if any(cells):
            rows.append([scenario, *cells])
    return table(["scenario", *_POLICIES], rows)


def assumptions_elsewhere() -> str:
    """The same, for what runs in few of the scenarios."""
    rows = [
        [row["scenario"], row["by"], row["races"], row["certified"], _wrong(row)]
        for row in result("assumptions")["rows"]
        if row["by"] not in _POLICIES
    ]
    return table(["scenario", "by", "races", "certified", "wrong"], rows, words=2)


def _wrong(row: dict[str, Any]) -> str:
    share = 100 * row["wrong"] / row["races"]
    allowed = 100 * row.get("delta", 0.05)  # rows of earlier versions have none
    return f"**{share:.0f} %**" if share > allowed else f"{share:.1f} %"


def _wrong_of_few(row: dict[str, Any]) -> str:
    """The same, with the number of certificates where most races end without one."""
    few = 2 * row["certified"] < row["races"]
    return f"{_wrong(row)} ({row['wrong']} of {row['certified']})" if few else _wrong(row)


def _of_certified(row: dict[str, Any]) -> str:
    return f"{row['wrong']} of {row['certified']}" if row["certified"] else "no certificate"


def delta() -> str:
    """The largest counts of wrong answers."""
    found = result("delta_correctness")
    kept = [row for row in found["rows"] if row["condition"]["shrink"] == 1.0]
    control = [row for row in found["rows"] if row["condition"]["shrink"] != 1.0]
    most = max(kept, key=lambda row: row["wrong"])
    (worse,) = control
    words = {
        f"{len(kept)} settings, the worst of them": most,
        "control: a radius made too small on purpose": worse,
    }
    rows = [
        [what, row["races"], row["wrong"], percent(row["upper"], 1)] for what, row in words.items()
    ]
    return table(
        [f"delta = {found['delta']:g}", "races", "wrong", "at most, with 95 % confidence"], rows
    )


def certify() -> str:
    """What `certify` found out about finished studies."""
    summary = result("certify")["summary"]
    default = [summary[sigma]["default"] for sigma in summary]
    shared = [summary[sigma]["replicate shares half"] for sigma in summary]
    promised = [summary[s]["best_trial's claim minus its true value"]["mean"] for s in summary]
    lines: list[tuple[str, list[str]]] = [
        ("`best_trial` promises too much by, points", [f"{value:.2f}" for value in promised]),
        (
            "the certificate promises too much by, points",
            [f"{case['claim minus true value']['mean']:.2f}" for case in default],
        ),
        (
            "claims that are wrong",
            [percent(case["falls short by more than is claimed"]) for case in default],
        ),
        ("its pick is better than `best_trial`", [percent(case["better"]) for case in default]),
        ("its pick is worse", [percent(case["worse"]) for case in default]),
        ("evaluations, mean", [f"{case['evaluations']['mean']:.0f}" for case in default]),
        (
            "evaluations, where half the noise is shared",
            [f"{case['evaluations']['mean']:.0f}" for case in shared],
        ),
        (
            "as many more trials of TPE find something better",
            searching_on(summary),
        ),
    ]
    head = ["", *(f"noise {sigma.removeprefix('sigma ')} points" for sigma in summary)]
    return table(head, [[words, *cells] for words, cells in lines])


def searching_on(summary: Mapping[str, Any]) -> list[str]:
    """In how many studies more trials found something better than `certify`, for each noise."""
    went_on = [case["search goes on for as many trials as default"] for case in summary.values()]
    return [
        f"{case['studies'] * case[_PICK]['worse']:.0f} of {case['studies']}" for case in went_on
    ]


def certificates() -> str:
    """How often the certificate of a search is right, and what it costs the search."""
    rows = [row for row in result("certificates")["rows"] if row["tasks"] == "all"]

    def counts(key: str) -> list[str]:
        return [f"{row[key]['count']} of {row[key]['of']}" for row in rows]

    lines = [
        ("wrong about how close the winner is to the best", counts("beyond_tolerance")),
        ("the winner's true value is outside its interval", counts("winner_outside")),
        ("the claim gap is outside its interval", counts("claim_gap_outside")),
        (
            "certified within one noise deviation",
            [percent(row["certified"]["share"]) for row in rows],
        ),
        ("the winner's value is promised too high by", [f"{row['mean_gap']:.2f}" for row in rows]),
        ("the search alone promises too high by", [f"{row['alone_gap']:.2f}" for row in rows]),
        ("regret with a certificate", [f"{row['regret']:.2f}" for row in rows]),
        ("regret of the search alone", [f"{row['regret_alone']:.2f}" for row in rows]),
        (
            "difference",
            [f"{row['alone_difference']:+.3f} ± {row['alone_standard_error']:.3f}" for row in rows],
        ),
    ]
    head = ["", *(f"noise {row['sigma']:g} points" for row in rows)]
    return table(head, [[words, *cells] for words, cells in lines])


def certify_share() -> str:
    """The share of intervals worth quoting, by the share for the certificate."""
    lines = []
    for row in result("certify_share")["rows"]:
        if row["finalists"] != "usual":
            continue
        ratio = row["half-width over gain"]
        lines.append(
            [
                row["tasks"],
                f"{row['budget']:g}",
                f"{row['share']:g}",
                "-" if ratio is None else f"{ratio:.2f}",
                percent(row["quotable"]),
                percent(row["certified"]),
                f"{row['regret']:.1f}",
                f"{row['more regret']:+.1f} ± {row['standard error']:.1f}",
            ]
        )
    head = ["tasks", "budget", "share", "half-width / gain, median", "worth quoting", "certified"]
    return table([*head, "regret, %", "more than at 0.1"], lines)


def certainty() -> str:
    """Cost of being sure of the best of 200 configurations."""
    found = [row for row in result("certainty")["rows"] if row["setting"] == _SETTING]
    tasks = ("LCBench", "rbv2_xgboost")
    rows = []
    for contender in distinct(found, "contender"):
        both = [only(found, contender=contender, tasks=name) for name in tasks]
        costs = [f"{row['cost']:.0f}" for row in both]
        beyond = [f"{row['beyond_epsilon']} of {row['races']}" for row in both]
        wrong = [_of_certified(row) for row in both]
        rows.append([contender, *costs, *beyond, *wrong])
    head = ["contender", *(f"{what}, {name}" for what in _WHAT for name in tasks)]
    return table(head, rows)


_SETTING = "sigma 0.5, epsilon 0.5"
_WHAT = ("cost", "off by more than epsilon", "wrong certificates")


def candidates() -> str:
    """How often the best of given candidates is missed on a budget."""
    found = result("certainty_budgets")["rows"]
    rows = []
    for n, who in dict.fromkeys((row["configurations"], row["contender"]) for row in found):
        cells = []
        for tasks in ("LCBench", "rbv2_xgboost"):
            row = only(found, configurations=n, contender=who, tasks=tasks)
            low, high = (100.0 * limit for limit in row["off_interval"])
            off = 100.0 * row["off"] / row["lists"]
            claims = f"{row['wrong']} of {row['certified']}" if row["certified"] else ""
            cells += [f"{row['cost']:.0f}", f"{off:.0f} % ({low:.0f} to {high:.0f})", claims]
        rows.append([f"{n}: {who}", *cells])
    heads = [f"{what}, {name}" for name in ("LCBench", "rbv2_xgboost") for what in _ON_A_BUDGET]
    return table(["candidates, and by", *heads], rows)


_ON_A_BUDGET = ("cost", "off", "false claims")


def chance() -> str:
    """How often answers are as good as the search's model says."""
    rows = [
        [
            f"{row['tasks']}, {row['kind']}",
            row["answers"],
            percent(row["promised"], 1),
            percent(row["true"], 1),
            f"{row['brier']:.3f}",
            f"{row['brier_of_constant']:.3f}",
        ]
        for row in result("chance")["rows"]
    ]
    heads = ["tasks", "answers", "promised", "true", "Brier score", "of a constant"]
    return table(heads, rows)


def reliability() -> str:
    """The reliability diagram as a table."""
    rows = [
        [f"{row['tasks']}, {row['kind']}", *(percent(value, 0) for value in pair), n]
        for row in result("chance")["rows"]
        for *pair, n in row["bins"]
    ]
    return table(["tasks", "promised", "true", "answers"], rows)


def ray_tune() -> str:
    """A certificate's cost in Ray Tune beside that of its own schedulers."""
    found = [row for row in result("ray_tune")["comparison"]["rows"] if row["task"] is None]
    rows = []
    for method in distinct(found, "method"):
        both = [only(found, method=method, sigma=sigma) for sigma in (0.5, 2.0)]
        cells = [
            cell
            for row in both
            for cell in (
                f"{row['cost']:.1f}",
                f"{row['beyond_epsilon']} of {row['races']}",
                _of_certified(row),
            )
        ]
        rows.append([method, *cells])
    heads = [f"{what}, noise {s} %" for s in ("0.5", "2") for what in ("cost", "off", "wrong")]
    return table(["method", *heads], rows)


def ray_replacement() -> str:
    """Our schedulers in the place of ASHA, on trials of one seed each."""
    found = result("ray_replacement")["rows"]
    rows = []
    for method in distinct(found, "contender"):
        both = [only(found, contender=method, tasks=tasks) for tasks in ("LCBench", "rbv2_xgboost")]
        cells = [
            cell
            for row in both
            for cell in (
                f"{row['cost']:.1f}",
                f"{row['off']} of {row['lists']}",
                f"{row['wrong']} of {row['certified']}" if row["certified"] else "",
            )
        ]
        rows.append([method, *cells])
    heads = [f"{what}, {name}" for name in ("LCBench", "rbv2_xgboost") for what in _ON_A_BUDGET]
    return table(["method", *heads], rows)


def questions() -> str:
    """Cost of finding the best of twelve models on 800 questions, and how often that fails."""
    rows = [
        [
            f"{row['epsilon']:g}",
            row["rule"],
            f"{row['evaluations']:,.0f}",
            percent(row["saved"]),
            percent(row["wrong"]),
            "yes" if row["certified"] == 1.0 else "no",
        ]
        for row in result("questions")["rows"]
        if row["rule"] != "all questions"
    ]
    return table(["epsilon", "rule", "evaluations", "saved", "wrong", "says so"], rows, words=2)


FIGURES: dict[str, Callable[[], str]] = {
    "questions": questions,
    "quickstart": quickstart,
    "quickstart promise": quickstart_promise,
    "certificate cost": certificate_cost,
    "assumptions": assumptions,
    "assumptions elsewhere": assumptions_elsewhere,
    "delta": delta,
    "certify": certify,
    "certificates": certificates,
    "certify share": certify_share,
    "certainty": certainty,
    "candidates": candidates,
    "chance": chance,
    "reliability diagram": reliability,
    "ray tune": ray_tune,
    "ray replacement": ray_replacement,
}
