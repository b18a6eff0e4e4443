"""The search beside other optimisers."""

from benchmarks.evidence.search import GROUPS, OURS
from benchmarks.evidence.tables import only, result
from tests.docs.cases import column


def methods(name, group="all tasks"):
    """The rows of a comparison of optimisers, by their names."""
    return {row["method"]: row for row in result(name)["groups"][group]["methods"]}


def slower(name):
    """The optimisers that take longer than ours for an evaluation."""
    found = methods(name)
    ours = found[OURS]["milliseconds"]
    return {method for method, row in found.items() if row["milliseconds"] > ours}


def of_five_seeds():
    """The optimisers that were played with the first five seeds only."""
    return set(methods("hpo_five_seeds")) - set(methods("hpo"))


def ahead_with_five_seeds():
    """Which of them has the lower mean regret than ours, where and when."""
    return {one for one in ahead("hpo_five_seeds") if one[0] in of_five_seeds()}


def ahead(name):
    """Which optimisers have the lower mean regret than ours, where and when."""
    return {
        (other, group, budget)
        for group in GROUPS
        for other, row in methods(name, group).items()
        for at, budget in enumerate(result(name)["budgets"])
        if row["points"][at] < methods(name, group)[OURS]["points"][at]
    }


def hours_to_decide():
    """CPU hours of all optimisers on the tasks that judge the search, and of those quicker."""
    hours = {
        name: row["milliseconds"] * row["evaluations"] * row["runs"] / 3.6e6
        for name, row in methods("hpo_judged").items()
    }
    quicker = hours.keys() - {OURS} - slower("hpo_judged")
    return f"{sum(hours.values()):.1f}", f"{sum(hours[name] for name in quicker):.1f}"


def hours_of_judging(method):
    """CPU hours that an optimiser with five seeds would take for all runs that judge the search."""
    row = methods("hpo_five_seeds")[method]
    runs = len(result("hpo_judged")["tasks"]) * len(result("hpo_judged")["seeds"])
    return f"{row['milliseconds'] * row['evaluations'] * runs / 3.6e6:.1f}"


def places_among_architectures():
    """Our place by mean rank, and the number of optimisers."""
    orders = column(result("hpo_nas")["groups"]["NAS"]["rankings"], "order")
    return [(1 + order.index(OURS), len(order)) for order in orders]


def gp_is_ahead_on():
    """Small spaces and budgets at which Optuna's Gaussian process is better beyond noise."""
    table = result("small_spaces")["table"]
    return {(row["task"], row["full evaluations"]) for row in table if row["difference"][0] > 0}


def last_regrets_of_workers():
    """Our regret at the end, from the fewest workers to the most."""
    parts = [part["groups"]["all tasks"] for part in result("hpo_clock")["workers"].values()]
    return [only(part["methods"], method=OURS)["percent"][-1] for part in parts]


def _claims(key):
    """A figure of the claims of each search in scikit-learn, by the data."""
    summary = result("sklearn_search")["summary"]
    searches = {data: of for data, of in summary.items() if "SpaceSearchCV" in of}
    return {data: {name: of[name][key] for name in of} for data, of in searches.items()}


def gaps_on_digits():
    """What scikit-learn's own searches claim there, less what is true."""
    gaps = _claims("gap")["900 digits, SVC"]
    return [gap for name, gap in gaps.items() if name != "SpaceSearchCV"]


def noisier_claims():
    """Whether our claim is further off than those of the other searches."""
    sizes = _claims("size of the gap").values()
    return [of["SpaceSearchCV"] == max(of.values()) for of in sizes]
