"""Small races of each policy alone: no host, one evaluation at a time."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mfhpo import (
    IISE,
    MFLUCB,
    MFUCB,
    RCUCB,
    Bias,
    BlockElimination,
    Bounded,
    MFElimination,
    MFGrad,
    MFTopTwo,
    Observation,
    Policy,
    Problem,
    Pull,
    SubGaussian,
    ZoomingRCUCB,
)
from mfhpo.censored import Linear
from mfhpo.certification.candidates import Candidate
from mfhpo.certification.certification import Certification
from mfhpo.games import MFUCBPNE, UCBPNE, GamePolicy
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.identification.round_elimination import RoundElimination
from mfhpo.search import BudgetedSearch, HalvingSearch, ModelSearch, Numeric, OneOf, SearchSpace

_MOST = 150  # evaluations of a race
_COSTS = (1.0, 3.0, 9.0)
_MEANS = (0.1, 0.35, 0.5, 0.55, 0.7)
_BIAS = (0.1, 0.04, 0.0)
_SIGMA = 0.1


def _noise(*key: int) -> float:
    return float(np.random.default_rng(key).normal(0.0, _SIGMA))


def _value(arm: int, fidelity: int, number: int) -> float | None:
    """The mean of an arm, with a bias that is half of what is declared; one in 29 fails."""
    if (7 * arm + 3 * fidelity + number) % 29 == 11:
        return None
    return _MEANS[arm] - _BIAS[fidelity] / 2 + _noise(arm, fidelity, number)


def _raced(make: Callable[[Problem], Policy], problem: Problem, data: Path) -> dict[str, Any]:
    policy = make(problem)
    seen: Counter[tuple[int, int]] = Counter()
    pulls: list[list[int | None]] = []
    shift = 3 - problem.n_fidelities
    while len(pulls) < _MOST and not policy.finished and (asked := policy.ask()):
        pull = asked[0]
        number = seen[pull.arm, pull.fidelity] if pull.block is None else pull.block
        value = _value(pull.arm, pull.fidelity + shift, number)
        policy.tell(pull, Observation(value, cost=_COSTS[pull.fidelity + shift]))
        seen[pull.arm, pull.fidelity] += 1
        pulls.append([pull.arm, pull.fidelity, pull.block])
    answer = policy.recommend()
    return {"pulls": pulls, "answer": [answer.arm, answer.certified]}


def _limited(make: Callable[..., Policy], options: Mapping[str, Any], data: Path) -> dict[str, Any]:
    """A choice of time limits: slow arms are the better ones, and some runs never end."""
    policy = make(5, **options)
    pulls: list[list[float | int | None]] = []
    while len(pulls) < _MOST:
        pull = policy.ask()[0]
        number = len(pulls)
        seconds = (2.0 + pull.arm) * float(np.random.default_rng([1, number]).gamma(4.0, 0.25))
        if number % 11 == 5:
            seconds = 1000.0
        limit = 20.0 if pull.limit is None else pull.limit
        if seconds > limit:
            told = Observation(None, limit, censored_at=limit)
        else:
            told = Observation(min(1.0, max(0.0, _MEANS[pull.arm] + _noise(2, number))), seconds)
        policy.tell(pull, told)
        pulls.append([pull.arm, pull.limit])
    answer = policy.recommend()
    return {"pulls": pulls, "answer": [answer.arm, answer.certified]}


_PLACES = Numeric(tuple(i / 20 for i in range(21)))
_SPACE: dict[str, Numeric | OneOf] = {"x": _PLACES, "kind": OneOf(3)}
_OTHERS = ("u", "v", "w")
_WIDE_SPACE = _SPACE | dict.fromkeys(_OTHERS, _PLACES)


def _searched(kind: type, options: Mapping[str, Any], given: int, data: Path) -> dict[str, Any]:
    """A search on a grid, whose model need not be the same to the last digit."""
    costs = (9.0,) if options.get("levels") == 1 else _COSTS
    own = {name: value for name, value in options.items() if name != "levels"}
    wide = own.pop("wide", False)
    search = kind(costs, continues=own.pop("continues", False), seed=0)
    search.space = SearchSpace(_WIDE_SPACE if wide else _SPACE)
    grid = list(product(range(21), range(3)))
    candidates = [grid[n] for n in np.random.default_rng(3).permutation(len(grid))[:given]]
    if given:
        search.give([{"x": place / 20, "kind": float(choice)} for place, choice in candidates])
    race = BudgetedSearch(search, **{"budget": 270.0} | own)
    points: dict[int, list[float]] = {
        arm: [place / 20, float(choice)] for arm, (place, choice) in enumerate(candidates)
    }
    pulls: list[list[Any]] = []
    while len(pulls) < _MOST and not race.finished and (asked := race.ask()):
        pull = asked[0]
        if pull.arm not in points:
            drawn = np.random.default_rng([4, pull.arm])
            point = race.point_of(pull.arm)
            if point is None:
                point = {"x": int(drawn.integers(21)) / 20, "kind": float(drawn.integers(3))}
                point |= {name: int(drawn.integers(21)) / 20 for name in _OTHERS} if wide else {}
            race.search.describe(pull.arm, point)
            points[pull.arm] = [
                point["x"],
                point["kind"],
                *(point[name] for name in _OTHERS if wide),
            ]
        x, choice, *others = points[pull.arm]
        value = _value_at(x, choice, pull.fidelity + 3 - len(costs), len(pulls))
        if value is not None:
            value -= sum((place - 0.4) ** 2 for place in others)
        race.tell(pull, Observation(value, _paid(pull, costs) if own.get("measured") else None))
        pulls.append([pull.arm, points[pull.arm], pull.fidelity, pull.block])
    answer = race.recommend()
    return {"pulls": pulls, "answer": [answer.arm, answer.certified, race.standing.left]}


def _value_at(x: float, choice: float, level: int, key: int) -> float | None:
    if key % 23 == 17:
        return None
    kind = (0.0, 0.3, 0.15)[int(choice)]
    return -((2.0 * x - 0.7) ** 2) - kind - _BIAS[level] * (1.0 + x) + _noise(5, key) / 2


def _paid(pull: Pull, costs: tuple[float, ...]) -> float:
    return costs[pull.fidelity] * (1.0 + 0.1 * (pull.arm % 5))


def _certified(options: Mapping[str, Any], data: Path) -> dict[str, Any]:
    candidates = [Candidate(f"trial {arm}", {"x": arm}, mean) for arm, mean in enumerate(_MEANS)]
    certification = Certification(candidates, luckiest=3, maximise=True, **options)
    seen: Counter[int] = Counter()
    pulls: list[list[int | None]] = []
    while len(pulls) < _MOST and not certification.finished:
        pull = certification.ask()
        if pull is None:
            break
        number = seen[pull.arm] if pull.block is None else pull.block
        certification.tell(pull, _value(pull.arm, 2, number))
        seen[pull.arm] += 1
        pulls.append([pull.arm, pull.block])
    answer = certification.certificate("the mean", "five configurations")
    return {"pulls": pulls, "answer": [answer.certified, answer.winner]}


def _played(kind: Callable[..., GamePolicy], costs: Any, data: Path) -> dict[str, Any]:
    """Two players follow each other on a grid."""
    grid = Numeric(tuple(i / 8 for i in range(9)))
    policy = kind({"row": {"x": grid}, "column": {"y": grid}}, costs, 60.0, seed=0)
    queries: list[Any] = []
    while len(queries) < _MOST and (query := policy.ask()) is not None:
        x, y = query.profile["x"], query.profile["y"]
        levels = np.array(query.levels)
        utilities = -np.array([(x - 0.6 * y) ** 2, (y - 0.5 - 0.2 * x) ** 2]) - 0.02 / (1 + levels)
        policy.tell(query, utilities.tolist())
        queries.append([x, y, list(query.levels)])
    answer = policy.recommend().profile
    return {"pulls": queries, "answer": [answer and dict(answer)]}


_DECLARED = Problem(5, costs=_COSTS, bias=Bias.max(*_BIAS), noise=SubGaussian(_SIGMA))
_ORDER = Problem(5, costs=_COSTS, bias=Bias.order(*_BIAS), noise=SubGaussian(_SIGMA))
_BOUNDED = Problem(5, costs=_COSTS, bias=Bias.max(*_BIAS), noise=Bounded(-0.5, 1.5))
_UNKNOWN = Problem(5, costs=_COSTS)
_FULL = Problem(5, costs=(9.0,), noise=SubGaussian(_SIGMA))
_PROBLEMS = {"declared": _DECLARED, "bounded": _BOUNDED, "nothing declared": _UNKNOWN}
_BEST_ARM: dict[str, Callable[..., Policy]] = {
    "IISE": IISE,
    "MFLUCB": MFLUCB,
    "MFGrad": MFGrad,
    "MFTopTwo": MFTopTwo,
    "SuccessiveElimination": partial(IISE, variant="se"),
}
_LOSS_OF_TIME = {"cost": Linear(0.01), "horizon": _MOST}
_SEARCHES: dict[str, tuple[type, dict[str, Any], int]] = {
    "model": (ModelSearch, {}, 0),
    "model, goes on from checkpoints": (ModelSearch, {"continues": True}, 0),
    "model, costs measured": (ModelSearch, {"measured": True, "unit": "cost"}, 0),
    "model, full evaluations": (ModelSearch, {"levels": 1, "certify_share": 0.3}, 0),
    "model, candidates": (ModelSearch, {"certify_share": 0.3}, 40),
    "model, wide space": (ModelSearch, {"wide": True}, 0),
    "model, in blocks": (ModelSearch, {"certify_share": 0.5, "blocks": True}, 0),
    "halving": (HalvingSearch, {}, 0),
    "halving, candidates": (HalvingSearch, {"certify_share": 0.3}, 40),
}
POLICIES: dict[str, Callable[[Path], Any]] = {
    **{
        f"policy {name}, {known}": partial(_raced, make, problem)
        for name, make in _BEST_ARM.items()
        for known, problem in _PROBLEMS.items()
    },
    "policy IISE, bias by order": partial(_raced, IISE, _ORDER),
    "policy IISE, estimated bias": partial(
        _raced, partial(IISE, estimated_bias="eliminate"), _UNKNOWN
    ),
    "policy Elimination": partial(_raced, IISE, _ORDER),
    "policy MaximumFidelityExploit": partial(_raced, partial(IISE, variant="mfe"), _DECLARED),
    "policy MFLUCB, EXPLORE-A": partial(_raced, partial(MFLUCB, explore="A"), _DECLARED),
    "policy MFLUCB, EXPLORE-B": partial(_raced, partial(MFLUCB, explore="B"), _DECLARED),
    "policy MFGrad, published stop": partial(_raced, partial(MFGrad, stop="published"), _DECLARED),
    "policy MFUCB": partial(_raced, MFUCB, _DECLARED),
    "policy MFUCB, nothing declared": partial(_raced, MFUCB, _UNKNOWN),
    "policy MFElimination": partial(_raced, partial(MFElimination, budget=600.0), _DECLARED),
    "policy blocks": partial(_raced, BlockElimination, _FULL),
    "policy rounds": partial(_raced, RoundElimination, _FULL),
    "policy looks": partial(_raced, GroupSequential, _FULL),
    "policy looks in blocks": partial(_raced, partial(GroupSequential, blocks=True), _FULL),
    "limits RCUCB": partial(_limited, RCUCB, {"limits": [4.0, 9.0, 20.0], **_LOSS_OF_TIME}),
    "limits RCUCB, derived": partial(_limited, RCUCB, _LOSS_OF_TIME),
    "limits RCUCB, nothing declared": partial(_limited, RCUCB, {}),
    "limits RCUCB, penalty": partial(
        _limited, RCUCB, {"limits": [4.0, 9.0, 20.0], "penalty": Linear(0.2), "horizon": _MOST}
    ),
    "limits ZoomingRCUCB, no horizon": partial(
        _limited, ZoomingRCUCB, {"longest": 20.0, "cost": Linear(0.01)}
    ),
    "limits ZoomingRCUCB": partial(_limited, ZoomingRCUCB, {"longest": 20.0, **_LOSS_OF_TIME}),
    **{f"search by {name}": partial(_searched, *search) for name, search in _SEARCHES.items()},
    "certificate": partial(_certified, {}),
    "certificate, sigma declared": partial(_certified, {"sigma": _SIGMA, "epsilon": 0.05}),
    "certificate in blocks": partial(_certified, {"blocks": True}),
    "certificate by looks": partial(_certified, {"first_look": 5}),
    "game MF-UCB-PNE": partial(_played, MFUCBPNE, (1.0, 4.0)),
    "game MF-UCB-PNE, costs by player": partial(
        _played, MFUCBPNE, {"row": (1.0, 4.0), "column": (0.5, 2.0, 4.0)}
    ),
    "game UCB-PNE": partial(_played, UCBPNE, (1.0, 4.0)),
}
"""By name, what plays a run; no data are needed."""
