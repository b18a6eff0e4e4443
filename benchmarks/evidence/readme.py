"""The table of README: how sure certificates are, what the search is worth, and what both cost."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.evidence.search import OURS, not_judged
from benchmarks.evidence.tables import distinct, only, result, rows, table
from benchmarks.hpo.judged import NAME as JUDGED

_CERTIFICATES, _SEARCH = "docs/evidence/certificates.md", "docs/evidence/search.md"


def how_sure() -> str:
    """One figure for each question, and where there are more."""
    delta = result("delta_correctness")
    kept = [row for row in delta["rows"] if row["condition"]["shrink"] == 1.0]
    most = max(kept, key=lambda row: row["wrong"])
    assumptions = result("assumptions")["rows"]
    errors = {
        scenario: max(row["wrong"] / row["races"] for row in rows(assumptions, scenario=scenario))
        for scenario in distinct(assumptions, "scenario")
    }
    hpo = result("hpo" if not_judged() else JUDGED)
    methods = hpo["groups"]["all tasks"]["methods"]
    ranks, next_best = _ranks(methods)
    first, last = hpo["budgets"][0], hpo["budgets"][-1]
    which = "of its development" if not_judged() else "that it was not developed on"
    nas, recorded = _places("hpo_nas", "NAS"), _places("hpo_recorded", "scikit-learn")
    races = [row for row in result("ray_tune")["comparison"]["rows"] if row["task"] is None]
    asha, certified, undeclared = (
        only(races, method=method, sigma=0.5)
        for method in ("ASHA", "MFTopTwo, max bias declared", "MFTopTwo, nothing declared")
    )
    costs = [row["ratio"] for row in rows(result("certificate_cost")["table"], declared="bias")]
    lines = [
        (
            f"Is delta = {delta['delta']:g} kept?",
            f"at most {most['wrong']} of {most['races']} answers are wrong in each of {len(kept)} "
            f"settings",
            f"[delta]({_CERTIFICATES}#is-delta-kept)",
        ),
        (
            "And if an assumption fails?",
            f"at delta = 0.05, up to {100 * errors['shared noise']:.0f} % are wrong if all "
            f"evaluations share one split, {100 * errors['rare divergence']:.0f} % if bad outcomes "
            f"are rare",
            f"[assumptions]({_CERTIFICATES}#when-an-assumption-fails)",
        ),
        (
            f"Is the search good, among {len(methods)} optimisers?",
            f"mean rank {ranks[1]:.1f} after {last:g} evaluations (the best of the others "
            f"{next_best[1]:.1f}) and {ranks[0]:.1f} after {first:g} ({next_best[0]:.1f}), on "
            f"{len(hpo['tasks'])} tasks {which}",
            f"[search]({_SEARCH})",
        ),
        (
            "Where is it not?",
            f"by mean rank its place is {nas} on small architectures, {recorded} on models of "
            f"scikit-learn",
            "[where we lose](docs/where-we-lose.md)",
        ),
        (
            "What does certainty cost?",
            f"{certified['cost']:.0f} full trainings with declared bounds and "
            f"{undeclared['cost']:.0f} without; ASHA spends {asha['cost']:.1f}, and is off in "
            f"{asha['beyond_epsilon']} of {asha['races']} races",
            f"[in Ray Tune]({_CERTIFICATES}#in-ray-tune)",
        ),
        (
            "Do cheap levels make it cheaper?",
            f"a certificate costs {min(costs):.2f} to {max(costs):.2f} times as much with them",
            f"[cheap levels]({_CERTIFICATES}#with-cheap-levels-and-without)",
        ),
    ]
    return table(["question", "answer", "more"], lines, words=3)


def _places(name: str, group: str) -> str:
    """The best and the worst place of the search by mean rank, over the budgets."""
    rankings = result(name)["groups"][group]["rankings"]
    places = [1 + of_budget["order"].index(OURS) for of_budget in rankings]
    return f"{min(places)} to {max(places)} of {len(rankings[0]['order'])}"


def _ranks(methods: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Mean ranks at the first and the last budget: ours, and the best of the others."""
    ours = only(methods, method=OURS)["rank"]
    others = [row["rank"] for row in methods if row["method"] != OURS]
    return [ours[0], ours[-1]], [min(rank[at] for rank in others) for at in (0, -1)]


FIGURES: dict[str, Callable[[], str]] = {"how sure": how_sure}
