"""What users call of the core, and what its arguments may be."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import mfhpo
from mfhpo import (
    Bias,
    Observation,
    Problem,
    Pull,
    SubGaussian,
    censored,
    games,
    portfolios,
    search,
)
from mfhpo.search import HalvingSearch, ModelSearch, Numeric, OneOf
from tests.contract.arguments import wrong_values as may
from tests.contract.arguments.calls import Call
from tests.contract.arguments.wrong_values import Kind

# Whole numbers up to which memory and time are no trouble.
MOST_ARMS = 100_000

# By name, what arguments may be wherever they have it.
KINDS: dict[str, Kind] = may.named(
    (may.count(0, 1), "arm fidelity"),
    (may.one_of(True, False, "bias"), "audit"),
    (may.FLAG, "averaging blocks checkpoints continues joint measured safeguard"),
    (may.count(0), "begun measure"),
    (may.optional(may.FINITE), "best_at_most second_at_least"),
    (may.optional(may.mapping_of(may.text, may.anything)), "beliefs"),
    (may.optional(may.sequence_of(may.never)), "earlier"),
    (may.POSITIVE, "beta exploration learning_rate prior rho smoothness"),
    (may.nothing, "bias chance cost hyperparameters penalty radius"),
    (may.NONNEGATIVE, "bound"),
    (may.optional(may.UNLIMITED), "budget limit seconds"),
    (may.optional(may.count(2, MOST_ARMS)), "candidates"),
    (may.optional(may.NONNEGATIVE), "epsilon"),
    (may.optional(may.number(0, to="[]")), "censored_at"),
    (may.optional(may.number(0, 1, to="[)")), "certify_share"),
    (may.one_of("kl", "kl+", "bernstein", "printed", "published curves"), "confidence"),
    (may.sequence_of(may.POSITIVE, 1), "costs"),
    (may.PROBABILITY, "delta probability ratio"),
    (may.optional(may.count(0, 1)), "duplicate_of"),
    (may.one_of("steer", "eliminate"), "estimated_bias"),
    (may.number(0, 1, to="(]"), "eta fraction"),
    (may.one_of("A", "B", "C", "AB", "top"), "explore"),
    (may.FINITE, "high low"),
    (may.optional(may.count(1)), "horizon trials"),
    (may.one_of("target", "level"), "information"),
    (may.optional(may.count(2)), "initial top"),
    (may.either(may.count(1, 1_000), may.sequence_of(may.POSITIVE, 1)), "limits"),
    (may.optional(may.POSITIVE), "longest"),
    (may.one_of(*portfolios.MODELS), "model"),
    (may.count(2), "pilot_arms pilot_pulls"),
    (may.count(1), "max_failures"),
    (may.count(1, 100_000), "n"),
    (may.count(1, MOST_ARMS), "n_arms"),
    (may.optional(lambda value: value == {}), "names"),
    (may.never, "observation players points policy problem profile pull query radii search"),
    (may.sequence_of(may.never), "pending"),
    (may.text, "reason"),
    (may.optional(may.text), "replicate"),
    (may.optional(may.never), "reward_range"),
    (may.one_of(None, "pulls", "rounds"), "schedule"),
    (may.count(0, float("inf")), "seed"),
    (may.optional(may.either(may.NONNEGATIVE, may.sequence_of(may.NONNEGATIVE, 1))), "sigma"),
    (may.count(2, 1_000), "splits"),
    (may.one_of("mixture", "published"), "stop"),
    (may.one_of("kaplan-meier", "count"), "survival"),
    (may.one_of("cost", "evaluations"), "unit"),
    (may.sequence_of(lambda value: value is None or isinstance(value, int), 2), "utilities"),
    (may.one_of(None, "max", "order"), "variant"),
    (may.either(may.sequence_of(may.count(0, 1)), lambda value: isinstance(value, set)), "without"),
)

# What the library makes for its users, what is checked where it is told, what only subclasses
# and hosts call, and names of types.
NOT_CALLED = {
    "mfhpo": {"Race", "CostPrediction", "LimitRecommendation", "Noise"}
    | {"Policy", "Radius", "Recommendation", "__version__", "EstimatedNoise", "Gaussian"}
    | {"Labels", "Observation", "Pull"},
    "mfhpo.portfolios": {"MODELS"},
    "mfhpo.search": {"Begin", "BudgetUnit", "DeclaredSearch", "Point", "SearchOptions"}
    | {"Replicate", "SearchPolicy", "SearchSpace", "has_levels", "place_in_range"},
    "mfhpo.games": {"Deviation", "Dissatisfaction", "Equilibrium", "GamePolicy", "Utility"}
    | {"Query", "MultiOutputGP"},
    "mfhpo.censored": {"CensoredPolicy", "Charge", "Confidence", "Draw", "LimitRecommendation"}
    | {"Survival", "SurvivalPoint"},
}

# Where limits are chosen up to a longest one.
OF_LONGEST = {"longest": may.POSITIVE, "confidence": may.one_of("kl", "bernstein", "printed")}

_PROBLEM = Problem(2, costs=(1.0, 3.0), bias=Bias.max(0.1, 0.0), noise=SubGaussian(0.1))
_PLAYERS = {"row": {"x": Numeric((0.0, 0.5, 1.0))}, "column": {"y": OneOf(2)}}
_QUERY = games.Query({"x": 0.5, "y": 1}, (0, 0))


def _play(policy: Any) -> None:
    for _ in range(3):
        for pull in policy.ask():
            seconds = getattr(pull, "limit", None)
            policy.tell(pull, Observation(0.3 + 0.1 * pull.arm, cost=seconds or 1.0))
    policy.recommend()


def _play_search(made: search.SearchPolicy) -> None:
    for arm in range(2):
        step = made.ask(arm)
        made.tell(Pull(arm, step.fidelity), Observation(0.5))


def _play_game(policy: games.GamePolicy) -> None:
    query = policy.ask()
    policy.tell(query, [0.1, 0.2])
    policy.recommend()


def _vector(value: Any) -> bool:
    is_sequence = isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )
    return is_sequence and len(value) > 0


def _read(radius: mfhpo.Radius) -> None:
    spread = np.ones(2)
    radius(np.array([2, 3]), 0.05, spread, spread)


def policies(make: Callable[..., Any], **kinds: Kind) -> dict[str, Call]:
    """Return the calls of a policy: its class and the methods that users call."""
    valid = {"problem": _PROBLEM}
    return {
        "": Call(make, lambda: dict(valid), _play, kinds, apart=frozenset({"refinement"})),
        **_methods(lambda: make(**valid)),
    }


def _methods(fresh: Callable[[], Any]) -> dict[str, Call]:
    pull = fresh().ask()[0]
    of_one_level = {"fidelity": may.count(0, 0)} if pull.limit is not None else {}
    return {
        ".ask": Call.of_method(fresh, "ask"),
        ".tell": Call.of_method(
            fresh, "tell", lambda: {"pull": pull, "observation": Observation(0.5, cost=1.0)}
        ),
        ".tell(Pull(...))": Call(
            lambda arm, fidelity: fresh().tell(
                Pull(arm, fidelity, pull.limit, pull.block), Observation(0.5, cost=1.0)
            ),
            lambda: {"arm": pull.arm, "fidelity": pull.fidelity},
            kinds=of_one_level,
        ),
        ".tell(Observation(...))": Call(
            lambda cost, censored_at: fresh().tell(pull, Observation(0.5, cost, censored_at)),
            lambda: {"cost": 1.0, "censored_at": None},
            kinds={"cost": may.optional(may.NONNEGATIVE)},
        ),
        ".withdraw": Call.of_method(
            fresh,
            "withdraw",
            lambda: {"arm": 1},
            kinds={"duplicate_of": may.optional(may.count(0, 0))},
        ),
        ".summary": Call.of_method(
            fresh, "summary", lambda: {"arm": 1, "fidelity": 0}, kinds=of_one_level
        ),
    }


def _censored(cls: Callable[..., Any], **valid: Any) -> dict[str, Call]:
    charge = may.optional(may.function)
    kinds = {"cost": charge, "penalty": charge, "reward_range": may.optional(may.never)}
    if "longest" in valid:
        kinds |= OF_LONGEST
    return {
        "": Call(cls, lambda: dict(valid), _play, kinds, apart=frozenset({"refinement"})),
        **_methods(lambda: cls(**valid)),
    }


def _game(cls: Callable[..., Any], **kinds: Kind) -> dict[str, Call]:
    valid = {"players": _PLAYERS, "costs": (1.0,), "budget": 100.0}

    def fresh() -> Any:
        return cls(**valid)

    observed = fresh()
    _play_game(observed)

    kinds = {"budget": may.number(2, to="[)"), "sigma": may.optional(may.POSITIVE), **kinds}
    return {
        "": Call(cls, lambda: dict(valid), _play_game, kinds, apart=frozenset({"rule", "about"})),
        ".ask": Call.of_method(fresh, "ask"),
        ".tell": Call.of_method(fresh, "tell", lambda: {"query": _QUERY, "utilities": [0.1, 0.2]}),
        ".deviations": Call.of_method(
            lambda: observed, "deviations", lambda: {"profile": {"x": 0.5, "y": 1}}
        ),
    }


def _search(cls: Callable[..., Any]) -> dict[str, Call]:
    told = {"pull": Pull(0, 0), "observation": Observation(0.5)}
    return {
        "": Call(cls, lambda: {"costs": (1.0, 3.0)}, _play_search),
        ".tell": Call.of_method(lambda: cls((1.0, 3.0)), "tell", lambda: told),
    }


def _budgeted(**valid: Any) -> search.BudgetedSearch:
    return search.BudgetedSearch(**{"search": ModelSearch((1.0, 3.0)), "budget": 100.0} | valid)


def _of(module: str, **calls: Call | Mapping[str, Call]) -> dict[str, Call]:
    found = {}
    for name, given in calls.items():
        if isinstance(given, Call):
            given = {"": given}
        found |= {f"{module}.{name}{method}": call for method, call in given.items()}
    return found


def _radius(cls: Callable[..., Any], **valid: Any) -> Call:
    return Call(cls, lambda: dict(valid), _read, {"sigma": may.NONNEGATIVE})


def _bounds(cls: Callable[..., Any], use: Callable[[Any], None] = lambda made: None) -> Call:
    kinds = {"low": may.number(-np.inf, 1, to="()"), "high": may.number(0, to="()")}
    return Call(cls, lambda: {"low": 0.0, "high": 1.0}, use, kinds)


_COSTS_KINDS: dict[str, Kind] = {
    "gaps": may.either(may.nothing, may.sequence_of(may.NONNEGATIVE, 1)),
    "means": may.either(may.nothing, lambda value: isinstance(value, np.ndarray)),
    "epsilon": may.NONNEGATIVE,
}
_GAPS = {"problem": _PROBLEM, "delta": 0.05, "gaps": [0.2]}

_HYPERPARAMETERS = {
    "length_scales": np.ones((3, 3)),
    "correlations": np.full(2, 0.5),
    "scales": np.ones(3),
    "noise": np.ones(3),
    "offsets": np.zeros(3),
}

CALLS: dict[str, Call] = {
    **_of(
        "mfhpo",
        IISE=policies(mfhpo.IISE, variant=may.one_of(None, "max", "order", "se", "mfe")),
        MFLUCB=policies(mfhpo.MFLUCB),
        MFUCB=policies(mfhpo.MFUCB),
        MFElimination=policies(mfhpo.MFElimination),
        MFGrad=policies(
            mfhpo.MFGrad,
            learning_rate=may.either(may.POSITIVE, may.one_of("adaptive", "decreasing")),
        ),
        MFTopTwo=policies(mfhpo.MFTopTwo),
        BlockElimination=policies(mfhpo.BlockElimination),
        RCUCB=_censored(mfhpo.RCUCB, n_arms=2, limits=(1.0, 2.0)),
        ZoomingRCUCB=_censored(mfhpo.ZoomingRCUCB, n_arms=2, longest=2.0),
        Bias=Call(
            Bias,
            lambda: {"kind": "max", "bounds": (0.1, 0.0)},
            lambda bias: bias.margins,
            {
                "kind": may.one_of("max", "order"),
                "bounds": may.never,
                "source": may.one_of("declared", "estimated", "widened"),
            },
            known_as={"bounds": "bias"},
        ),
        Bounded=_bounds(mfhpo.Bounded),
        EmpiricalBernsteinRadius=_bounds(mfhpo.EmpiricalBernsteinRadius, _read),
        Fidelity=Call(
            mfhpo.Fidelity,
            lambda: {"name": "epochs", "levels": [1, 3]},
            lambda fidelity: fidelity.guessed_costs([1, 3]),
            {"name": may.text, "levels": may.either(may.nothing, _vector), "costs": may.nothing},
        ),
        HoeffdingRadius=_radius(mfhpo.HoeffdingRadius, sigma=0.1),
        MixtureRadius=_radius(mfhpo.MixtureRadius, sigma=0.1),
        StudentMixtureRadius=_radius(mfhpo.StudentMixtureRadius),
        Problem=Call(
            Problem,
            lambda: {"n_arms": 2, "costs": (1.0, 3.0)},
            lambda problem: _play(mfhpo.IISE(problem)),
            {"noise": may.never, "n_fidelities": may.count(0, 0)},
        ),
        SubGaussian={
            "": Call(
                SubGaussian,
                lambda: {"sigma": 0.1},
                kinds={"sigma": may.either(may.NONNEGATIVE, may.sequence_of(may.NONNEGATIVE, 1))},
            )
        },
        PolicyChoice={
            ".make": Call.of_method(
                lambda: mfhpo.recommend_policy(_PROBLEM),
                "make",
                lambda: {"problem": _PROBLEM, "delta": 0.1},
                use=_play,
                signature_of=lambda problem, delta, epsilon: None,
            )
        },
        cost_lower_bound=Call(mfhpo.cost_lower_bound, lambda: dict(_GAPS), kinds=_COSTS_KINDS),
        predict_cost=Call(mfhpo.predict_cost, lambda: dict(_GAPS), kinds=_COSTS_KINDS),
        recommend_policy=Call(
            mfhpo.recommend_policy,
            lambda: {"problem": _PROBLEM},
            kinds={"aim": may.one_of("best arm", "reward per cost", "reward per pull")},
        ),
    ),
    "mfhpo.Problem, costs measured": Call(
        Problem,
        lambda: {"n_arms": 2, "costs": None, "n_fidelities": 2},
        lambda problem: mfhpo.IISE(problem).ask(),
        {"noise": may.never, "n_fidelities": may.count(1, 1_000), "costs": may.nothing},
    ),
    "mfhpo.cost_lower_bound, means": Call(
        mfhpo.cost_lower_bound,
        lambda: {"problem": _PROBLEM, "delta": 0.05, "means": [[0.1, 0.2], [0.3, 0.4]]},
        kinds=_COSTS_KINDS,
    ),
    "mfhpo.IISE, estimated": Call(
        mfhpo.IISE,
        lambda: {"problem": Problem(3, None, n_fidelities=2), "estimated_bias": "eliminate"},
        _play,
    ),
    "mfhpo.MFLUCB, A": Call(
        mfhpo.MFLUCB,
        lambda: {"problem": _PROBLEM, "explore": "A"},
        _play,
    ),
    **_of("mfhpo.portfolios", portfolio=Call(portfolios.portfolio, lambda: {"model": "svm"})),
    **_of(
        "mfhpo.search",
        BudgetedSearch={
            "": Call(
                _budgeted,
                lambda: {"search": ModelSearch((1.0, 3.0))},
                _play,
                signature_of=search.BudgetedSearch,
                apart=frozenset({"certifier", "params", "sign"}),  # for hosts
            ),
            **{
                name: call
                for name, call in _methods(_budgeted).items()
                if name in (".ask", ".tell")
            },
        },
        EarlierResults=Call(
            search.EarlierResults,
            lambda: {"results": [{"x": 1, "y": 2.0}], "value": "y", "direction": "minimize"},
            kinds=dict.fromkeys(("results", "value", "direction"), may.never),
        ),
        HalvingSearch=_search(HalvingSearch),
        ModelSearch=_search(ModelSearch),
        Numeric=Call(
            Numeric,
            kinds={"places": may.sequence_of(may.number(0, 1))},
            use=lambda made: made.snapped(np.array([0.5])),
        ),
        OneOf=Call(OneOf, lambda: {"n": 2}, lambda made: made.snapped(np.array([0.5]))),
    ),
    **_of(
        "mfhpo.games",
        Hyperparameters=Call(
            games.Hyperparameters,
            lambda: dict(_HYPERPARAMETERS),
            lambda made: games.MultiOutputGP(made),
            dict.fromkeys(_HYPERPARAMETERS, may.never),
        ),
        MFUCBPNE=_game(games.MFUCBPNE),
        UCBPNE=_game(games.UCBPNE),
    ),
    **_of(
        "mfhpo.censored",
        Linear=Call(
            censored.Linear,
            lambda: {"slope": 0.1},
            lambda made: made(np.ones(2)),
            {"slope": may.NONNEGATIVE},
        ),
        par=Call(
            censored.par,
            lambda: {"factor": 10},
            lambda made: made(np.ones(2)),
            {"factor": may.NONNEGATIVE},
        ),
    ),
}
