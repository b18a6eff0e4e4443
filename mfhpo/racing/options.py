"""The options of each race: typed and documented once, for every library that runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, get_args

from mfhpo._validation import check_choice, check_instance, unwrapped
from mfhpo._validation.parameters import parameters
from mfhpo.knowledge.bias import Kind
from mfhpo.problem import Problem
from mfhpo.racing.declaration import BiasLike, SigmaLike

Aim = Literal["best arm", "reward per cost", "reward per pull"]
EstimatedBias = Literal["steer", "eliminate"]
Explore = Literal["A", "B", "C", "AB", "top"]
Variant = Literal["max", "order", "se", "mfe"]
LearningRate: TypeAlias = float | Literal["adaptive"]

# What options may be that are one of some names.
_CHOICES = {
    "aim": get_args(Aim),
    "estimated_bias": get_args(EstimatedBias),
    "explore": get_args(Explore),
    "stop": ("mixture", "published"),
    "variant": (None, *get_args(Variant)),
}


class _RunsPolicy(Protocol):
    _policy_class: Callable[..., Any]
    _options_type: type
    _defaults: dict[str, Any]


ClassT = TypeVar("ClassT", bound=type[_RunsPolicy])


def only_steers(problem: Problem, estimated_bias: EstimatedBias = "steer") -> bool:
    """Tell whether cheap fidelities are no evidence, for lack of bias bounds."""
    check_instance("problem", problem, Problem, "a mfhpo.Problem")
    check_choice("estimated_bias", estimated_bias, get_args(EstimatedBias))
    return problem.bias is None and estimated_bias == "steer"


class RaceOptions(TypedDict, total=False):
    """Options of every race.

    Parameters
    ----------
    delta
        Probability of a wrong certificate, in (0, 1). For `MFUCB` and `MFElimination`, which
        certify nothing: probability that one of the intervals fails; it has no part in the choices.
    sigma
        What is known about the noise: a sub-Gaussian scale, or one for each level, or
        `mfhpo.Bounded` with the bounds of the values, or `mfhpo.Gaussian`. None: estimated.
    budget
        Largest total cost, in the unit of the fidelity's costs. When it is spent, the race ends
        with the best answer so far, which is not certified. Trials under way are not counted: n
        workers may overspend by n - 1 trials. None: no limit.
    max_failures
        An arm without any value leaves the race, with a warning, after so many trials that fail:
        they raise, give NaN, infinity or no value, or are stopped. One with values leaves once more
        than half of its evaluations at a level surely fail. Before, it is evaluated again.
    pilot_arms
        Number of arms of the pilot, which finds out what is not declared.
    pilot_pulls
        Evaluations of each arm of the pilot at every level that is evidence.
    """

    delta: float
    sigma: SigmaLike
    budget: float | None
    max_failures: int
    pilot_arms: int
    pilot_pulls: int


class MFUCBOptions(RaceOptions, total=False):
    """Options of `mfhpo.regret.MFUCB`, besides those of every race.

    Parameters
    ----------
    rho
        How much is explored, positive; the published experiments take 2.
    bias
        Bounds on every arm's own bias at each level, the last one 0: numbers or `mfhpo.Bias.max`.
        None: estimated by the pilot.
    """

    rho: float
    bias: BiasLike


class MFEliminationOptions(RaceOptions, total=False):
    """Options of `mfhpo.regret.MFElimination`, besides those of every race.

    The scale of `sigma` sets how fast arms are dropped.

    Parameters
    ----------
    epsilon
        Arms within epsilon of the best need not be told apart, in the unit of the objective. None:
        derived from the budget. Without a budget, one is assumed, and doubled whenever it is spent.
    """

    epsilon: float | None


class BestArmOptions(RaceOptions, total=False):
    """Options of every race for the best arm, besides those of every race.

    Parameters
    ----------
    epsilon
        Tolerance in the unit of the objective. 0 asks for the very best arm, which may never be
        certain. None: one standard deviation of the noise at the target level.
    bias
        Bounds on the levels' bias, one for each level and the last one 0: numbers, or
        `mfhpo.Bias`. None: see `estimated_bias`.
    measure
        Number of evaluations that the winner gets at the target level, so that its value is known
        there also when cheaper levels decided.
    estimated_bias
        What a level below the target is good for where no bias is declared.

        - "steer": nothing is estimated, and only values at the target are evidence. A `budget` may
          not pay for comparing all configurations there: four evaluations of each, or two with a
          declared `sigma`. Then cheap levels choose up to four finalists. The policy compares these
          by new evaluations, and the certificate is about them. Else all are compared at the
          target. `IISE` and `MFLUCB` evaluate there alone. `MFTopTwo` and `MFGrad` look once at
          each configuration at the cheapest level, if its declared cost is at most a tenth of the
          target's, and try the best of them first.
        - "eliminate": a pilot estimates bounds, and configurations leave by them. Those that are
          unlike the pilot's, such as late bloomers, may be lost, and the answer says so.
    """

    epsilon: float | None
    bias: BiasLike
    measure: int
    estimated_bias: EstimatedBias


class BlockOptions(TypedDict, total=False):
    """The options of those who run a race for the best arm: its replicates and its baseline.

    Parameters
    ----------
    baseline
        The configuration in use today: one of those that are compared, or its index. The answer
        says by how much the winner is better than it, at least. That takes half of `delta`, so that
        the claim and this comparison hold together. None: there is none.
    replicate
        Name of the parameter that sets the split or the seed. The objective asks for it, as for the
        fidelity, and the race decides it: all configurations are evaluated with the same ones, in
        blocks, and compared within these (`mfhpo.BlockElimination`). That takes far fewer
        evaluations where the split is a large part of the noise. Only values at the target are
        evidence, and of the noise and the bias only `Bounded` values are declared. If the replicate
        has few values, such as five folds, the claim is about these, and a race is exact once all
        were used. In Ray its values are those of the search space, or else seeds. None: each
        evaluation has noise of its own.
    """

    baseline: Mapping[str, Any] | int | None
    replicate: str | None


class IISEOptions(BestArmOptions, total=False):
    """Options of `mfhpo.IISE` and its baselines, besides those of every race for the best arm.

    Parameters
    ----------
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated by
        ``estimated_bias="eliminate"``. "se" ignores the cheaper levels, "mfe" explores them as far
        as they go: baselines for comparison. None: what `bias` declares; of bounds that are
        estimated, "order".
    """

    variant: Variant | None


class MFTopTwoOptions(BestArmOptions, total=False):
    """Options of `mfhpo.MFTopTwo`, besides those of every race for the best arm.

    Parameters
    ----------
    variant
        "max" or "order": how bounds given as numbers are meant, or which kind is estimated by
        ``estimated_bias="eliminate"``. None: what `bias` declares; numbers are "max", and "order"
        is estimated.
    """

    variant: Kind | None


class MFGradOptions(MFTopTwoOptions, total=False):
    """Options of `mfhpo.MFGrad`, besides those of `MFTopTwo`.

    Parameters
    ----------
    learning_rate
        "adaptive", which does not depend on the scale of values, noise or costs; or a positive
        number as published (0.25), which suits gradients of about 1.
    stop
        "mixture": keeps delta at all times, and drops arms on the way. "published": the heuristic
        of the method's own experiments, for which delta is not proven.
    """

    learning_rate: LearningRate
    stop: Literal["mixture", "published"]


class MFLUCBOptions(BestArmOptions, total=False):
    """Options of `mfhpo.MFLUCB`, besides those of every race for the best arm.

    Bounds on the bias must be those of every arm's own: numbers or `mfhpo.Bias.max`. Without them,
    all is evaluated at the target, and `explore` has no part, unless
    ``estimated_bias="eliminate"``.

    Parameters
    ----------
    explore
        How a level is chosen for a configuration: "A", by how much a unit of cost tells; "B", all
        levels in turn until one is surely good; "AB", both; "C", the cheapest level that still
        tells anything, which needs no idea of the means; "top", the target level only.
    """

    explore: Explore


class ChoiceOptions(BestArmOptions, total=False):
    """Options where the policy is chosen, besides those of every race for the best arm.

    Parameters
    ----------
    aim
        "best arm": find it and certify it. "reward per cost" and "reward per pull": the trials
        themselves count, each for its cost times its configuration's mean at the target, or each
        for that mean alone. `epsilon` and `measure` have no part in the former, `bias` and
        `measure` none in the latter. Rewards are maximised: an objective that is minimised is taken
        for the negative reward. See `MFEliminationOptions`.
    """

    aim: Aim


def runs(policy: type, options: type, **defaults: Any) -> Callable[[ClassT], ClassT]:
    """Let a class run a policy, whose options its constructor takes as ``**options``.

    `options` is the `TypedDict` of all of them. `help` shows each with its type and default: that
    of the policy, unless it is among `defaults`, or None.
    """
    types, own = options.__annotations__, parameters(policy)
    own.pop("seed", None)  # a fixed one is for simulations
    known = {name: own[name].default if name in own else None for name in types} | defaults

    def decorate(cls: ClassT) -> ClassT:
        constructor = vars(cls)["__init__"]
        signature = inspect.signature(constructor)
        shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        kind = inspect.Parameter.KEYWORD_ONLY
        for name, default in known.items():
            words = getattr(types[name], "__forward_arg__", types[name])
            shown.append(inspect.Parameter(name, kind, default=default, annotation=words))
        constructor.__signature__ = signature.replace(parameters=shown)
        cls._policy_class = policy
        cls._options_type = options
        cls._defaults = known
        return cls

    return decorate


def with_defaults(cls: type[_RunsPolicy], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a class that `runs` a policy; TypeError for an unknown one."""
    for name, value in options.items():
        if name not in cls._defaults:
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}")
        if name in _CHOICES:
            check_choice(name, value, _CHOICES[name])
    return {**cls._defaults, **{name: unwrapped(value) for name, value in options.items()}}


def own_and_host(
    cls: type[_RunsPolicy], options: Mapping[str, Any], host: type
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the policy that a class `runs`, and those of a `host`'s type."""
    own = with_defaults(cls, options)
    return own, {name: own.pop(name) for name in host.__annotations__}
