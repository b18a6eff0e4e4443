import numpy as np

from mfhpo.problem import Observation, Pull


def play(policy, value, most=100_000, costs=None):
    """Ask and tell one at a time until the end, or so many times at most; the pulls made."""
    pulls = []
    while not policy.finished and len(pulls) < most:
        [pull] = policy.ask()
        cost = None if costs is None else costs[pull.fidelity]
        policy.tell(pull, Observation(float(value(pull)), cost=cost))
        pulls.append(pull)
    return pulls


def tell_all(policy, arm, values, fidelity=0):
    for value in values:
        policy.tell(Pull(arm, fidelity), Observation(value))


def learned(policy):
    """Return what a race knows, by name: counts and sums of values, costs, and who is in it."""
    known, arrays = policy.known, vars(policy.known.roster)
    roster = {name: mask.tolist() for name, mask in arrays.items() if name != "_arms"}
    return roster | {
        "counts": known.evidence.counts.tolist(),
        "means": known.evidence.means(np.arange(policy.problem.n_arms)).tolist(),
        "certified": known.certified,
        "pulls": known.pulls,
        "cost": policy.cost,
    }
