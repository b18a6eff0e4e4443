"""The sentences of README that state figures."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.evidence import clock
from benchmarks.evidence.certificates import searching_on
from benchmarks.evidence.search import GROUPS, OURS, never_judged, not_judged
from benchmarks.evidence.tables import is_there, only, paragraph, result
from benchmarks.hpo.judged import NAME as JUDGED


def how_sure() -> str:
    """How sure certificates are, what the search is worth, and where both lose."""
    delta = result("delta_correctness")
    kept = [row for row in delta["rows"] if row["condition"]["shrink"] == 1.0]
    most = max(kept, key=lambda row: row["wrong"])
    wrong = {
        scenario: max(
            100 * row["wrong"] / row["races"]
            for row in result("assumptions")["rows"]
            if row["scenario"] == scenario
        )
        for scenario in (
            "shared noise",
            "rare divergence",
            "forgotten replicate, noise",
            "late bloomer of 32",
        )
    }
    missed = max(
        100 * row["missed"] / row["races"]
        for row in result("assumptions")["rows"]
        if row["scenario"] == "bias 1.2 times"
    )
    judged, missing = not not_judged(), ", ".join(never_judged())
    hpo = result(JUDGED if judged else "hpo")
    first, last = hpo["budgets"][0], hpo["budgets"][-1]
    methods = hpo["groups"]["all tasks"]["methods"]
    ranks, next_best = _ranks(methods)
    ratios = [
        [hpo["groups"][group]["over_best_optuna"][OURS][at]["ratio"] for group in GROUPS]
        for at in (0, -1)
    ]
    which = "It was developed on these tasks."
    if judged:
        which = (
            f"The tasks are other data sets than those of its development, of the same families; "
            f"they are played once per release, here {hpo['versions']['mfhpo']}"
            f"{f', and not yet by {missing}' if missing else ''}."
        )
    elif is_there(JUDGED):
        which += f" {_judged_in_part()}"
    else:
        which += " Those that are kept to judge it, once per release, have not been played yet."
    recorded = len(result("hpo_recorded")["seeds"])
    first_in_seconds, points = clock.firsts()
    workers, times_alone = clock.most_workers()
    declared = [row for row in result("certificate_cost")["table"] if row["declared"] == "bias"]
    cheapest = min(declared, key=lambda row: row["ratio"])
    dearest = max(declared, key=lambda row: row["ratio"])
    better = searching_on(result("certify")["summary"])
    races = [row for row in result("ray_tune")["comparison"]["rows"] if row["task"] is None]
    asha = only(races, method="ASHA", sigma=0.5)
    hyperband = only(races, method="HyperBand", sigma=0.5)
    certified = only(races, method="MFTopTwo, max bias declared", sigma=0.5)
    undeclared = only(races, method="MFTopTwo, nothing declared", sigma=0.5)
    return "\n".join(
        paragraph(line, "  ")
        for line in [
            f"- **delta holds.** At delta = {delta['delta']:g}, at most {most['wrong']} of "
            f"{most['races']} answers were wrong in each of {len(kept)} settings.",
            f"- **Assumptions matter.** At delta = 0.05, the worst policy "
            f"errs in {wrong['shared noise']:.0f} % of races if all share a split, "
            f"{wrong['rare divergence']:.0f} % if bad outcomes are rare, "
            f"{wrong['forgotten replicate, noise']:.0f} % if `replicate` is forgotten, "
            f"{wrong['late bloomer of 32']:.0f} % if late bloomers meet "
            f'`estimated_bias="eliminate"`; at 1.2 times the declared bias, '
            f"{missed:.0f} % of intervals miss.",
            f"- **The search is good.** Of {len(methods)} optimisers on {len(hpo['tasks'])} tasks, "
            f"its mean rank is {ranks[0]:.1f} after {first:g} evaluations and {ranks[1]:.1f} "
            f"after {last:g}; the best of the others have {next_best[0]:.1f} and "
            f"{next_best[1]:.1f}. Its regret on {GROUPS[0]} and {GROUPS[1]} is {ratios[0][0]:.2f} "
            f"and {ratios[0][1]:.2f} times that of Optuna's best after {first:g}, and "
            f"{ratios[1][0]:.2f} and {ratios[1][1]:.2f} times after {last:g}. {which} "
            f"By mean rank, its place on small architectures is {_places('hpo_nas', 'NAS')}, and "
            f"on models of scikit-learn, with {recorded} seeds, "
            f"{_places('hpo_recorded', 'scikit-learn')}.",
            f"- **Workers waste some.** With {workers}, the search ends at {times_alone:.1f} times "
            f"one worker's regret. By mean rank it is first at {first_in_seconds} of {points} "
            f"points in seconds, by tests at {points - clock.alike()} ({clock.played()} "
            f"of its development).",
            f"- **Cheap levels may lose.** With a declared bias, a certificate costs from "
            f"{cheapest['ratio']:.2f} ({cheapest['instance']}) to {dearest['ratio']:.2f} times "
            f"({dearest['instance']}) what it costs without them.",
            f"- **Certainty is expensive.** ASHA spends {asha['cost']:.1f} full trainings and is "
            f"off in {asha['beyond_epsilon']} of {asha['races']} races; HyperBand spends "
            f"{hyperband['cost']:.1f} and is off in {hyperband['beyond_epsilon']}. Certificates "
            f"cost {certified['cost']:.0f} if true bounds on the bias are declared, and "
            f"{undeclared['cost']:.0f} if nothing is.",
            f"- **Searching on finds more.** As many more trials as `certify` takes find something "
            f"better in {' and '.join(better)} studies.",
        ]
    )


def _places(name: str, group: str) -> str:
    """The best and the worst place of the search by mean rank, over the budgets."""
    rankings = result(name)["groups"][group]["rankings"]
    places = [1 + of_budget["order"].index(OURS) for of_budget in rankings]
    return f"{min(places)} to {max(places)} of {len(rankings[0]['order'])}"


def _judged_in_part() -> str:
    """What is known of the tasks that judge the search while some optimisers are missing there."""
    found = result(JUDGED)
    methods = found["groups"]["all tasks"]["methods"]
    ranks, next_best = _ranks(methods)
    return (
        f"On {len(found['tasks'])} others, kept to judge it, its mean rank among {len(methods)} is "
        f"{ranks[0]:.1f} and {ranks[1]:.1f}, and that of the best of the others "
        f"{next_best[0]:.1f} and {next_best[1]:.1f}; {', '.join(not_judged())} have not been "
        f"played there yet."
    )


def _ranks(methods: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Mean ranks at the first and the last budget: ours, and the best of the others."""
    ours = only(methods, method=OURS)["rank"]
    others = [row["rank"] for row in methods if row["method"] != OURS]
    return [ours[0], ours[-1]], [min(rank[at] for rank in others) for at in (0, -1)]


FIGURES: dict[str, Callable[[], str]] = {"how sure": how_sure}
