"""Certificates: what they cost, and how often they are wrong."""

from benchmarks.evidence.tables import distinct, only, result, rows
from tests.docs.cases import column, over


def ray(method, key="cost"):
    return column(result("ray_tune")["comparison"]["rows"], key, task=None, method=method)


def off_in_ray(method):
    """The share of races whose answer is off."""
    return over(ray(method, "beyond_epsilon"), ray(method, "races"))


def certificate_in_ray():
    """The least cost of a certificate about all configurations."""
    found = rows(result("ray_tune")["comparison"]["rows"], task=None)
    sure = [row for row in found if 2 * row["certified"] > row["races"]]
    sure = [row for row in sure if not row["method"].startswith("ASHA, then")]
    return [min(column(sure, "cost", sigma=sigma)) for sigma in distinct(found, "sigma")]


def among_200(tasks):
    return rows(result("certainty")["rows"], setting="sigma 0.5, epsilon 0.5", tasks=tasks)


def halving_cost(tasks):
    """Over the least cost of a certificate about all of 200 configurations."""
    found = among_200(tasks)
    sure = [row for row in found if row["certified"] and "its best" not in row["contender"]]
    return only(found, contender="successive halving")["cost"] / min(column(sure, "cost"))


def halving_off():
    """The share of races on all tasks whose answer is off."""
    setting = {"setting": "sigma 0.5, epsilon 0.5", "contender": "successive halving"}
    found = rows(result("certainty")["rows"], **setting)
    return sum(column(found, "beyond_epsilon")) / sum(column(found, "races"))


def with_bounds(tasks, bounds):
    """The rows of policies with such bounds on the bias, by policy."""
    split = [(row["contender"].partition(f", bounds {bounds}"), row) for row in among_200(tasks)]
    return [(policy, row) for (policy, bounded, _), row in split if bounded]


def over_the_target(tasks, bounds=""):
    """Costs of policies with bounds over those of their like at the target alone, which all have.

    MF-GRAD has none.
    """
    alike = {"IISE": "SE", "IISE-gamma": "SE", "MF-LUCB": "LUCB"}
    target = {row["contender"].removesuffix(", target only"): row for row in among_200(tasks)}
    return [
        row["cost"] / target[alike.get(policy, policy)]["cost"]
        for policy, row in with_bounds(tasks, bounds)
        if policy != "MF-GRAD"
    ]


def most_wrong_with_bounds(tasks, bounds):
    """The most certificates of a policy that are wrong, and how many it gave."""
    found = [row for _, row in with_bounds(tasks, bounds)]
    most = max(found, key=lambda row: row["wrong"])
    return most["wrong"], most["certified"]


def bounds_on_bias():
    """The narrowest bound of a level below the target that holds, for each pool."""
    return [min(pool["xi"][:-1]) for pool in result("certainty")["pools"]]


def wrong(scenario, **values):
    """The share of races that end with a wrong certificate, for each policy."""
    found = rows(result("assumptions")["rows"], scenario=scenario, **values)
    return over(column(found, "wrong"), column(found, "races"))


def wrong_of_few(scenario):
    """The share of certificates that are wrong, where most races end without one."""
    found = rows(result("assumptions")["rows"], scenario=scenario)
    few = [row for row in found if 2 * row["certified"] < row["races"]]
    return sum(column(few, "wrong")) / sum(column(few, "certified"))


def ratios(*instances):
    """A certificate's cost with a declared bias over that at the target alone."""
    found = rows(result("certificate_cost")["table"], declared="bias")
    return [row["ratio"] for row in found if row["instance"].startswith(instances)]


def arms_with_declared_bias():
    """The numbers of configurations of the families of tasks there."""
    found = column(result("certificate_cost")["table"], "instance", declared="bias")
    of_families = [name for name in found if name.startswith(("lcbench", "rbv2"))]
    return tuple(sorted({int(name.split()[1]) for name in of_families}))


def certify(case="default"):
    """Evaluations that `certify` takes."""
    return [of[case]["evaluations"]["mean"] for of in result("certify")["summary"].values()]


def quickstart(race):
    """What the race of the quickstart costs, in one of its forms."""
    return result("quickstart")["median_cost"][race]


def searching_on():
    """The share of studies in which more trials find something better than `certify`."""
    case = "search goes on for as many trials as default"
    on = [of[case] for of in result("certify")["summary"].values()]
    return [of["certify's pick minus its"]["worse"] for of in on]


def shortlists():
    """The finalists and the evaluations of each certificate at the end of a search."""
    found = [record["certificate"] for record in result("certificates")["records"]]
    return [(one["shortlist"], one["evaluations"]) for one in found]
