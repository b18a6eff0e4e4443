"""Models and games that are known, and plays of a policy on them."""

import numpy as np

from mfhpo.games import Hyperparameters, MultiOutputGP
from mfhpo.games.dissatisfaction import Beliefs
from mfhpo.search import Numeric

PLACES = tuple(np.linspace(0.0, 1.0, 17).tolist())
ON_A_GRID = {"row": {"x": Numeric(PLACES)}, "column": {"y": Numeric(PLACES)}}


def drawn_hyperparameters(rng, n_levels, n_features):
    return Hyperparameters(
        length_scales=rng.uniform(0.2, 1.5, (n_levels, n_features)),
        correlations=rng.uniform(0.1, 1.0, n_levels - 1),
        scales=rng.uniform(0.5, 3.0, n_levels),
        noise=rng.uniform(0.01, 0.5, n_levels),
        offsets=rng.uniform(-2.0, 2.0, n_levels),
    )


def recursive_covariance(known, x, level, y, other):
    """Eq. 19 as it stands: ``u[m] = rho[m] u[m+1] + sqrt(1 - rho[m]**2) psi[m]``."""

    def unscaled(low, high):
        own = np.exp(-0.5 * (((x - y) / known.length_scales[high]) ** 2).sum())
        if low < high:
            return float(known.correlations[low] * unscaled(low + 1, high))
        if low == known.n_levels - 1:
            return float(own)
        rho = known.correlations[low]
        return float(rho**2 * unscaled(low + 1, low + 1) + (1.0 - rho**2) * own)

    scale = known.scales[level] * known.scales[other]
    return float(scale * unscaled(min(level, other), max(level, other)))


def covariance_matrix(known, left, right):
    return np.array(
        [
            [recursive_covariance(known, x, int(m), y, int(q)) for y, q in zip(*right, strict=True)]
            for x, m in zip(*left, strict=True)
        ]
    ).reshape(len(left[0]), len(right[0]))


def direct_posterior(known, told, values, at):
    """Means and covariances at points by one solve of the whole system (Eq. 22 and 23)."""
    levels = told[1]
    total = covariance_matrix(known, told, told) + np.diag(known.noise[levels])
    across = covariance_matrix(known, told, at)
    solved = np.linalg.solve(total, across)
    means = known.offsets[at[1]] + solved.T @ (values - known.offsets[levels])
    return means, covariance_matrix(known, at, at) - across.T @ solved


def believing(actions, seed, n, rate=5.0):
    rng = np.random.default_rng(seed)
    known = Hyperparameters.shared(
        rate, rate, correlations=[0.8], noise=0.01, n_features=len(actions.groups)
    )
    models = [MultiOutputGP(known) for _ in actions.players]
    for gp in models:
        for row in actions.features(rng.random((n, len(actions.parameters)))):
            gp.add(row, int(rng.integers(2)), rng.standard_normal())
    return Beliefs(actions, models, beta=1.5)


def two_players():
    return {"row": {"x": Numeric()}, "column": {"y": Numeric()}}


def tracking(profile, level):
    """Each player follows the other; the equilibrium is x = .3 / .88, y = .5 / .88."""
    x, y = profile["x"], profile["y"]
    return [-((x - 0.6 * y) ** 2), -((y - 0.5 - 0.2 * x) ** 2)]


TRACKING_EQUILIBRIUM = (0.3 / 0.88, 0.5 / 0.88)


def gains(game, profile, owned, level):
    """What each player gains by its best deviation, where each has one parameter."""
    here = game(profile, level)
    gained = []
    for player, own in enumerate(owned.values()):
        ((name, values),) = own.items()
        there = [game({**profile, name: value}, level)[player] for value in values]
        gained.append(max(float(value or 0.0) for value in there) - float(here[player] or 0.0))
    return gained


def step(policy, query, running=()):
    tops, evaluation = policy.costs.tops, policy.costs.of_evaluation
    left = policy.remaining - sum(map(policy.cost_of, [query, *running]))
    assert left >= -1e-9 * policy.budget
    assert set(query.profile) == set(policy.actions.parameters)
    for name, parameter in policy.actions.parameters.items():
        value = query.profile[name]
        if not isinstance(parameter, Numeric):
            assert value in range(parameter.n)
        elif parameter.places:
            assert value in parameter.places
        else:
            assert 0.0 <= value <= 1.0
    assert len(query.levels) == len(policy.actions)
    assert all(0 <= level <= top for level, top in zip(query.levels, tops, strict=True))
    if policy.joint:
        assert len(set(query.levels)) == 1
    if not policy.is_evaluation(query):
        assert left >= evaluation - 1e-9 * policy.budget


def play(policy, game, most=1000, n_workers=1):
    queries, running, rng = [], [], np.random.default_rng(0)
    while True:
        is_free = len(running) < n_workers and len(queries) < most
        query = policy.ask(running) if is_free else None
        if query is not None:
            step(policy, query, running)
            queries.append(query)
            running.append(query)
        elif running:
            done = running.pop(int(rng.integers(len(running))))
            levels = enumerate(done.levels)
            policy.tell(done, [game(done.profile, level)[player] for player, level in levels])
        else:
            assert policy.cost <= policy.budget * (1.0 + 1e-9)
            return queries
